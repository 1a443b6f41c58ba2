"""What is asked of a simulated transaction before anything is changed: what would go, and whether what comes fits."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal

from steps import text
from steps.catalog import load
from steps.errors import PreflightError
from steps.managers.base import Simulation
from steps.model.action import Packages
from steps.model.base import Record

if TYPE_CHECKING:
    from steps.host.base import Host


class Protected(Record):
    """A package that no plan may remove, by name or shell pattern; `{kernel}` is the target's kernel."""

    pattern: str
    reason: Literal["base", "remote", "network", "desktop", "boot", "kernel"]


def protected(name: str, kernel: str | None) -> str | None:
    """Return why the package called `name` may never be removed, or `None` when it may."""
    bare = name.partition(":")[0]
    rows: tuple[Protected, ...] = load.rows("protected.toml", "protected", Protected)
    for row in rows:
        if "{kernel}" in row.pattern and kernel is None:
            continue
        if fnmatchcase(bare, row.pattern.replace("{kernel}", kernel or "")):
            return row.reason
    return None


_COMES_WITH_OTHERS = ("desktop", "base")
"""Reasons of protection that end where the package was not there before: it came with what is taken back."""


def check_return(action: Packages, simulation: Simulation, may_go: frozenset[str], *, kernel: str | None = None) -> None:
    """Raise `PreflightError` when a transaction of an undo would remove more than `may_go`, or what no plan may remove.

    A display server or an init that came with a driver may go with it: whatever of somebody else's needs it would go too, which is
    refused. What the machine boots with or is reached by stays in any case.
    """
    if simulation.problem is not None:
        raise PreflightError("packages-refused", action=action.id, reason=text.say("en", simulation.problem))
    _spare_protected(simulation, kernel, came=may_go)
    others = [name for name in simulation.removed if name not in may_go]
    if others:
        raise PreflightError("undo-removes", packages=" ".join(others))


def check(
    action: Packages,
    simulation: Simulation,
    host: Host,
    *,
    kernel: str | None = None,
    held: frozenset[str] = frozenset(),
    aside: int | None = None,
) -> None:
    """Raise `PreflightError` when the simulated transaction must not be started; nothing was changed yet.

    `held` are the packages that somebody has held back, `aside` the size of what is put aside before the change.
    """
    if simulation.problem is not None:
        raise PreflightError("packages-refused", action=action.id, reason=text.say("en", simulation.problem))
    _spare_protected(simulation, kernel)
    _refuse_others(simulation, action)
    _respect_holds(simulation, held)
    _refuse_older(simulation, action)
    check_space(simulation, host, aside)


def _spare_protected(simulation: Simulation, kernel: str | None, came: frozenset[str] = frozenset()) -> None:
    """Raise when the transaction would remove what no plan may; what only `came` with what is taken back may mostly go."""
    for name in simulation.removed:
        reason = protected(name, kernel)
        if reason is None or (name in came and reason in _COMES_WITH_OTHERS):
            continue
        raise PreflightError("removal-protected", package=name, reason=reason)


def _refuse_others(simulation: Simulation, action: Packages) -> None:
    """Raise when the transaction would remove a package that the action does not let go."""
    unexpected = [name for name in simulation.removed if not any(fnmatchcase(name.partition(":")[0], one) for one in action.may_remove)]
    if unexpected:
        raise PreflightError("removal-refused", packages=" ".join(unexpected), count=len(unexpected))


def _respect_holds(simulation: Simulation, held: frozenset[str]) -> None:
    """Raise when the transaction would change what somebody has held back: a simulation passes, and apt refuses the deed."""
    changed = [change.name for change in simulation.replaced if change.name in held]
    if changed:
        raise PreflightError("packages-held", packages=" ".join(changed))


def _refuse_older(simulation: Simulation, action: Packages) -> None:
    """Raise when the transaction would take a package back to an older version that the action does not name."""
    if simulation.downgraded:
        unnamed = [
            name for name in simulation.downgraded if not any(fnmatchcase(name.partition(":")[0], one) for one in action.may_downgrade)
        ]
        if unnamed:
            raise PreflightError("downgrade-refused", packages=" ".join(unnamed), count=len(unnamed))


_KEPT = "/var/lib/bringup"
_SPARE = 200 << 20
"""What a system needs to stay usable: logs, the next boot's files."""


def check_space(simulation: Simulation, host: Host, aside: int | None = None) -> None:
    """Raise when what comes, or is put `aside`, does not fit where it goes; apt itself checks the download only.

    Packages that were fetched lie there until all are unpacked, so places on one disk add up.
    """
    needs = {"/usr": simulation.disk_bytes, "/var/cache": simulation.download_bytes, "/boot": _next_initramfs(simulation, host)}
    needs[_KEPT if host.exists(_KEPT) else _KEPT.rpartition("/")[0]] = aside
    disks = _disks(("/", *needs), host)
    grouped: dict[str, list[str]] = {}
    for path in needs:
        # Where the disk is not known, each place is looked at by itself.
        grouped.setdefault(disks.get(path, path), []).append(path)
    for paths in grouped.values():
        known = [size for path in paths if (size := needs[path]) is not None]
        free = host.free_bytes(paths[0])
        needed = sum(size for size in known if size > 0) + _SPARE
        if any(size > 0 for size in known) and free is not None and needed > free:
            raise PreflightError("space-too-small", path=paths[0], needed=_gigabytes(needed), free=_gigabytes(free))


def _disks(paths: tuple[str, ...], host: Host) -> dict[str, str]:
    """Return the device number that each path lies on; without those that are not there."""
    told = host.run(("stat", "-L", "-c", "%d %n", "--", *paths)).stdout
    return {path: device for device, path in (line.split(" ", 1) for line in told.splitlines() if " " in line)}


_BOOT = (
    "dkms",
    "linux-image-*",
    "linux-modules-*",
    "kernel-*",
    "initramfs-tools*",
    "dracut*",
    "*nvidia*dkms*",
    "*nvidia-kernel*",
    "kmod-*",
)
"""Packages after which an initramfs is written anew."""


def _next_initramfs(simulation: Simulation, host: Host) -> int | None:
    """Return how much `/boot` is needed for a while, a new initramfs being written beside the old one; `None`: none is, or not known."""
    if not any(fnmatchcase(change.name, pattern) for change in simulation.changes for pattern in _BOOT):
        return None
    images = (*host.glob("/boot/initrd*"), *host.glob("/boot/initramfs*"))
    told = host.run(("stat", "-L", "-c", "%s", "--", *images)).stdout.split() if images else []
    return max((int(size) for size in told if size.isdigit()), default=None)


def _gigabytes(size: int) -> str:
    """Return a size as disks are labelled."""
    return f"{size / 1e9:.1f} GB"
