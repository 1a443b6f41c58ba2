"""Which kernels the boot loader may start next, read from its menu: GRUB's script, boot loader entries, systemd-boot."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Mapping
from typing import Any, Protocol

from steps.host.base import Result

_GRUB = ("/boot/grub/grub.cfg", "/boot/grub2/grub.cfg")
_ENVIRONMENTS = ("/boot/grub/grubenv", "/boot/grub2/grubenv")
_ENTRIES = ("/boot/loader/entries", "/efi/loader/entries", "/boot/efi/loader/entries")
_HEAD = re.compile(r"""^\s*(menuentry|submenu)\s+(?:'((?:[^']|'\\'')*)'|"([^"]*)")(.*)\{\s*$""")
_ID = re.compile(r"""(?:\$menuentry_id_option|--id)\s+['"]?([^'"\s{]+)""")
_LINUX = re.compile(r"^\s*linux(?:16|efi)?\s+(\S+)\s*(.*)$")
_INITRD = re.compile(r"^\s*initrd(?:16|efi)?\s+(.*)$")
_DEFAULT = re.compile(r"""^\s*set default=["']?([^"'\n]*?)["']?\s*$""", re.MULTILINE)
_KERNEL = re.compile(r"(?:vmlinuz|vmlinux|kernel|linux)-(\d.*)$")
_MOST_ENTRIES = 200
Entry = dict[str, Any]


class Tree(Protocol):
    """The files of a system."""

    def read(self, path: str) -> str | None:
        """Return a file's text, or `None`."""
        ...

    def listdir(self, path: str) -> tuple[str, ...] | None:
        """Return the names in a folder, or `None`."""
        ...


def menu(tree: Tree) -> Result:
    """Return the entries as one JSON list in the order of the menu, `null` where no menu could be read.

    An entry has `kernel` (its release, null when the file's name does not say), `title`, `default`, `options`, `initramfs`.
    """
    entries = _entries(tree)
    return Result(stdout=json.dumps({"entries": entries}) + "\n", status=0)


def _entries(tree: Tree) -> list[Entry] | None:
    environment = _environment(tree)
    for path in _GRUB:
        text = tree.read(path)
        if text is None:
            continue
        found = _grub(text)
        blocks = _blocks(tree, environment) if "blscfg" in text else []
        if found or blocks:
            return _chosen_by_grub([*blocks, *found], _wanted(text, environment))
    blocks = _blocks(tree, environment)
    return _chosen_by_loader(blocks, tree) if blocks else None


def _environment(tree: Tree) -> Mapping[str, str]:
    """Return the variables that GRUB keeps between boots."""
    text = next((text for path in _ENVIRONMENTS if (text := tree.read(path)) is not None), "")
    lines = (line.partition("=") for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {name: value for name, _, value in lines}


def _grub(text: str) -> list[Entry]:
    """Return the entries of GRUB's script; each knows its place: the titles, ids and numbers of the menus above it."""
    found: list[Entry] = []
    above: list[tuple[str, str, int] | None] = []
    counts = [0]
    entry: Entry | None = None
    for line in text.splitlines():
        head = _HEAD.match(line)
        if head is not None:
            title = (head[2] or head[3] or "").replace("'\\''", "'")
            id = _ID.search(head[4])
            place = (title, id[1] if id else title, counts[-1])
            counts[-1] += 1
            above.append(place)
            counts.append(0)
            if head[1] == "menuentry":
                entry = {"title": title, "place": [one for one in above if one is not None]}
        elif line.rstrip().endswith("{"):
            above.append(None)
            counts.append(counts[-1])
        elif line.strip() == "}" and above:
            counts.pop()
            if above.pop() is not None and entry is not None:
                if "kernel" in entry and len(found) < _MOST_ENTRIES:
                    found.append(entry)
                entry = None
        elif entry is not None:
            _read_line(entry, line)
    return found


def _read_line(entry: Entry, line: str) -> None:
    """Take what a line inside an entry says of kernel and initramfs."""
    if (linux := _LINUX.match(line)) is not None:
        entry |= {"kernel": _release(linux[1]), "options": linux[2].strip()}
    elif (initrd := _INITRD.match(line)) is not None:
        entry["initramfs"] = _in_boot(initrd[1].split()[-1])


def _release(path: str) -> str | None:
    """Return the kernel's release as its file is called after it; `None` for a file such as `vmlinuz-linux`."""
    found = _KERNEL.search(path.rpartition("/")[2])
    return found[1].removesuffix(".efi") if found else None


def _in_boot(path: str) -> str:
    """Return a path as the running system sees it: with a partition of its own, GRUB writes it without /boot."""
    path = re.sub(r"^\([^)]*\)|^\$\w+", "", path)
    return path if path.startswith("/boot/") else f"/boot{path}"


def _wanted(text: str, environment: Mapping[str, str]) -> str:
    """Return which entry GRUB starts by itself: once the one of `next_entry`, else what its script sets."""
    if environment.get("next_entry"):
        return environment["next_entry"]
    said = [value for value in _DEFAULT.findall(text) if "next_entry" not in value]
    wanted = said[-1] if said else "0"
    return (environment.get("saved_entry") or "0") if "saved_entry" in wanted else wanted


def _chosen_by_grub(entries: list[Entry], wanted: str) -> list[Entry]:
    """Return the entries with `default` set on the one that `wanted` names: a number, an id or a title, below each other with `>`."""
    steps = wanted.split(">")
    for entry in entries:
        place = entry.pop("place", None) or [(entry["title"], entry.pop("id", entry["title"]), entries.index(entry))]
        same = len(place) == len(steps) and all(_names(one, step) for one, step in zip(place, steps, strict=True))
        entry["default"] = same
    # A name of an entry that is gone leaves GRUB with the first.
    if entries and not any(entry["default"] for entry in entries):
        entries[0]["default"] = True
    return entries


def _names(place: tuple[str, str, int], step: str) -> bool:
    return step in place[:2] or step == str(place[2])


def _blocks(tree: Tree, environment: Mapping[str, str]) -> list[Entry]:
    """Return the boot loader entries (one file each), the newest kernel first as GRUB and systemd-boot order them."""
    from steps.host.rooted import version_key

    for folder in _ENTRIES:
        names = [name for name in tree.listdir(folder) or () if name.endswith(".conf")]
        found = [entry for name in names if (entry := _block(tree.read(f"{folder}/{name}") or "", name, environment)) is not None]
        if found:
            return sorted(found, key=lambda entry: version_key(entry["kernel"] or "0"), reverse=True)[:_MOST_ENTRIES]
    return []


def _block(text: str, name: str, environment: Mapping[str, str]) -> Entry | None:
    """Return one entry, or `None` for one that starts no Linux."""
    said = dict(line.split(None, 1) for line in text.splitlines() if len(line.split(None, 1)) == 2 and not line.startswith("#"))
    if "linux" not in said:
        return None
    options = said.get("options", "").strip().replace("$kernelopts", environment.get("kernelopts", ""))
    initrd = said.get("initrd", "").split()
    kernel = _release(said["linux"].strip()) or (said.get("version", "").strip() or None)
    entry: Entry = {"title": said.get("title", name).strip(), "id": name.removesuffix(".conf"), "kernel": kernel, "options": options}
    if initrd:
        entry["initramfs"] = _in_boot(initrd[-1])
    return entry


def _chosen_by_loader(entries: list[Entry], tree: Tree) -> list[Entry]:
    """Return the entries with `default` set on the one that systemd-boot starts by itself: what its file says, else the newest."""
    texts = (tree.read(f"{folder.rpartition('/')[0]}/loader.conf") for folder in _ENTRIES)
    said = re.search(r"^default\s+(\S+)", next((text for text in texts if text), ""), re.MULTILINE)
    pattern = said[1].removesuffix(".conf") if said else None
    for entry in entries:
        id = entry.pop("id")
        entry["default"] = pattern is not None and fnmatch.fnmatchcase(id, pattern)
    if not any(entry["default"] for entry in entries):
        entries[0]["default"] = True
    return entries
