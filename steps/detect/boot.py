"""What the next boot may start: the boot loader's kernels, and whether nouveau waits in their initramfs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from steps.host.local import BOOT_MENU, INITRAMFS
from steps.model.machine import BootEntry

if TYPE_CHECKING:
    from steps.detect.probes import Probes
    from steps.host.base import Host

_NOUVEAU = re.compile(r"/nouveau\.ko(?:\.\w+)?$")
_KEPT_OUT = re.compile(r"^\s*(?:blacklist\s+nouveau\b|install\s+nouveau\s+/\S*/(?:false|true)\b)", re.MULTILINE)
_BY_OPTION = re.compile(r"(?:modprobe\.blacklist|module_blacklist|rd\.driver\.blacklist)=(?:[\w,-]*,)?nouveau\b|nouveau\.modeset=0")
_ASKING = 150.0


class _Menu(msgspec.Struct, frozen=True):
    """The answer to the question about the menu."""

    entries: tuple[BootEntry, ...] | None = None


class _Image(msgspec.Struct, frozen=True):
    """The answer to the question about an image."""

    names: tuple[str, ...] | None = None


def entries(host: Probes | Host) -> tuple[BootEntry, ...] | None:
    """Return the boot loader's entries; `None` where its menu could not be read."""
    try:
        return msgspec.json.decode(host.run(BOOT_MENU).stdout, type=_Menu).entries
    except (msgspec.MsgspecError, UnicodeError):
        return None


def nouveau_comes(host: Host, entry: BootEntry) -> bool | None:
    """Return whether the entry's initramfs would load nouveau before NVIDIA's module is there; `None` when it could not be read.

    It does not where the module is not in the image, or where the image or the kernel's options keep it out.
    """
    if _BY_OPTION.search(entry.options):
        return False
    if entry.initramfs is None:
        return None
    try:
        names = msgspec.json.decode(host.run((*INITRAMFS, entry.initramfs), timeout=_ASKING).stdout, type=_Image).names
    except (msgspec.MsgspecError, UnicodeError):
        return None
    if names is None:
        return None
    if not any(_NOUVEAU.search(f"/{name}") for name in names):
        return False
    # The image holds copies of the settings that lay on disk when it was made; their text is not to be had from it.
    settings = [f"/{name}" for name in names if name.endswith(".conf")]
    return not any(_KEPT_OUT.search(host.read(path) or "") for path in settings)
