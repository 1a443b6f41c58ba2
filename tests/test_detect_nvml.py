"""Every answer that NVML may give, by a stand-in for its library; the program that asks is the real one."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from steps.detect import nvml
from steps.detect.machine import detect
from steps.detect.smi import Smi
from steps.host.base import Result
from steps.host.captured import CapturedHost, load_capture
from steps.host.local import NO_ANSWER, NVML, LocalHost
from steps.model.hardware import PowerLimit
from tests import scoring

MIB = 1 << 20
HEAD = "driver 570.124.06\nnvml 12.570.124.06\ncuda 12080\n"
CARD = (
    "card\nbus {bus}\nname NVIDIA H100 80GB HBM3\nmemory 85520809984\nbar1 137438953472\ncapability 9.0\n"
    "link 5 5 16 16\necc 1\nmig 0\nbusy 97\nstate 0\n"
)
H100S = ("19", "3b", "4c", "5d", "9b", "bb", "cb", "db")


class Asked:
    """NVML as it answers by a text; the environment is how a library of another place is found."""

    def __init__(self, library: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._file = folder / "nvml.txt"
        monkeypatch.setenv("LD_LIBRARY_PATH", str(library))
        monkeypatch.setenv("NVML_STAND_IN", str(self._file))

    def raw(self, text: str, timeout: float = 30) -> Result:
        self._file.write_text(text, encoding="ascii")
        return LocalHost().run(NVML, timeout=timeout)

    def __call__(self, text: str) -> Smi:
        return nvml.from_nvml(self.raw(text))


@pytest.fixture
def asked(nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(nvml_library, tmp_path, monkeypatch)


def cards(count: int) -> str:
    return HEAD + "".join(CARD.format(bus=f"00000000:{bus.upper()}:00.0") for bus in H100S[:count])


@pytest.mark.parametrize("count", [1, 2, 8])
def test_healthy_cards_tell_everything(asked: Asked, count: int) -> None:
    found = asked(cards(count))
    assert (found.trouble, found.driver_version, found.cuda_version, len(found.gpus)) == (None, "570.124.06", "12.8", count)
    assert [card.address for card in found.gpus] == [f"0000:{bus}:00.0" for bus in H100S[:count]]
    card = found.gpus[-1]
    assert (card.name, card.memory_bytes, card.bar1_bytes) == ("NVIDIA H100 80GB HBM3", 85520809984, 137438953472)
    assert (card.compute_capability, card.ecc, card.mig, card.utilization, card.performance_state) == ("9.0", True, False, 97, "P0")
    assert msgspec.to_builtins(card.link) == {"generation": 5, "max_generation": 5, "width": 16, "max_width": 16}


def test_a_card_in_slices_says_so(asked: Asked) -> None:
    found = asked(cards(2).replace("mig 0", "mig 1", 1))
    assert [card.mig for card in found.gpus] == [True, False]


def test_what_a_card_does_not_support_is_not_known(asked: Asked) -> None:
    (card,) = asked(HEAD + "card\nbus 00000000:01:00.0\nname NVIDIA GB10\n").gpus
    assert (card.name, card.memory_bytes, card.bar1_bytes, card.ecc, card.mig) == ("NVIDIA GB10", None, None, None, None)
    assert (card.link.width, card.utilization, card.performance_state, card.compute_capability) == (None, None, None, None)


def test_a_state_that_nvml_does_not_know_is_none(asked: Asked) -> None:
    assert asked(cards(1).replace("state 0", "state 32")).gpus[0].performance_state is None


CODES = [
    (1, "failing"),
    (2, "failing"),
    (3, "failing"),
    (4, "no-permission"),
    (6, "failing"),
    (7, "failing"),
    (8, "failing"),
    (9, "no-driver"),
    (10, "failing"),
    (11, "failing"),
    (12, None),
    (13, None),
    (14, "failing"),
    (15, "failing"),
    (16, "failing"),
    (17, "no-permission"),
    (18, "mismatch"),
    (19, "failing"),
    (20, "failing"),
    (23, "failing"),
    (25, "failing"),
    (28, "failing"),
    (999, "failing"),
    (4711, "failing"),
]


@pytest.mark.parametrize(("code", "trouble"), CODES)
def test_every_code_at_the_start_has_its_meaning(asked: Asked, code: int, trouble: str | None) -> None:
    found = asked(f"{HEAD}init {code}\n")
    assert (found.trouble, found.gpus, found.installed) == (trouble, (), None if trouble is None else True)


def test_a_count_that_fails_is_not_taken_for_no_cards(asked: Asked) -> None:
    assert asked(f"{HEAD}count 999\n").trouble == "failing"
    assert asked(HEAD).trouble == "no-devices"


@pytest.mark.parametrize("code", [4, 15, 16, 999])
def test_a_card_that_cannot_be_asked_leaves_the_others_known(asked: Asked, code: int) -> None:
    found = asked(cards(2).replace("card\n", f"card\nhandle {code}\n", 1))
    assert (found.trouble, [card.address for card in found.gpus]) == ("failing", ["0000:3b:00.0"])


@pytest.mark.parametrize("question", [1, 2, 5, 9])
def test_a_card_that_vanishes_while_it_is_read_is_lost(asked: Asked, question: int) -> None:
    found = asked(cards(2).replace("card\n", f"card\nlost {question}\n", 1))
    assert (found.trouble, [card.address for card in found.gpus]) == ("failing", ["0000:3b:00.0"])


@pytest.mark.parametrize("where", ["init", "count", "name"])
def test_a_hang_is_stopped_and_said(asked: Asked, where: str) -> None:
    result = asked.raw(f"{cards(1)}".replace(HEAD, f"{HEAD}hang {where}\n"), timeout=1.5)
    assert (result.status, NO_ANSWER in result.stderr) == (None, True)
    assert nvml.from_nvml(result) == Smi(installed=True, hangs=True)


class WithNvml(CapturedHost):
    """A captured machine whose NVML is the stand-in, with or without its nvidia-smi."""

    def __init__(self, name: str, answer: Result, *, smi: bool = True) -> None:
        capture = load_capture(str(scoring.MACHINES / f"{name}.json"))
        kept = {line: found for line, found in capture.commands.items() if smi or not line.startswith("nvidia-smi")}
        super().__init__(msgspec.structs.replace(capture, commands=kept))
        self._answer = answer

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        return self._answer if argv == NVML else super().run(argv, timeout=timeout)


def test_eight_cards_of_nvml_are_the_eight_on_the_bus(asked: Asked) -> None:
    machine = detect(WithNvml("xe9680-h100x8", asked.raw(cards(8))))
    found = [card for card in machine.accelerators if card.vendor == "nvidia"]
    assert [card.utilization for card in found] == [97] * 8
    assert {card.bar1_bytes for card in found} == {137438953472}
    assert machine.driver.state == "working"
    assert [gap.code for gap in machine.gaps if gap.subject == "NVIDIA GPUs"] == []


def test_seven_cards_of_nvml_and_eight_on_the_bus_disagree(asked: Asked) -> None:
    machine = detect(WithNvml("xe9680-h100x8", asked.raw(cards(7))))
    (gap,) = [gap for gap in machine.gaps if gap.subject == "NVIDIA GPUs"]
    assert (gap.params["first"], gap.params["second"]) == ("8", "7")
    assert len([card for card in machine.accelerators if card.vendor == "nvidia"]) == 8


def test_a_hanging_nvml_fails_the_driver_and_names_the_probe(asked: Asked) -> None:
    machine = detect(WithNvml("xe9680-h100x8", asked.raw(f"{HEAD}hang init\n", timeout=1)))
    assert machine.driver.state == "failing"
    assert [gap.subject for gap in machine.gaps if gap.code == "probe-hangs"] == ["bringup nvml"]


def test_without_permission_the_state_is_not_known_and_root_is_named(asked: Asked) -> None:
    machine = detect(WithNvml("xe9680-h100x8", asked.raw(f"{HEAD}init 4\n"), smi=False))
    assert machine.driver.state == "unknown"
    assert "nvidia-smi" in [gap.subject for gap in machine.gaps if gap.code == "probe-needs-root"]


def test_limits_fans_and_slow_downs_are_told_where_the_card_has_them(asked: Asked) -> None:
    text = cards(2).replace("state 0\n", "state 0\nlimit 500000\nusual 700000\nslowed 192\nfan 61\n", 1)
    held, plain = asked(text).gpus
    assert held.power == PowerLimit(watts=500.0, default=700.0)
    assert (held.fan_percent, held.slowed) == (61, ("thermal", "power-brake"))
    assert (plain.power, plain.fan_percent, plain.slowed) == (None, None, None)
