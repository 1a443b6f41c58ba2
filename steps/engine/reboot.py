"""The reboot of a run: what is written down before it, the unit that goes on after it, and whether the right kernel came up."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from steps import resources
from steps.engine.context import Context, Outcome, failed
from steps.engine.folder import STATE_VARIABLE, RunFolder, boot_id
from steps.engine.runner import UNATTENDED
from steps.host.base import WritableHost
from steps.managers.base import module_files
from steps.model.action import ModuleBuilt, Reboot
from steps.model.base import phrase

UNITS = "/etc/systemd/system"
_CARRIED = (STATE_VARIABLE, "XDG_STATE_HOME", "PATH", "HOME")
_PATIENCE = 300.0
"""So long may systemd take to read its units anew; seconds. A busy or emulated machine needs more than a minute."""


def perform_reboot(action: Reboot, context: Context) -> Outcome:
    """Ask for the reboot once, and go on when another boot is seen; a mounted system has none to wait for."""
    if context.host.root != "/":
        return Outcome(status="skipped")
    asked = [entry for entry in context.journal.entries if entry.kind == "reboot-needed" and entry.action == action.id]
    if asked and asked[-1].data.get("boot_id") != boot_id():
        expected = asked[-1].data.get("kernel")
        return came_up(context, action, expected if isinstance(expected, str) else None)
    if not asked:
        unit = arm(context) if _has_systemd() else None
        # Only here, for it brings the records of a whole machine.
        from steps.detect import boot

        coming = next((entry.kernel for entry in boot.entries(context.outside) or () if entry.default), None)
        context.journal.append("reboot-needed", action.id, boot_id=boot_id(), unit=unit, kernel=coming)
    return Outcome(status="reboot")


def came_up(context: Context, action: Reboot, expected: str | None) -> Outcome:
    """Return whether the run can go on in the kernel that came up: it was expected, or has the driver that was built too."""
    kernel = (context.host.read("/proc/sys/kernel/osrelease") or "").strip()
    context.spool_line(action.id, f"[bringup: kernel {kernel or '?'} came up]")
    if expected is None or kernel in ("", expected):
        return Outcome(status="done")
    context.spool_line(action.id, f"[bringup: kernel {expected} was expected]")
    built = {probe.module for one in context.plan.actions for probe in one.done_when if isinstance(probe, ModuleBuilt)}
    if any(not module_files(context.host, module, kernel) for module in built):
        return failed(phrase("engine.failed.wrong-kernel", kernel=kernel, expected=expected))
    return Outcome(status="done")


# --- the unit ------------------------------------------------------------------------------------


def unit_name(folder: RunFolder) -> str:
    """Return the name of the unit that goes on with a run after a boot."""
    return f"bringup-resume-{folder.id}.service"


def arm(context: Context) -> str | None:
    """Write and enable the unit and return its name; `None` where that cannot be: then a person goes on with `bringup resume`."""
    name = unit_name(context.folder)
    words = () if context.attended else (UNATTENDED,)
    text = unit_text(context.folder, (*resources.runner_command(), str(context.folder.path), *words), os.environ)
    try:
        context.outside.write_bytes(f"{UNITS}/{name}", text.encode())
    except OSError:
        return None
    # To enable and to disable a unit make systemd read its units anew, too.
    if _systemctl(context.outside, "enable", name):
        return name
    disarm(context)
    return None


def disarm(context: Context) -> None:
    """Take the unit away, when there is one: the run has ended, or was taken back."""
    name = unit_name(context.folder)
    if context.host.root != "/" or context.outside.exists(f"{UNITS}/{name}") is not True:
        return
    _systemctl(context.outside, "disable", name)
    context.outside.remove(f"{UNITS}/{name}")


def unit_text(folder: RunFolder, argv: tuple[str, ...], environ: Mapping[str, str]) -> str:
    """Return the unit: started once at a boot, left alone by logind, its commands left to finish when it is stopped."""
    carried = "".join(f"Environment={_quoted(f'{name}={environ[name]}')}\n" for name in _CARRIED if name in environ)
    return (
        f"[Unit]\nDescription=bringup run {folder.id}, after the reboot\n"
        f"After=network-online.target systemd-modules-load.service dkms.service remote-fs.target\nWants=network-online.target\n"
        f'RequiresMountsFor="{_plain(argv[0])}" "{_plain(str(folder.path))}"\n'
        f"ConditionPathExists={_plain(str(folder.plan))}\n\n"
        f"[Service]\nType=exec\nExecStart={' '.join(_quoted(word) for word in argv)}\nKillMode=process\n{carried}\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )


def _quoted(word: str) -> str:
    """Return a word as systemd reads it back: its escapes, `%` and `$` doubled."""
    return f'"{_plain(word).replace("$", "$$")}"'


def _plain(word: str) -> str:
    return word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")


def _has_systemd() -> bool:
    """Return whether units can be made here: systemd is process 1, and we are root."""
    return os.geteuid() == 0 and Path("/run/systemd/system").is_dir()


def _systemctl(host: WritableHost, *words: str) -> bool:
    return host.run(("systemctl", *words), timeout=_PATIENCE).status == 0
