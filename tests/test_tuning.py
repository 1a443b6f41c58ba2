"""What Linux does where the BIOS was left alone: offered where it helps, ticked by nobody, taken back by undo; goals and the card."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from steps import firmware, hardware, planning, tuning, verify
from steps.catalog import guide
from steps.detect.machine import detect
from steps.engine import client
from steps.host.opening import open_host
from steps.model.action import AnyAction, Command, Run, Service, Write
from steps.model.finding import Severity
from steps.model.hardware import Cpu, Firmware, IdleState
from steps.model.machine import Machine
from steps.model.plan import Plan, Target
from steps.model.profile import FirmwareAnswers, HardwareAnswers, Profile
from steps.model.software import Environment, Os
from steps.plain import PlainWizard
from steps.profiles import dump, parse
from steps.report.card import card
from steps.text import Language, lookup, say
from tests.engine_kit import ended, plan_of
from tests.test_steps_guide import AMPERE, GOOD, WORKING, row, varied
from tests.test_verify import FakeHost
from tui.cells import width

MACHINES = Path(__file__).resolve().parent / "machines"
DEEP = (IdleState(name="C1", latency_us=1, enabled=True), IdleState(name="C6", latency_us=290, enabled=True))
TWO = varied(
    accelerators=AMPERE,
    firmware_iommu="on",
    os=Os(id="ubuntu", version="22.04", arch="x86_64", virtualization="none", container="none", wsl=False),
)
SLEEPY = varied(cpu=Cpu(governor="powersave", idle_states=DEEP, numa_nodes=1))
BENCH = varied(driver=WORKING, environments=(Environment(path="/home/ana/envs/dl", frameworks={"torch": "2.15.0"}),))


def ticked(*items: str) -> Profile:
    return msgspec.convert({"firmware": {"linux": items}}, Profile)


def offered(machine: Machine) -> list[str]:
    question = tuning.question(machine, Profile())
    return [] if question is None else [option.value for option in question.options]


def plan(machine: Machine, answers: Profile) -> Plan:
    return planning.make_plan(machine, answers, Target(), made=0.0)


def made(machine: Machine, *items: str) -> tuple[AnyAction, ...]:
    return tuning.actions(machine, ticked(*items), Target())


@pytest.mark.parametrize(
    ("item", "has", "nearly"),
    [
        ("iommu-pt", TWO, msgspec.structs.replace(TWO, accelerators=AMPERE[:1])),
        ("iommu-pt", TWO, msgspec.structs.replace(TWO, firmware=Firmware(iommu="passthrough"))),
        ("iommu-pt", TWO, msgspec.structs.replace(TWO, os=msgspec.structs.replace(TWO.os, arch="aarch64"))),
        ("iommu-pt", TWO, msgspec.structs.replace(detect(open_host(str(MACHINES / "rtx4090x4-epyc.json"), None)), firmware=TWO.firmware)),
        ("c-states", SLEEPY, varied(cpu=Cpu(idle_states=DEEP[:1]))),
        ("governor", SLEEPY, varied(cpu=Cpu(governor="performance"))),
        ("measure-link", BENCH, msgspec.structs.replace(BENCH, environments=())),
        ("measure-link", BENCH, varied(environments=BENCH.environments)),
    ],
)
def test_a_tick_is_offered_where_it_helps_and_not_where_it_does_not(item: str, has: Machine, nearly: Machine) -> None:
    assert item in offered(has)
    assert item not in offered(nearly)


def test_nothing_is_offered_in_a_guest_or_a_container_and_nothing_is_ticked_beforehand() -> None:
    for changed in ({"virtualization": "kvm"}, {"container": "docker"}):
        machine = msgspec.structs.replace(TWO, os=msgspec.structs.replace(TWO.os, **changed))
        assert tuning.question(machine, Profile()) is None
    question = tuning.question(TWO, Profile())
    assert question is not None
    assert question.taken == ()
    assert not any(option.recommended for option in question.options)
    assert tuning.actions(TWO, Profile(), Target()) == ()


def test_a_tick_toggles() -> None:
    question = tuning.question(SLEEPY, ticked("governor"))
    assert question is not None
    patches = {option.value: option.patch for option in question.options}
    assert patches == {"c-states": {"firmware.linux": ("governor", "c-states")}, "governor": {"firmware.linux": None}}


def test_only_a_plan_that_writes_switches_or_the_command_line_wants_the_word() -> None:
    assert tuning.word_of(plan(TWO, ticked("iommu-pt"))) == "write"
    assert tuning.word_of(plan(SLEEPY, ticked("governor"))) == "write"
    assert tuning.word_of(plan(BENCH, ticked("measure-link"))) == ""
    assert tuning.word_of(plan(TWO, Profile())) == ""


def test_a_service_writes_the_switches_at_its_start_and_puts_them_back_at_its_end() -> None:
    *writes, service = made(SLEEPY, "c-states")
    texts = {action.path: action.text for action in writes if isinstance(action, Write)}
    assert texts["/etc/bringup/idle-on.conf"] == "w /sys/devices/system/cpu/cpu*/cpuidle/state1/disable - - - - 1\n"
    assert texts["/etc/bringup/idle-off.conf"] == "w /sys/devices/system/cpu/cpu*/cpuidle/state1/disable - - - - 0\n"
    unit = texts["/etc/systemd/system/bringup-idle.service"] or ""
    assert "ExecStart=/bin/systemd-tmpfiles --create /etc/bringup/idle-on.conf\n" in unit
    assert "ExecStop=/bin/systemd-tmpfiles --create /etc/bringup/idle-off.conf\n" in unit
    assert isinstance(service, Service)
    assert (service.unit, len(service.needs)) == ("bringup-idle.service", 3)


def test_the_governor_of_now_comes_back_at_the_end() -> None:
    texts = [action.text or "" for action in made(SLEEPY, "governor") if isinstance(action, Write)]
    assert any("scaling_governor - - - - performance" in text for text in texts)
    assert any("scaling_governor - - - - powersave" in text for text in texts)


def test_the_measurement_is_the_persons_own_first_of_all_and_stops_nothing() -> None:
    first = plan(BENCH, ticked("measure-link")).actions[0]
    assert isinstance(first, Run)
    assert (first.by, first.optional, first.lane, first.argv[0]) == ("user", True, "packages", "/home/ana/envs/dl/bin/python")
    assert first.timeout == 300.0
    assert tuning.actions(BENCH, ticked("measure-link"), Target(root="/mnt")) == ()


def test_the_proof_looks_again_at_what_was_ticked_and_said() -> None:
    def state(machine: Machine, answers: Profile) -> str | None:
        rungs = verify.prove(FakeHost(), machine, answers, Target())
        return next((rung.state for rung in rungs if rung.id == "switches"), None)

    assert state(SLEEPY, ticked("c-states")) == "failed"
    assert state(varied(cpu=Cpu(idle_states=DEEP[:1])), ticked("c-states")) == "passed"
    assert state(TWO, ticked("iommu-pt")) == "failed"
    said = Profile(firmware=FirmwareAnswers(acknowledged=("resizable-bar",)))
    assert state(varied(firmware_resizable_bar=False), said) == "skipped"
    assert state(GOOD, said) == "passed"
    assert state(GOOD, Profile()) is None


# --- goals ------------------------------------------------------------------------------------------


def grades(machine: Machine, goal: str) -> dict[str, Severity]:
    answers = Profile(hardware=msgspec.convert({"goal": goal}, HardwareAnswers))
    return {one.code: one.severity for one in hardware.check(machine, answers)}


def test_the_same_machine_falls_short_of_one_goal_and_is_enough_for_another() -> None:
    small = varied(memory_total_bytes=32 << 30, memory_ecc=False, cpu_pcie_lanes=24)
    assert grades(small, "train") == {"memory-small": "warning", "memory-no-ecc": "info", "cpu-pcie-lanes-few": "info"}
    assert grades(small, "learn") == {"memory-small": "info"}
    assert grades(small, "fine-tune") == {"memory-small": "info", "cpu-pcie-lanes-few": "info"}
    assert grades(small, "many-gpus") == {"memory-small": "warning", "memory-no-ecc": "warning", "cpu-pcie-lanes-few": "warning"}


def test_every_code_of_a_goal_is_a_code_of_the_guide_and_training_is_the_guide_itself() -> None:
    known = {key for goal in guide.goals() for key in (*goal.much, *goal.some, *goal.none)}
    assert {code for code in known if lookup("en", f"hardware.finding.{code}.tag") is None} == set()
    train = guide.goal("train")
    assert (train.much, train.some, train.none) == ((), (), ())
    small = varied(memory_ecc=False)
    assert hardware.check(small, Profile()) == hardware.check(small, Profile(hardware=HardwareAnswers(goal="train")))


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_a_short_row_says_how_much_it_matters_and_what_to_change(language: Language) -> None:
    small = varied(memory_total_bytes=32 << 30)
    option = row(hardware.choices(small, Profile())[0].options, "memory")
    notes = {note.label: say(language, note.text) for note in option.notes}
    assert "128 GB" in notes["change"]
    assert notes["matters"]


def test_the_lane_budget_counts_the_slots_as_they_are() -> None:
    two = varied(accelerators=AMPERE, cpu_pcie_lanes=24)
    option = row(hardware.choices(two, Profile())[0].options, "pcie")
    words = " ".join(say("en", sentence) for sentence in option.sentences)
    assert "24 lanes; the cards would use 32, NVMe disks 4." in words
    assert "12 too few" in words
    assert "01:00 ×16/16, 41:00 ×16/16" in words


def test_goal_and_ticks_survive_the_profile_file() -> None:
    answers = Profile(hardware=HardwareAnswers(goal="learn"), firmware=FirmwareAnswers(linux=("iommu-pt",)))
    assert parse(dump(answers), "x") == answers


# --- boards and the card ------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("name", sorted(path.stem for path in MACHINES.glob("*.json")))
def test_a_card_fits_on_paper_and_names_where_and_what(name: str, language: Language) -> None:
    machine = detect(open_host(str(MACHINES / f"{name}.json"), None))
    text = card(machine, Profile(), language)
    assert "report.card." not in text
    assert "firmware." not in text
    assert all(width(line) <= 76 for line in text.splitlines() if "://" not in line)


def test_the_card_of_the_article_names_the_bars_menu() -> None:
    machine = detect(open_host(str(MACHINES / "article-rtx3090-5900x-u2004.json"), None))
    text = card(machine, Profile(), "en")
    assert "Enter the BIOS with Del or F2 at power-on." in text
    assert "[ ] Resizable BAR: off" in text
    assert "ASUS AMD 800 series: Advanced > PCI Subsystem Settings >" in text
    assert "Measured now: BAR1 0000:09:00.0 = 256 MB" in text


def test_how_a_link_is_looked_at_under_load_is_said_even_where_nothing_is_wrong() -> None:
    options = firmware.choices(GOOD, Profile())[0].options
    commands = [note.text for note in row(options, "pcie-generation").notes if note.command]
    assert commands == ["cat /sys/bus/pci/devices/0000:01:00.0/current_link_speed"]
    assert [note.text for note in row(options, "pcie-width").notes if note.command] == [
        "cat /sys/bus/pci/devices/0000:01:00.0/current_link_width"
    ]


def test_undo_really_makes_the_boot_menu_again_without_the_parameter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan's own three actions, with a file of the test's and a stand-in that writes down what the boot menu would be made of."""
    monkeypatch.setenv("BRINGUP_STATE", str(tmp_path / "state"))
    file, menu = tmp_path / "grub.d" / "90-bringup.cfg", tmp_path / "menu"
    program = "import sys, pathlib; f, m = map(pathlib.Path, sys.argv[1:]); m.open('a').write(f'{f.exists()} ')"
    tool = (sys.executable, "-I", "-c", program, str(file), str(menu))

    def ours(action: AnyAction) -> AnyAction:
        if isinstance(action, Write):
            return msgspec.structs.replace(action, path=str(file), done_when=(), by="user")
        assert isinstance(action, Run)
        undo = (Command(argv=tool),) if action.undo else ()
        return msgspec.structs.replace(action, argv=tool, undo=undo, done_when=(), by="user")

    handle = client.start(plan_of(*(ours(action) for action in made(TWO, "iommu-pt")[:3])), sudo=None)
    assert ended(handle).status == "done"
    assert menu.read_text() == "False True "
    handle.undo()
    assert ended(handle).status == "undone"
    assert menu.read_text() == "False True False "
    assert not file.exists()


def test_as_lines_too_the_word_is_asked_for_and_y_is_not_enough() -> None:
    def confirmed(typed: str, machine: Machine, answers: Profile) -> tuple[bool, str]:
        prompts: list[str] = []

        def ask(prompt: str) -> str:
            prompts.append(prompt)
            return typed

        dialogue = PlainWizard(machine, answers, "en", ask, prompts.append)
        return dialogue.confirm(plan(machine, answers), ()), prompts[-1]

    assert confirmed("y", TWO, ticked("iommu-pt"))[0] is False
    agreed, prompt = confirmed("write", TWO, ticked("iommu-pt"))
    assert agreed is True
    assert "Type write to start" in prompt
    assert confirmed("y", BENCH, ticked("measure-link"))[0] is True
