"""Lines by which a package manager says that it got on: what failed before them was overcome."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place


class SetUp(Event):
    """A package was configured."""

    package: str


@parses(r"^Setting up (?P<package>[a-z0-9][\w.+-]*)", "Setting up ")
def set_up(found: re.Match[str], at: Place) -> SetUp:
    """Recognise dpkg."""
    return SetUp(place=at, package=found["package"])
