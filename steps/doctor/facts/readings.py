"""The readings of `nvidia-smi -q`, also of a fragment of it: values by their path."""

from __future__ import annotations

import re
from collections.abc import Iterator

from steps.detect.probes import Probes
from steps.doctor.numbers import number
from steps.doctor.told import Fact, Place
from steps.model.base import Record


class Readings(Record):
    """The readings of one GPU; `address` is `None` where the fragment lacks its heading."""

    address: str | None
    source: str
    values: tuple[tuple[str, Fact], ...] = ()

    def at(self, path: str) -> Fact | None:
        """Return the reading whose path ends with `path` (`Remapped Rows/Pending`), or `None`."""
        return next((value for key, value in self.values if key == path or key.endswith(f"/{path}")), None)

    def number(self, path: str) -> float | None:
        """Return the number that a reading begins with, without its unit, or `None`."""
        told = self.at(path)
        return number(told.value) if told is not None else None

    def active(self, path: str) -> bool | None:
        """Return whether a reading says yes (`Active`, `Yes`, `Enabled`); `None` when it says neither that nor the opposite."""
        told = self.at(path)
        word = told.value.lower() if told else ""
        return True if word in ("active", "yes", "enabled") else False if word in ("not active", "no", "disabled") else None


def readings(host: Probes) -> tuple[Readings, ...]:
    """Return the readings of every GPU in every recorded `-q`; on a real machine it is asked once."""
    asked = host.forms(lambda argv: argv[0].rsplit("/", 1)[-1] == "nvidia-smi" and "-q" in argv and "-x" not in argv, ("nvidia-smi", "-q"))
    return tuple(found for argv in asked for found in parsed(host.run(argv, timeout=15).stdout, " ".join(argv)))


_HEADING = re.compile(r"^GPU (?P<address>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])")


def parsed(text: str, source: str) -> Iterator[Readings]:
    """Yield the readings of each GPU in a text; what stands before the first heading is a GPU of its own when it holds values."""
    address: str | None = None
    values: list[tuple[str, Fact]] = []
    trail: list[tuple[int, str]] = []
    for line in text.expandtabs().splitlines():
        heading = _HEADING.match(line)
        if heading:
            if values:
                yield Readings(address=address, source=source, values=tuple(values))
            address, values, trail = heading["address"].lower(), [], []
            continue
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        name, colon, value = (part.strip() for part in line.strip().partition(":"))
        while trail and trail[-1][0] >= indent:
            trail.pop()
        if colon and value:
            path = "/".join([*(part for _, part in trail), name])
            values.append((path, Fact(place=Place(source=source, text=" ".join(line.split())), value=value)))
        trail.append((indent, name))
    if values:
        yield Readings(address=address, source=source, values=tuple(values))
