"""A key is enrolled only where somebody can confirm it, and that somebody has the blue screen on paper."""

from __future__ import annotations

import unicodedata

import msgspec
import pytest

from steps import driver, planning
from steps.catalog.mok import mok_screens
from steps.compat import solve
from steps.compat.candidates import every_driver
from steps.compat.case import Case
from steps.compat.mok_plan import enrolment
from steps.compat.system_rules import signed
from steps.model.action import KEY
from steps.model.base import phrase
from steps.model.machine import Machine
from steps.model.plan import Target
from steps.model.profile import DriverAnswers, Profile, answered
from steps.model.run import ActionState, RunState, stays
from steps.report.card import WIDTH
from steps.report.mok import mok_card
from steps.text import Language
from tests.test_compat_recommend import captured


@pytest.fixture(scope="module")
def locked() -> Machine:
    machine = captured("rtx5090-u2404-fresh")
    return msgspec.structs.replace(machine, firmware=msgspec.structs.replace(machine.firmware, secure_boot="enabled"))


NEEDS_KEY = Profile(driver=answered(Profile(), {"driver.branch": "580", "driver.flavor": "open", "driver.source": "nvidia-repo"}).driver)


def codes(machine: Machine, console: str | None) -> dict[str, str]:
    answers = answered(NEEDS_KEY, {"driver.console": console})
    return {one.code: one.severity for one in solve.judge_driver(machine, answers) if "boot" in one.code or "console" in one.code}


def test_who_sees_the_console_is_asked_only_under_secure_boot(locked: Machine) -> None:
    assert "driver.console" in {choice.key for choice in driver.choices(locked, NEEDS_KEY)}
    assert "driver.console" not in {choice.key for choice in driver.choices(captured("rtx5090-u2404-fresh"), NEEDS_KEY)}


def test_the_answer_decides_whether_modules_that_need_a_key_are_a_warning_or_an_error(locked: Machine) -> None:
    assert codes(locked, None) == {"secure-boot-unsigned-module": "warning", "console-not-said": "info"}
    assert codes(locked, "in-person") == {"secure-boot-unsigned-module": "warning"}
    assert codes(locked, "bmc") == {"secure-boot-unsigned-module": "warning"}
    assert codes(locked, "nobody") == {"secure-boot-nobody-there": "error"}


def test_where_nobody_is_only_modules_that_come_signed_are_offered(locked: Machine) -> None:
    nobody = Profile(driver=DriverAnswers(console="nobody"))
    offered = [Case(locked, answered(nobody, patch)) for patch in every_driver(locked, nobody)]
    assert offered
    assert all(signed(case) for case in offered if case.driver.origin == "planned")
    assert any(not signed(Case(locked, answered(Profile(), patch))) for patch in every_driver(locked, Profile()))


def test_the_card_is_printed_before_the_reboot(locked: Machine) -> None:
    plan = planning.make_plan(locked, answered(NEEDS_KEY, {"driver.console": "bmc"}), Target(), 0.0)
    order = [action.id for action in plan.actions]
    assert order.index("driver.key") < order.index("driver.card") < order.index("driver.reboot")


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_the_card_shows_every_screen_as_it_is_in_both_languages(language: Language) -> None:
    card = mok_card(language, "/var/lib/shim-signed/mok/MOK.der")
    for screen in mok_screens():
        assert screen.title in card
        assert all(row in card for row in screen.rows)
        assert screen.choose is None or f"> {screen.choose}" in card
    assert "mokutil --import /var/lib/shim-signed/mok/MOK.der" in card
    for line in card.splitlines():
        assert sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in line) <= WIDTH, line


@pytest.mark.parametrize("queued", [(), ("Theirs",), None])
def test_an_undo_says_that_the_key_stays_where_its_request_was_not_the_only_one(queued: tuple[str, ...] | None) -> None:
    path = "/var/lib/dkms/mok.pub"
    key = enrolment(path, queued, "t")
    assert bool(key.undo) is (queued == ())
    state = RunState(status="undone", actions={KEY: ActionState(id=KEY, status="undone" if key.undo else "kept")})
    assert stays([key], state) == ("" if key.undo else phrase("repair.undo.key", path=path))


def test_the_keys_lead_from_the_first_row_to_the_one_to_take() -> None:
    for screen in mok_screens():
        if screen.keys == "down":
            assert screen.choose == screen.rows[1], screen.title
        elif screen.keys == "enter":
            assert screen.choose == screen.rows[0], screen.title
