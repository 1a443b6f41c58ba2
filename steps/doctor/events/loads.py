"""What a module says when it cannot start, and who keeps it from loading: another kernel's, without its firmware, on a blacklist."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place


class NoImage(Event):
    """The driver got no image of the firmware from the kernel."""


@parses(r"RmFetchGspRmImages: No firmware image found", "No firmware image found")
def no_image(found: re.Match[str], at: Place) -> NoImage:
    """Recognise the driver's word, which stands below the kernel's."""
    return NoImage(place=at)


class OtherKernels(Event):
    """A module of the driver was refused because it was built for another kernel; the kernels are named by new enough ones only."""

    module: str
    built: str | None = None
    running: str | None = None


@parses(
    r"\b(?P<module>nvidia(?:[_-]\w+)?|amdgpu): version magic ['\"](?P<built>\d\S*)[^'\"]*['\"] should be ['\"](?P<running>\d\S*)",
    ": version magic ",
)
def version_magic(found: re.Match[str], at: Place) -> OtherKernels:
    """Recognise the comparison of the two kernels' names."""
    return OtherKernels(place=at, module=found["module"], built=found["built"], running=found["running"])


@parses(
    r"\b(?P<module>nvidia(?:[_-]\w+)?|amdgpu): (?:disagrees about version of symbol|no symbol version for) "
    r"(?:module_layout|struct_module)\b",
    "ymbol version for module_layout", "version of symbol module_layout", "version of symbol struct_module",
)  # fmt: skip
def other_layout(found: re.Match[str], at: Place) -> OtherKernels:
    """Recognise that the kernel itself, not another module of the driver, was another one when the module was built."""
    return OtherKernels(place=at, module=found["module"])


class Denied(Event):
    """A module that was wanted at boot is on a blacklist of modprobe's."""

    module: str


@parses(
    r"\bModule ['\"](?P<module>nvidia(?:[_-]\w+)?|amdgpu)['\"] is (?:deny-listed|blacklisted|in the deny-?list)",
    "is deny-listed", "is blacklisted", "is in the deny",
)  # fmt: skip
def denied(found: re.Match[str], at: Place) -> Denied:
    """Recognise systemd-modules-load of all ages."""
    return Denied(place=at, module=found["module"].replace("-", "_"))
