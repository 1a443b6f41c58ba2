"""What the next boot may start: the boot loader's kernels, and whether a driver of the kernel's own waits in their initramfs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from steps.catalog.linux import InTree, in_tree
from steps.detect.modules import kept_by_option, kept_by_setting, spelt
from steps.host.local import BOOT_MENU, INITRAMFS
from steps.model.software import BootEntry

if TYPE_CHECKING:
    from steps.detect.probes import Probes
    from steps.host.base import Host

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
    """Return whether the entry's initramfs would load nouveau, or nova, before NVIDIA's module is there; `None` when it was not read.

    It does not where the module is not in the image, or where the image or the kernel's options keep it out.
    """
    left = [row for row in in_tree() if not kept_by_option(row, entry.options)]
    if not left:
        return False
    if entry.initramfs is None:
        return None
    try:
        names = msgspec.json.decode(host.run((*INITRAMFS, entry.initramfs), timeout=_ASKING).stdout, type=_Image).names
    except (msgspec.MsgspecError, UnicodeError):
        return None
    if names is None:
        return None
    # The image holds copies of the settings that lay on disk when it was made; their text is not to be had from it.
    settings = [host.read(f"/{name}") or "" for name in names if name.endswith(".conf")]
    return any(_inside(row, names) and not any(kept_by_setting(row, text) for text in settings) for row in left)


def _inside(row: InTree, names: tuple[str, ...]) -> bool:
    """Return whether the module is among the files of an image."""
    return any(re.search(rf"/{spelt(row)}\.ko(?:\.\w+)?$", f"/{name}") for name in names)
