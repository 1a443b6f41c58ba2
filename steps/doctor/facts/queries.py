"""What nvidia-smi's queries (`--query-gpu=…`, `--query-remapped-rows=…`) answered: the cells of each line by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from steps.detect.probes import Probes
from steps.doctor.facts.readings import Readings
from steps.doctor.numbers import number
from steps.doctor.told import Fact, Place, Told


class Answered(Told):
    """One line of an answer; `cells` holds what was asked for and what stands there, in the order of the question."""

    cells: tuple[tuple[str, str], ...]

    def at(self, name: str) -> Fact | None:
        """Return a cell with its unit; `None` when it was not asked for, or the card does not tell it."""
        value = next((value for asked, value in self.cells if asked == name), None)
        return None if value is None or value.strip("[]").lower() in ("", "n/a", "not supported") else Fact(place=self.place, value=value)

    def number(self, *names: str) -> float | None:
        """Return the number of the first of these cells that holds one."""
        for name in names:
            told = self.at(name)
            found = number(told.value) if told is not None else None
            if found is not None:
                return found
        return None


_ASKED = re.compile(r"--query-(?:gpu|remapped-rows|retired-pages)=(\S+)")


def answers(host: Probes) -> tuple[Answered, ...]:
    """Return the lines of every recorded query, in order; a heading is none."""
    return tuple(line for argv in host.forms(lambda argv: argv[0].rsplit("/", 1)[-1] == "nvidia-smi") for line in _lines(host, argv))


def _lines(host: Probes, argv: tuple[str, ...]) -> Iterator[Answered]:
    question = _ASKED.search(" ".join(argv))
    if question is None:
        return
    names = [name.strip().replace("clocks_throttle_reasons.", "clocks_event_reasons.") for name in question[1].split(",")]
    for line in host.run(argv).stdout.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(names) or cells[0].partition(" ")[0] == question[1].split(",")[0].strip():
            continue
        yield Answered(place=Place(source=" ".join(argv), text=line.strip()), cells=tuple(zip(names, cells, strict=True)))


_SAME_AS = {
    "power.draw": "Power Draw",
    "power.draw.instant": "Instantaneous Power Draw",
    "power.draw.average": "Average Power Draw",
    "power.limit": "Current Power Limit",
    "enforced.power.limit": "Enforced Power Limit",
    "power.max_limit": "Max Power Limit",
    "temperature.gpu": "GPU Current Temp",
    "utilization.gpu": "Utilization/Gpu",
    "mig.mode.current": "MIG Mode/Current",
    "mig.mode.pending": "MIG Mode/Pending",
    "clocks_event_reasons.gpu_idle": "Idle",
    "clocks_event_reasons.sw_power_cap": "SW Power Cap",
    "clocks_event_reasons.hw_slowdown": "HW Slowdown",
    "clocks_event_reasons.hw_thermal_slowdown": "HW Thermal Slowdown",
    "clocks_event_reasons.hw_power_brake_slowdown": "HW Power Brake Slowdown",
    "clocks_event_reasons.sw_thermal_slowdown": "SW Thermal Slowdown",
}
"""Names of a query by what `nvidia-smi -q` calls the same."""
_BITS = (
    (0x1, "Idle"),
    (0x4, "SW Power Cap"),
    (0x8, "HW Slowdown"),
    (0x20, "SW Thermal Slowdown"),
    (0x40, "HW Thermal Slowdown"),
    (0x80, "HW Power Brake Slowdown"),
)
"""nvml.h: nvmlClocksEventReasons."""
_WHO = ("pci.bus_id", "gpu_bus_id", "uuid", "gpu_uuid", "index")


def as_readings(lines: Iterable[Answered]) -> tuple[Readings, ...]:
    """Return the lines as readings by card, of several of one card the last.

    Lines that do not say whose they are may be one card's at several times: their temperatures are left out.
    """
    cards: dict[str, Answered] = {}
    nameless: list[Answered] = []
    for line in lines:
        who = next((told.value for name in _WHO if (told := line.at(name))), None)
        if who is None:
            nameless.append(line)
        else:
            cards[who] = line
    kept = [*cards.values(), *({line.cells: line for line in nameless}.values())]
    return tuple(found for line in kept if (found := _reading(line, alone=len(nameless) < 2)).values)


def _reading(line: Answered, *, alone: bool) -> Readings:
    address = next((told.value.lower() for name in _WHO[:2] if (told := line.at(name))), None)
    named = [(_SAME_AS[name], told) for name, _ in line.cells if name in _SAME_AS and (told := line.at(name))]
    values = [(name, told) for name, told in named if alone or name != "GPU Current Temp"]
    active = line.at("clocks_event_reasons.active")
    if active is not None and re.fullmatch(r"0x[0-9A-Fa-f]{1,16}", active.value):
        bits = int(active.value, 16)
        values += [(name, Fact(place=line.place, value="Active" if bits & bit else "Not Active")) for bit, name in _BITS]
    return Readings(address=address, source=line.place.source, values=tuple(values))
