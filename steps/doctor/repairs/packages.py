"""Repairs of a package manager that will not go on: what was cut off, what is held, where no room is left."""

from __future__ import annotations

import re

from steps.doctor.diagnosis import Step
from steps.doctor.evidence import Evidence
from steps.doctor.facts.packages import role
from steps.doctor.repairs.base import (
    Plan,
    apt,
    back,
    install,
    manager_of,
    person,
    proof,
    remove,
    repairs,
    run,
    tool,
)  # fmt: skip
from steps.doctor.repairs.halves import archive, as_failed, completed, finish, half
from steps.doctor.repairs.modules import images
from steps.doctor.rules.base import Candidate
from steps.host.rooted import version_key
from steps.model.action import UndoStep


@repairs("dpkg-interrupted", "conffile-question-unanswered")
def finished(seen: Evidence, candidate: Candidate) -> Plan:
    """Return what finishes the packages that were left half-way; the person's settings stay."""
    manager = manager_of(seen)
    ssh = (person("keep-session"),) if candidate.variant == "ssh" else ()
    mended = completed(manager)
    return Plan(steps=(*ssh, *finish(seen), mended), verify=proof("packages", manager))


# --- versions -------------------------------------------------------------------------------------


@repairs("held-package-blocks-install")
def unheld(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the end of the hold, and the version that is wanted."""
    manager, name = manager_of(seen), str(candidate.params.get("library", "?"))
    wanted = str(candidate.params.get("wanted", "?"))
    driver = candidate.variant == "held"
    held = [one for one in seen.packages.held or () if one == name or (driver and role(one))]
    free = tuple(run("unhold", "apt-mark", "unhold", one, undo=(back("apt-mark", "hold", one),), package=one) for one in held)
    if driver:
        # The set of a driver moves as a whole: apt finds the versions itself once nothing is held.
        asked = _asked_for(seen)
        present = tuple(dict.fromkeys(row.name for row in seen.packages.driver()))
        again = install("wanted-again", manager, *asked, may_remove=present) if manager == "apt" and asked else person("install-again")
        return Plan(steps=(*free, again), verify=proof("packages", manager))
    if manager == "apt" and re.fullmatch(r"[a-z0-9][a-z0-9.+-]+", name) and re.fullmatch(r"[\w.:~+-]+", wanted):
        last: Step = apt(
            "wanted-version", "--allow-downgrades", "--no-remove", "install", f"{name}={wanted}", undo=_before(seen, name), package=name
        )
    else:
        last = person("one-cuda", "apt-cache", "policy", name if name != "?" else "libnccl2", package=name)
    return Plan(steps=(*free, last), verify=proof("packages", manager))


def _asked_for(seen: Evidence) -> tuple[str, ...]:
    """Return the packages of the driver that the last typed installation asked for, nothing where a log shows none.

    apt's own history tells what it did, and not what it refused.
    """
    asked = (one for one in seen.commands("apt", "apt-get") if not one.place.source.startswith("/var/log/apt/"))
    typed = [one.words for one in asked if "install" in one.words]
    names = typed[-1][typed[-1].index("install") + 1 :] if typed else ()
    return tuple(name for name in names if _ASKED.fullmatch(name) and role(name.partition("=")[0]))


_ASKED = re.compile(r"[a-z0-9][a-z0-9.+-]*[a-z0-9+](?:=[\w.:~+*-]+)?")


def _before(seen: Evidence, name: str) -> tuple[UndoStep, ...]:
    """Return what puts the version back that is here now."""
    row = next(iter(seen.packages.named(re.escape(name))), None)
    if row is None:
        return ()
    return (back("apt-get", "-y", "--allow-downgrades", "--no-remove", "install", f"{name}={row.version}"),)


# --- room -----------------------------------------------------------------------------------------


@repairs("boot-partition-full")
def boot_room(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the removal of kernels that neither run nor start next, then what had failed."""
    manager = manager_of(seen)
    old = _old_kernels(seen)
    if manager == "apt" and old:
        free = _purged(seen, old)
    elif manager == "dnf":
        free = person("old-kernels", "dnf", "remove", "--oldinstallonly", packages="kernel-*")
    else:
        free = person("old-kernels", "ls", "-lS", "/boot", packages="linux-image-*")
    whole = (tool("check-packages", "check", manager),) if manager == "apt" else ()
    return Plan(steps=(*as_failed(seen), free, *finish(seen), *images(seen), *whole), verify=proof("space"))


def _purged(seen: Evidence, old: tuple[str, ...]) -> Step:
    """Return the removal of packages that need each other only; undo has them in apt's cache, or in what the engine keeps of them."""
    if not half(seen):
        return remove("old-kernels", "apt", *old)
    # While something waits to be configured, apt wants to finish that first, for which there is no room yet.
    # What else needs these packages stops dpkg: nothing is forced.
    kept = tuple(path for row in seen.packages.rows if row.installed and row.name in old and (path := archive(seen, row)))
    undo = (back("dpkg", "--install", *kept),) if len(kept) == len(old) else ()
    return run("old-kernels", "dpkg", "--purge", *old, undo=undo, packages=" ".join(old), quiet=300)


def _old_kernels(seen: Evidence) -> tuple[str, ...]:
    """Return all packages of kernels that may go, those that need others first: not the running one, and not the two newest."""
    names = {
        found[1]: row.name for row in seen.packages.rows if row.installed and (found := re.fullmatch(r"linux-image-(\d\S+)", row.name))
    }
    running = seen.system.kernel.value if seen.system.kernel else None
    if running is None:
        return ()
    newest = sorted(names, key=version_key)[-2:]
    gone = [kernel for kernel in sorted(names, key=version_key) if kernel != running and kernel not in newest]
    return tuple(
        row.name
        for kernel in gone
        for row in seen.packages.rows
        if row.installed and re.fullmatch(rf"linux-\S+-{re.escape(kernel)}", row.name)
    )


@repairs("disk-full-during-install")
def disk_room(seen: Evidence, candidate: Candidate) -> Plan:
    """Return what frees room without a loss, then what had failed."""
    manager, path = manager_of(seen), str(candidate.params.get("path", "/"))
    # What undo would unpack again lies in the cache that is emptied here.
    last = finish(seen, comes_back=False) if manager == "apt" else ()
    mended = completed(manager)
    steps = (
        tool("clean-cache", "clean-cache", manager),
        person("free-space", "du", "-xh", "--max-depth=2", "/var", path=path),
        *last,
        mended,
    )
    return Plan(steps=steps, verify=proof("space"))
