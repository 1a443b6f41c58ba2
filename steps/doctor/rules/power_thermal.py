"""Heat and power: what slows a card down, and what is only its normal full load."""

from __future__ import annotations

import re

from steps.doctor import numbers
from steps.doctor.events.faults import FellOff, PowerBrake, TooHot
from steps.doctor.events.heat import HeatTold
from steps.doctor.evidence import Evidence
from steps.doctor.facts.readings import Readings
from steps.doctor.rules.base import CERTAIN, LIKELY, STRONG, Answer, found, out, rule
from steps.doctor.told import Fact, fact

NEAR = 3.0
"""Degrees from a limit within which a card is held back by it."""
FAR_BELOW = 20.0
"""Degrees by which a platform's own limit lies below the card's, so that it is no normal reserve."""
HOT_BESIDE = 25.0
"""Degrees above its sisters at which a card's own cooling is what differs."""
SHORT_OF_POWER = 0.75
"""Part of its limit below which a card that is held back by power does not get what it asks for."""
BEYOND = 1.5
"""Part of the maximum limit above which a reading of power cannot be true."""
ABOVE = 1.05
"""Part of the limit that a card may pass for a moment; a reading that never moves above it is no reading."""
_SISTERS = 3
"""Cards that tell what is usual in a machine."""
_WORKS = 20.0
"""Per cent of load from which a card is warm by its work."""
SCORCHING, WARM_AT_REST = 90.0, 75.0
"""Degrees that, beside a card that was lost, are the reason: under any load, and where nothing runs."""
_RESTS = 5.0
"""Per cent of load up to which nothing runs."""
CAP = ("SW Power Cap",)
HARD = ("HW Slowdown", "HW Thermal Slowdown", "HW Power Brake Slowdown")


def _active(one: Readings, *names: str) -> Fact | None:
    """Return the first of the reasons to slow down that is active."""
    return next((value for name in names if one.active(name) and (value := one.at(name)) is not None), None)


def _draw(one: Readings) -> tuple[Fact | None, float | None, float | None]:
    """Return the reading of the power draw, the draw and the limit now, in watts."""
    names = ("Average Power Draw", "Instantaneous Power Draw", "Power Draw")
    told = next((value for name in names if (value := one.at(name)) is not None), None)
    draw = next((number for name in names if (number := one.number(name)) is not None), None)
    limit = next((number for name in ("Current Power Limit", "Enforced Power Limit", "Power Limit") if (number := one.number(name))), None)
    return told, draw, limit


def _power(seen: Evidence, one: Readings) -> tuple[Fact | None, float | None, float | None]:
    """Return draw and limit of a card as it reads them, or, of a machine with one card, as the plain table shows them."""
    told, draw, limit = _draw(one)
    table = _of_table(seen) if draw is None else []
    return (table[0][0], table[0][1], table[0][2]) if len(table) == 1 and len(_together(seen)) == 1 else (told, draw, limit)


def _together(seen: Evidence) -> tuple[Readings, ...]:
    """Return the readings by card; fragments without a heading are of the one card that there is."""
    unnamed = [one for one in seen.readings if one.address is None]
    if len(unnamed) < 2 or any(one.address for one in seen.readings):
        return seen.readings
    return (Readings(address=None, source=unnamed[0].source, values=tuple(value for one in unnamed for value in one.values)),)


@rule("gpu-cooling-insufficient")
def cooling(seen: Evidence) -> Answer:
    """A limit of heat was reached, or one card is far hotter than its sisters."""
    # A reason to slow down among nvidia-smi's own readings counts with the temperature beside it, below.
    read = {one.source for one in seen.readings}
    said = seen.first(TooHot, lambda event: event.place.source not in read)
    for one in _together(seen):
        hot = _active(one, "HW Thermal Slowdown", "SW Thermal Slowdown")
        now, slow = one.number("GPU Current Temp"), one.number("GPU Slowdown Temp")
        if hot is not None and (now is None or slow is None or now > slow - 15):
            return found(STRONG, hot, one.at("GPU Current Temp"), said)
        # Cards since Hopper tell how far they are from their limit, not where it lies.
        left, most = one.number("GPU T.Limit Temp"), one.number("GPU Max Operating T.Limit Temp")
        if left is not None and left <= (most if most is not None else 0.0):
            return found(STRONG, one.at("GPU T.Limit Temp"), one.at("GPU Current Temp"), said)
        if now is not None and slow and now >= slow - NEAR:
            return found(LIKELY, one.at("GPU Current Temp"), one.at("GPU Slowdown Temp"), said)
    beside = _hotter_than_sisters(seen) or _at_critical(seen) or _hot_and_lost(seen)
    if beside is not None:
        return found(STRONG, beside, said)
    return found(STRONG if said.where or "thermal" in said.place.text.lower() else LIKELY, said) if said is not None else None


def _hotter_than_sisters(seen: Evidence) -> Fact | None:
    """Return the temperature of a card that is far above the others of the same machine."""
    known = [
        (number, told, one.number("Gpu") or one.number("GPU"))
        for one in seen.readings
        if (number := one.number("GPU Current Temp")) is not None and (told := one.at("GPU Current Temp")) is not None
    ]
    known = known if len(known) >= _SISTERS else _temperatures(seen)
    if len(known) < _SISTERS:
        return None
    known.sort(key=lambda card: card[0])
    hottest, told, busy = known[-1]
    # A card that works beside idle sisters is hotter for that.
    works = busy is not None and busy >= _WORKS and any(other is None or other < _WORKS for _, _, other in known[:-1])
    return told if hottest - known[-2][0] >= HOT_BESIDE and not works else None


def _hot_and_lost(seen: Evidence) -> Fact | None:
    """Return the temperature of a card beside the report that one was lost, where it is too high for its load."""
    if not seen.has(FellOff):
        return None
    read = [
        (now, told, one.number("Utilization/Gpu"))
        for one in _together(seen)
        if (now := one.number("GPU Current Temp")) is not None and (told := one.at("GPU Current Temp")) is not None
    ]
    for now, told, busy in (*read, *_temperatures(seen)):
        if now >= SCORCHING or (busy is not None and busy <= _RESTS and now >= WARM_AT_REST):
            return told
    for said in seen.all(HeatTold):
        if said.degrees >= SCORCHING or (said.rests and said.degrees >= WARM_AT_REST):
            return fact(f"{said.degrees:.0f}", said.place.source, said.place.text)
    return None


_CHIP = re.compile(r"^amdgpu-pci-\S+\n(?P<lines>(?:[^\n]+\n?)+)", re.MULTILINE)
_SENSOR = re.compile(
    r"^(?:edge|junction|mem): +\+(?P<now>[\d.]+) ?°?C +\((?:[^)\n]*, *)?crit(?:ical)? = \+(?P<most>[\d.]+) ?°?C[^\n]*$", re.MULTILINE
)


def _at_critical(seen: Evidence) -> Fact | None:
    """Return the reading of a sensor of a card that stands at its critical temperature, or `None`; sensors names AMD's cards only."""
    for argv in seen.host.forms(lambda argv: argv[0] == "sensors"):
        for chip in _CHIP.finditer(seen.host.run(argv).stdout):
            for line in _SENSOR.finditer(chip["lines"]):
                now, most = numbers.number(line["now"]), numbers.number(line["most"])
                if now is not None and most is not None and most > 0 and now >= most - NEAR:
                    return fact(line["now"], " ".join(argv), " ".join(line[0].split()))
    return None


_ROW = re.compile(r"^\|[^|\n]*?\s(?P<degrees>\d{1,3})C\s+P\d{1,2}\s[^|\n]*\|[^|\n]*(?:\|\s*(?P<busy>\d{1,3})%[^\n]*)?$", re.MULTILINE)


def _temperatures(seen: Evidence) -> list[tuple[float, Fact, float | None]]:
    """Return temperature and load of each card in nvidia-smi's plain table."""
    text = "".join(seen.host.run(argv).stdout for argv in seen.host.forms(lambda argv: argv == ("nvidia-smi",)))
    rows = _ROW.finditer(text)
    return [
        (float(row["degrees"]), fact(row["degrees"], "nvidia-smi", " ".join(row[0].split())), numbers.number(row["busy"])) for row in rows
    ]


@rule("platform-thermal-limit-low")
def platform_limit(seen: Evidence) -> Answer:
    """The platform holds the card far below the temperature that it is made for."""
    for one in _together(seen):
        now, most, slow = one.number("GPU Current Temp"), one.number("GPU Max Operating Temp"), one.number("GPU Slowdown Temp")
        if now is not None and most is not None and slow is not None and slow - most >= FAR_BELOW and most - now <= NEAR:
            return found(
                STRONG, one.at("GPU Max Operating Temp"), one.at("GPU Current Temp"), one.at("GPU Slowdown Temp"), limit=round(most)
            )
    return None


@rule("power-telemetry-frozen")
def frozen(seen: Evidence) -> Answer:
    """The reading of power is above what the card can be given: far above, or never moving."""
    for one in _together(seen):
        told, draw, limit = _draw(one)
        most = one.number("Max Power Limit") or limit
        if told is not None and draw is not None and most and draw > BEYOND * most:
            return found(CERTAIN, told, one.at("Max Power Limit"), _active(one, *CAP), draw=round(draw), most=round(most))
    samples = _sampled(seen)
    draws = [draw for _, draw, _ in samples]
    same = len(draws) > 2 and len(set(draws)) == 1
    beyond = [(told, draw, most) for told, draw, most in samples if draw > (ABOVE if same else BEYOND) * most]
    if beyond:
        told, draw, most = beyond[0]
        return found(CERTAIN if len(set(draws)) < len(draws) else STRONG, told, draw=round(draw), most=round(most))
    return None


_LIMITS = ("power.max_limit", "enforced.power.limit", "power.limit")


def _sampled(seen: Evidence) -> list[tuple[Fact, float, float]]:
    """Return power draw and limit of each line of a query for the draw; the limit may stand in `-q` or in the table instead."""
    elsewhere = next((most for one in _together(seen) if (most := one.number("Max Power Limit") or _draw(one)[2])), None)
    elsewhere = elsewhere or next((gpu.power.watts for gpu in seen.smi.gpus if gpu.power is not None and gpu.power.watts), None)
    lines = [(line, line.number("power.draw", "power.draw.instant", "power.draw.average")) for line in seen.answers]
    found = [(line.at("power.draw") or line.at("power.draw.instant"), draw, line.number(*_LIMITS) or elsewhere) for line, draw in lines]
    drawn = [(told, draw, most) for told, draw, most in found if told is not None and draw is not None and most]
    return [*drawn, *_of_table(seen)]


_USAGE = re.compile(r"^\|[^|\n]*\sP\d{1,2}\s+(?P<draw>\d+)W +/ +(?P<most>\d+)W[^\n]*$", re.MULTILINE)


def _of_table(seen: Evidence) -> list[tuple[Fact, float, float]]:
    """Return draw and limit of each card in nvidia-smi's plain table."""
    text = "".join(seen.host.run(argv).stdout for argv in seen.host.forms(lambda argv: argv == ("nvidia-smi",)))
    rows = ((row, numbers.number(row["draw"]), numbers.number(row["most"])) for row in _USAGE.finditer(text))
    return [
        (fact(row["draw"], "nvidia-smi", row[0].strip()), draw, most) for row, draw, most in rows if draw is not None and most is not None
    ]


@rule("chassis-limits-gpu-power")
def chassis(seen: Evidence) -> Answer:
    """The chassis brakes the card, or gives it less than its limit."""
    said = seen.first(PowerBrake)
    for one in _together(seen):
        brake = _active(one, "HW Power Brake Slowdown")
        if brake is not None:
            return found(CERTAIN, brake, said)
        cap = _active(one, *CAP)
        told, draw, limit = _power(seen, one)
        if cap is not None and draw is not None and limit and draw < SHORT_OF_POWER * limit:
            return found(STRONG, cap, told, one.at("Current Power Limit"), said, variant="short", draw=round(draw), limit=round(limit))
    return found(LIKELY, said) if said is not None else None


@rule("gpu-at-power-limit-normal")
def at_limit(seen: Evidence) -> Answer:
    """The power limit is the only reason to slow down: that is what full load looks like."""
    for one in _together(seen):
        cap = _active(one, *CAP)
        if cap is None:
            continue
        other = _active(one, *HARD, "SW Thermal Slowdown")
        if other is not None:
            return out(other)
        told, draw, limit = _power(seen, one)
        if draw is not None and limit and (draw < SHORT_OF_POWER * limit or draw > BEYOND * limit):
            return out(told, one.at("Current Power Limit"))
        return found(LIKELY, cap, one.at("GPU Current Temp"), told)
    return None
