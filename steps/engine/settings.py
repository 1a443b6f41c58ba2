"""The settings of a system before its packages change, and the way back to them: sources, pins, modules, boot, configuration files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from steps.catalog import load
from steps.engine.command import run_command
from steps.engine.context import Context
from steps.engine.durable import make_folder, write_whole
from steps.host.base import Host
from steps.managers.base import PackageManager
from steps.model.action import Packages, Write
from steps.model.base import Record
from steps.model.plan import sha256

Kind = Literal["sources", "modules", "initramfs", "boot", "libraries", "package"]
_MOST_BYTES = 1 << 20
_LEFTOVERS = (".dpkg-dist", ".dpkg-old", ".dpkg-bak", ".ucf-dist", ".ucf-old", ".rpmnew", ".rpmsave", ".rpmorig")
"""What a manager leaves beside a configuration file that somebody had changed; `.dpkg-new` is dpkg's own, while it works."""
_REBUILDS: Mapping[Kind, tuple[tuple[str, ...], ...]] = {
    "modules": (("update-initramfs", "-u", "-k", "all"), ("dracut", "--force", "--regenerate-all")),
    "initramfs": (("update-initramfs", "-u", "-k", "all"), ("dracut", "--force", "--regenerate-all")),
    "boot": (("update-grub",), ("grub2-mkconfig", "-o", "/boot/grub2/grub.cfg")),
}
"""What makes changed settings count: the first of each row that the system has."""


class Patterns(Record):
    """Which files are settings of one kind."""

    what: Kind
    patterns: tuple[str, ...]


def patterns() -> tuple[Patterns, ...]:
    """Return the table of settings."""
    found: tuple[Patterns, ...] = load.rows("return_point.toml", "settings", Patterns)
    return found


class Setting(Record):
    """One file or link as it was."""

    kind: Kind
    digest: str
    data: bytes | None = None
    """`None` for a link, and for what is too large to be a setting: that can be compared and not put back."""
    link: str | None = None
    mode: int | None = None
    owner: str | None = None
    """"uid:gid"."""


_FOUND = "settings-found.json"
Settings = Mapping[str, Setting]


def seen(action: Packages, context: Context, tool: PackageManager, names: Iterable[str]) -> Settings:
    """Return the settings as they are, with the configuration files of the packages called `names`."""
    host = context.host
    kinds: dict[str, Kind] = {}
    for path in tool.settings_of(tuple(names), host):
        kinds |= dict.fromkeys((path, *(f"{path}{left}" for left in _LEFTOVERS)), "package")
    for row in patterns():
        kinds |= {path: row.what for pattern in row.patterns for path in host.glob(pattern)}
    # What other actions of the plan write has a way back of its own, and may be written at this moment.
    written = {other.path for other in context.plan.actions if isinstance(other, Write)}
    found = {path: setting for path, kind in kinds.items() if path not in written and (setting := _setting(path, kind, host)) is not None}
    return _with_marks(found, host)


def _setting(path: str, kind: Kind, host: Host) -> Setting | None:
    link = host.readlink(path)
    if link is not None:
        return Setting(kind=kind, digest=f"-> {link}", link=link)
    data = host.read_bytes(path)
    if data is None:
        return None
    return Setting(kind=kind, digest=sha256(data), data=data if len(data) < _MOST_BYTES else None)


def _with_marks(found: Mapping[str, Setting], host: Host) -> Settings:
    """Return the settings with mode and owner, asked for all at once."""
    if not found:
        return {}
    told = host.run(("stat", "-c", "%a %u:%g %n", "--", *found), timeout=30.0).stdout
    marks = {
        path: (int(mode, 8), owner) for mode, owner, path in (line.split(" ", 2) for line in told.splitlines() if line.count(" ") >= 2)
    }
    return {
        path: msgspec.structs.replace(setting, mode=marks[path][0], owner=marks[path][1]) if path in marks else setting
        for path, setting in found.items()
    }


# --- written down -----------------------------------------------------------------------------------


def register(action: Packages, context: Context, now: Settings) -> None:
    """Write down the settings before the change; a second try keeps what the first one found of what it changed."""
    first, after = _before(action, context), _after(action, context)
    if first is not None:
        now = {
            **{path: setting for path, setting in first.items() if after is None or _digest(now, path) == after.get(path)},
            **{path: setting for path, setting in now.items() if after is not None and setting.digest != after.get(path)},
        }
    _write(action, context, "settings.json", msgspec.json.encode(now))


def claim(action: Packages, context: Context, now: Settings) -> None:
    """Let all that changes from now on be the run's doing, as a repair's is: what others changed since the last try is theirs."""
    if _before(action, context) is not None and _after(action, context) is not None:
        register(action, context, now)
        (context.folder.kept(action.id) / "settings-after.json").unlink()


def register_after(action: Packages, context: Context, now: Settings) -> None:
    """Write down the settings as the change left them."""
    _write(action, context, "settings-after.json", msgspec.json.encode({path: setting.digest for path, setting in now.items()}))


def register_undo(action: Packages, context: Context, now: Settings) -> Settings:
    """Write down the settings as an undo finds them, and return them: as the first one found them, when that was cut off."""
    try:
        found: Settings = msgspec.json.decode((context.folder.kept(action.id) / _FOUND).read_bytes(), type=dict[str, Setting])
    except FileNotFoundError:
        _write(action, context, _FOUND, msgspec.json.encode(now))
        return now
    return found


def is_undo_begun(action: Packages, context: Context) -> bool:
    """Return whether an undo has begun here that may have changed something."""
    return (context.folder.kept(action.id) / _FOUND).exists()


def forget_undo(action: Packages, context: Context) -> None:
    """Let the next undo look for itself: this one changed nothing."""
    (context.folder.kept(action.id) / _FOUND).unlink(missing_ok=True)


def _write(action: Packages, context: Context, name: str, data: bytes) -> None:
    folder = context.folder.kept(action.id)
    if not folder.exists():
        make_folder(folder, gid=context.owner.gid)
    # Sources may name credentials, hence the mode.
    write_whole(folder / name, data, 0o600)


def _before(action: Packages, context: Context) -> Settings | None:
    try:
        return msgspec.json.decode((context.folder.kept(action.id) / "settings.json").read_bytes(), type=dict[str, Setting])
    except FileNotFoundError:
        return None


def _after(action: Packages, context: Context) -> Mapping[str, str] | None:
    try:
        return msgspec.json.decode((context.folder.kept(action.id) / "settings-after.json").read_bytes(), type=dict[str, str])
    except FileNotFoundError:
        return None


def _digest(settings: Settings, path: str) -> str | None:
    return settings[path].digest if path in settings else None


# --- the way back -----------------------------------------------------------------------------------


def keep_edited(action: Packages, context: Context, then: Settings) -> tuple[str, ...]:
    """Keep what somebody made of configuration files that go with their packages, say where, and return their paths."""
    before, after = _before(action, context) or {}, _after(action, context) or {}
    kept: list[str] = []
    for path, setting in then.items():
        came = setting.kind == "package" and path not in before and path in after
        if came and setting.data is not None and setting.digest != after[path]:
            name = f"edited{path.replace('/', '-')}"
            _write(action, context, name, setting.data)
            context.spool_line(
                action.id, f"[bringup: {path} was changed since; what it held is in {context.folder.kept(action.id) / name}]"
            )
            kept.append(path)
    return tuple(kept)


def put_back(action: Packages, context: Context, then: Settings, now: Settings) -> tuple[str, ...]:
    """Put back what differs, and return what was left alone because somebody else had changed it.

    `then` are the settings as the undo found them, `now` after the packages were taken back.
    """
    before, after = _before(action, context), _after(action, context)
    if before is None:
        return ()
    left: list[str] = []
    kinds: set[Kind] = set()
    for path in sorted({*before, *now}):
        if _digest(before, path) == _digest(now, path):
            continue
        if after is not None and _digest(then, path) != after.get(path):
            left.append(path)
            context.spool_line(action.id, f"[bringup: {path} was changed since and is left alone]")
            continue
        _restore(action, context, path, before.get(path))
        kinds.add((before.get(path) or now[path]).kind)
    for commands in {_REBUILDS[kind] for kind in kinds if kind in _REBUILDS}:
        _rebuild(action, context, commands)
    forget_undo(action, context)
    return tuple(left)


def _restore(action: Packages, context: Context, path: str, setting: Setting | None) -> None:
    """Make the file at `path` what it was."""
    if setting is None:
        context.spool_line(action.id, f"remove {path}")
        context.host.remove(path)
    elif setting.link is not None:
        run_command(context, action, ("ln", "--symbolic", "--force", "--no-dereference", "--", setting.link, path))
    elif setting.data is not None:
        context.spool_line(action.id, f"restore {path}")
        context.host.mkdir(path.rpartition("/")[0])
        context.host.write_bytes(path, setting.data, setting.mode or 0o644)
        if setting.owner is not None and setting.mode is not None:
            run_command(context, action, ("chown", "--no-dereference", setting.owner, "--", path))
            run_command(context, action, ("chmod", f"{setting.mode:o}", "--", path))


def _rebuild(action: Packages, context: Context, commands: tuple[tuple[str, ...], ...]) -> None:
    for argv in commands:
        if any(context.host.exists(f"{folder}/{argv[0]}") for folder in ("/usr/sbin", "/usr/bin", "/sbin")):
            run_command(context, action, argv)
            return
