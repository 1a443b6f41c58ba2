"""Switches that a service of ours writes at each start and takes back at its end: sleep states and ACS; an earlier plan's are kept."""

from __future__ import annotations

import re

from steps.model.action import AnyAction, Command, FileIs, Run, Service, Write
from steps.model.base import Words, phrase
from steps.model.machine import Machine
from steps.model.plan import Target

CPU = "/sys/devices/system/cpu"
UNITS = "/etc/systemd/system"
_LINE = re.compile(r"^w (\S+) - - - - (\S+)$", re.MULTILINE)
Switches = dict[str, str]
"""What is written where."""


def unit_of(name: str) -> str:
    """Return the name of our service for one kind of switch."""
    return f"bringup-{name}.service"


def files_of(name: str) -> tuple[str, str]:
    """Return the files that hold what a service writes at its start, and at its end."""
    return f"/etc/bringup/{name}-on.conf", f"/etc/bringup/{name}-off.conf"


def sysfs(machine: Machine, target: Target, name: str, title: Words, on: Switches, off: Switches) -> tuple[AnyAction, ...]:
    """Return a service that writes files of /sys, by systemd's own writer of such files.

    What an earlier plan switched is in the file and stays: it looks switched already and is not in `on`. The value of before the first
    plan is kept, too.
    """
    start, stop = files_of(name)
    texts = machine.told.texts
    now, then = _written(texts.get(start, "")), _written(texts.get(stop, ""))
    lines = {start: _lines({**now, **on}), stop: _lines({**off, **then})}
    writes = ("/bin/systemd-tmpfiles --create " + start, "/bin/systemd-tmpfiles --create " + stop)
    return service(name, title, lines, (writes[0],), (writes[1],), again=start in texts and target.root == "/")


def _written(text: str) -> Switches:
    return {found[1]: found[2] for found in _LINE.finditer(text)}


def _lines(switches: Switches) -> str:
    return "".join(f"w {path} - - - - {value}\n" for path, value in sorted(switches.items()))


def service(
    name: str,
    title: Words,
    files: dict[str, str],
    start: tuple[str, ...],
    stop: tuple[str, ...],
    *,
    again: bool,
) -> tuple[AnyAction, ...]:
    """Return the files, the unit and its start; with `again`, one that runs is stopped and started anew, and undo does the same.

    Undo goes backwards: it stops the unit by the new files, puts the old ones back, and starts it by those.
    """
    text = (
        "[Unit]\n"
        f"Description=bringup: {name}\n"
        "\n[Service]\nType=oneshot\nRemainAfterExit=yes\n"
        + "".join(f"ExecStart={line}\n" for line in start)
        + "".join(f"ExecStop={line}\n" for line in stop)
        + "\n[Install]\nWantedBy=multi-user.target\n"
    )
    unit, why = unit_of(name), phrase("firmware.action.why")
    contents = {**files, f"{UNITS}/{unit}": text}
    writes = tuple(
        Write(
            id=f"firmware.{name}.{number}",
            title=phrase("firmware.action.file", path=path),
            path=path,
            text=content,
            done_when=(FileIs(path=path, text=content),),
        )
        for number, (path, content) in enumerate(contents.items(), start=1)
    )
    needs = tuple(action.id for action in writes)
    enable = Service(id=f"firmware.{name}.service", title=title, why=why, unit=unit, needs=needs, seconds=2.0)
    if not again:
        return (*writes, enable)
    first, anew = ("systemctl", "start", unit), ("systemctl", "restart", unit)
    before = Run(id=f"firmware.{name}.before", title=title, why=why, argv=first, undo=(Command(argv=first),), seconds=2.0)
    stopped = (Command(argv=("systemctl", "stop", unit)),)
    restart = Run(id=f"firmware.{name}.again", title=title, why=why, argv=anew, undo=stopped, seconds=2.0)
    return (before, *writes, enable, restart)
