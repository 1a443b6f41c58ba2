"""Who uses the GPUs or holds the driver's module now: processes and their people, containers, jobs, the screen, services."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from steps.host.local import USERS
from steps.model.base import Record
from steps.model.software import GpuUser

if TYPE_CHECKING:
    from steps.host.base import Host

_SCREEN = frozenset(
    (
        "Xorg",
        "X",
        "Xwayland",
        "gnome-shell",
        "kwin_wayland",
        "kwin_x11",
        "sway",
        "weston",
        "plasmashell",
        "gdm-x-session",
        "gnome-remote-de",
    )
)
_OWN = frozenset(("nvidia-persiste", "nvidia-persistenced", "nv-hostengine", "dcgm-exporter", "nv-fabricmanage", "nvidia-fabricma"))
"""Services of the driver itself, as the kernel cuts their names; its packages stop and start them."""
_UNITS = ("nvidia-persistenced", "nvidia-dcgm", "dcgm-exporter", "nvidia-fabricmanager", "display-manager")
_JOBS = ("squeue", "--noheader", "--format=%i %u %j", "--states=running")
Kind = Literal["process", "container", "job", "screen", "service"]


class Neighbour(Record):
    """One who would notice; `work` says whether taking the driver away would end something of theirs."""

    kind: Kind
    name: str
    pid: int | None = None
    person: str | None = None
    where: str | None = None
    """The GPUs it uses, or the kind of container it runs in."""
    work: bool = True


class Neighbours(Record):
    """All that were found; `partial` says that others may not be seen without root rights."""

    found: tuple[Neighbour, ...] = ()
    partial: bool = False

    @property
    def at_work(self) -> tuple[Neighbour, ...]:
        """Those whose work would end."""
        return tuple(one for one in self.found if one.work)


class _Told(msgspec.Struct, frozen=True):
    """The answer to the question who holds a device file."""

    partial: bool = False
    users: tuple[GpuUser, ...] = ()


def neighbours(host: Host) -> Neighbours:
    """Return who is there, those with work to lose first."""
    try:
        told = msgspec.json.decode(host.run(USERS).stdout, type=_Told)
    except (msgspec.MsgspecError, UnicodeError):
        told = _Told(partial=True)
    people = _people(host)
    found = [*(_user(host, user, people) for user in told.users), *_jobs(host), *_services(host)]
    return Neighbours(found=tuple(sorted(found, key=lambda one: not one.work)), partial=told.partial)


def _user(host: Host, user: GpuUser, people: dict[str, str]) -> Neighbour:
    """Return one process; those of a screen and of the driver's own services lose nothing that matters."""
    name = user.name or "?"
    kind: Kind = "container" if user.container else "screen" if name in _SCREEN else "service" if name in _OWN else "process"
    uid = re.search(r"^Uid:\s+(\d+)", host.read(f"/proc/{user.pid}/status") or "", re.MULTILINE)
    person = people.get(uid[1], uid[1]) if uid else None
    cards = ", ".join(sorted(device.removeprefix("/dev/nvidia") for device in user.devices if re.search(r"nvidia\d+$", device)))
    where = user.container or (f"GPU {cards}" if cards else None)
    return Neighbour(kind=kind, name=name, pid=user.pid, person=person, where=where, work=kind in ("process", "container"))


def _people(host: Host) -> dict[str, str]:
    """Return account names by number."""
    lines = (line.split(":") for line in (host.read("/etc/passwd") or "").splitlines())
    return {fields[2]: fields[0] for fields in lines if len(fields) > 2}


def _jobs(host: Host) -> tuple[Neighbour, ...]:
    """Return the jobs that Slurm runs on this node; none where Slurm is not at work here."""
    if host.run(("systemctl", "is-active", "slurmd")).stdout.strip() != "active":
        return ()
    told = host.run((*_JOBS, f"--nodelist={host.name.partition('.')[0]}"))
    jobs = [line.split(None, 2) for line in told.stdout.splitlines() if told.status == 0 and len(line.split(None, 2)) == 3]
    return tuple(Neighbour(kind="job", name=name.strip(), person=person, where=f"Slurm {id}") for id, person, name in jobs)


def _services(host: Host) -> tuple[Neighbour, ...]:
    """Return the services that hold the module and are stopped and started with the driver."""
    states = host.run(("systemctl", "is-active", *_UNITS)).stdout.split()
    active = [unit for unit, state in zip(_UNITS, states, strict=False) if state == "active"] if len(states) == len(_UNITS) else []
    return tuple(Neighbour(kind="screen" if unit == "display-manager" else "service", name=unit, work=False) for unit in active)
