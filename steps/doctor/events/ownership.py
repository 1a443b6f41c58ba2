"""What a person finds out of the driver's files: whose they are, what the initramfs holds, and what was done to the machine."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place


class Unowned(Event):
    """No package has this file."""

    path: str


@parses(
    r"no path found matching pattern \*?(?P<deb>/\S*(?:nvidia|libcuda)[^\s*]*)|"
    r"file (?P<rpm>/\S*(?:nvidia|libcuda)\S*) is not owned by any package|"
    r"No package owns (?P<pacman>/\S*(?:nvidia|libcuda)\S*)",
    "no path found matching", "not owned by any package", "No package owns",
)  # fmt: skip
def unowned(found: re.Match[str], at: Place) -> Unowned:
    """Recognise dpkg, rpm and pacman."""
    return Unowned(place=at, path=found["deb"] or found["rpm"] or found["pacman"])


class LibraryFile(Event):
    """A list of files shows a library of the driver, whose name tells its version; `used` where the loader's name points at it."""

    version: str
    path: str
    used: bool


@parses(
    r"^[ \t]*(?:[-l]r[\w-]{8}[.+@]? [^\n]{8,80}? )?(?P<from>(?:/\S*/)?lib(?:nvidia-ml|cuda)\.so(?:\.1)? -> )?"
    r"(?P<path>(?:/\S*/)?lib(?:nvidia-ml|cuda)\.so\.(?P<version>[3-9]\d\d\.\d+(?:\.\d+)*))[ \t]*$",
    "libnvidia-ml.so", "libcuda.so",
)  # fmt: skip
def library_file(found: re.Match[str], at: Place) -> LibraryFile:
    """Recognise a whole line of ls, find or locate; in other lines such a name may be what is missing."""
    path = f"{found['from'] or ''}{found['path']}"
    return LibraryFile(place=at, version=found["version"], path=path, used=found["from"] is not None)


class ImageHolds(Event):
    """A list of the initramfs shows the driver's module in it."""


@parses(r"(?:^|\s)(?:\./)?(?:usr/)?lib/modules/[^/\s]+/\S*?\bnvidia\.ko(?:\.\w+)?$", "/nvidia.ko")
def image_holds(found: re.Match[str], at: Place) -> ImageHolds:
    """Recognise lsinitrd, lsinitramfs and lsinitcpio: their paths begin inside the image, without a slash."""
    return ImageHolds(place=at)


class Rebooted(Event):
    """A person started the machine anew."""


@parses(
    r"^(?:[^\n$#>]{0,60}[$#>] +)?(?:sudo +)?(?:systemctl +)?(?:reboot(?: +now)?|shutdown +-r\b[^\n]*)[ \t]*$"
    r"(?=\n+[^\n]*\S)",
    " reboot", "shutdown -r",
    lines=3,
    typed=True,
)  # fmt: skip
def rebooted(found: re.Match[str], at: Place) -> Rebooted:
    """Recognise the command, alone in its line; what follows was seen afterwards, and where nothing follows it may be yet to come."""
    return Rebooted(place=at)


class SetUpBeside(Event):
    """A driver is set up beside a loaded module of another version, as the package of Debian warns."""

    version: str
    module: str


@parses(
    r"NVIDIA driver that is being installed \(version (?P<version>[\d.]+)\) does not match the nvidia kernel module currently loaded "
    r"\(version (?P<module>[\d.]+)\)",
    "that is being installed",
    lines=3,
)  # fmt: skip
def set_up_beside(found: re.Match[str], at: Place) -> SetUpBeside:
    """Recognise the warning."""
    return SetUpBeside(place=at, version=found["version"], module=found["module"])
