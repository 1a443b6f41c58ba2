"""ACS off, port by port: a service clears each port's control word at every start and writes the former one back at its end."""

from __future__ import annotations

import re

from steps.compat import switch_plan
from steps.compat.paths import detours
from steps.model.action import AnyAction, Command, Run
from steps.model.base import phrase
from steps.model.machine import Machine
from steps.model.plan import Target

_NAME = "acs"
_REGISTER = "ECAP_ACS+0x6.w"
_FORMER = re.compile(rf"^ExecStop=.* -s (\S+) {re.escape(_REGISTER)}=([0-9a-f]{{4}})$", re.MULTILINE)


def switchable(machine: Machine) -> dict[str, int]:
    """Return the ports between cards that ACS makes a detour of, and their control words; empty where they cannot be written.

    Under Secure Boot the kernel is locked down and refuses programs that write PCI configuration.
    """
    if machine.firmware.secure_boot == "enabled":
        return {}
    between = detours(machine)
    return {one.address: one.isolation for one in machine.bridges if one.address in between and one.isolation}


def cleared(machine: Machine, target: Target) -> tuple[AnyAction, ...]:
    """Return the actions that clear the ports of now, and keep clearing those of an earlier plan."""
    words = switchable(machine)
    if not words:
        return ()
    title = phrase("firmware.action.acs", count=len(words))
    # Read first: without setpci, or without the register, nothing is changed.
    looked = tuple(_look(number, port) for number, port in enumerate(words, start=1))
    if machine.told.systemd is False:
        return (*looked, *_until_restart(words))
    unit = machine.told.texts.get(f"{switch_plan.UNITS}/{switch_plan.unit_of(_NAME)}", "")
    former = {**{port: f"{word:04x}" for port, word in words.items()}, **dict(_FORMER.findall(unit))}
    start = tuple(_line(port, "0000") for port in sorted(former))
    stop = tuple(_line(port, word) for port, word in sorted(former.items()))
    return (*looked, *switch_plan.service(_NAME, title, {}, start, stop, again=bool(unit) and target.root == "/"))


def _look(number: int, port: str) -> AnyAction:
    """Return the reading of a port's word, which the log then shows."""
    title, argv = phrase("firmware.action.acs-look", port=port), ("setpci", "-s", port, _REGISTER)
    return Run(id=f"firmware.acs.look.{number}", title=title, argv=argv, seconds=1.0)


def _line(port: str, word: str) -> str:
    """Return one line of the unit; a port that is not there any more stops no other."""
    return f"-/usr/bin/env setpci -s {port} {_REGISTER}={word}"


def _until_restart(words: dict[str, int]) -> tuple[AnyAction, ...]:
    return tuple(
        Run(
            id=f"firmware.acs.{number}",
            title=phrase("firmware.action.acs", count=1),
            why=phrase("firmware.linux.acs-off.lost"),
            argv=("setpci", "-s", port, f"{_REGISTER}=0000"),
            undo=(Command(argv=("setpci", "-s", port, f"{_REGISTER}={word:04x}")),),
            seconds=1.0,
        )
        for number, (port, word) in enumerate(words.items(), start=1)
    )
