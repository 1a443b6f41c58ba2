"""Graphics profiles of laptops: the programs that switch them, the files that they write, and which profile was chosen last."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from steps.doctor.events.typed import Command
from steps.doctor.facts.modules import Setting
from steps.doctor.told import Fact

BACK = {
    "prime-select": ("prime-select", "on-demand"),
    "envycontrol": ("envycontrol", "-s", "hybrid"),
    "supergfxctl": ("supergfxctl", "-m", "Hybrid"),
    "optimus-manager": ("optimus-manager", "--switch", "hybrid"),
    "system76-power": ("system76-power", "graphics", "hybrid"),
}
"""The programs that turn NVIDIA's card off and on by keeping its module out, and what each is told to have it back."""
_FILES = re.compile(r"/(?:blacklist-nvidia|supergfxd|system76-power|\d\d-nvidia-modprobe-bbswitch-G\d+)\.conf$")
"""What they write for a profile without NVIDIA's card; a file that its program works around when it wants the card is none of them."""
_WITHOUT = frozenset(("intel", "intel2", "amd", "integrated", "igpu"))
_WITH = frozenset(("nvidia", "on-demand", "offload", "hybrid", "dedicated", "discrete", "compute", "nvidianomodeset", "asusmuxdgpu"))


def away(settings: Iterable[Setting]) -> Setting | None:
    """Return the setting that lets modprobe load nothing in place of nvidia, or `None`."""
    return next((one for one in settings if one.verb == "alias" and one.module == "nvidia" and one.rest == "off"), None)


def listed(settings: Iterable[Setting]) -> Setting | None:
    """Return the blacklist entry for nvidia that such a program wrote, or `None`: anybody may have written another one."""
    return next((one for one in settings if one.verb == "blacklist" and one.module == "nvidia" and _FILES.search(one.place.source)), None)


def chosen(commands: Iterable[Command]) -> Fact | None:
    """Return the command that chose a profile without NVIDIA's card, where it is the last one that chose any; else `None`."""
    last: Fact | None = None
    for command in commands:
        word = _profile_in(command.words[1:]) if command.program in BACK else None
        if word is not None:
            last = Fact(place=command.place, value=word)
    return last if last is not None and last.value in _WITHOUT else None


def _profile_in(words: Iterable[str]) -> str | None:
    """Return the profile that a command names, which options or another command may follow; the last one where there are two."""
    bare = [word.rpartition("=")[2].rstrip(";").lower() for word in words]
    return next((word for word in reversed(bare) if word in _WITHOUT | _WITH), None)


def back(settings: Iterable[Setting], commands: Iterable[Command], read: Callable[[str], str | None]) -> tuple[str, ...] | None:
    """Return the command that has the card back, by the program that a file or a command names; `None` where none is named."""
    typed, entry = chosen(commands), listed(settings)
    path = entry.place.source if entry is not None else ""
    known = (
        "supergfxctl" if path.endswith("/supergfxd.conf") else None,
        "system76-power" if path.endswith("/system76-power.conf") else None,
        "envycontrol" if path and "EnvyControl" in (read(path) or "") else None,
        next((name for name in BACK if typed is not None and name in typed.place.text), None),
    )
    return next((BACK[name] for name in known if name is not None), None)
