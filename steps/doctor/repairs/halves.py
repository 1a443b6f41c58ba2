"""Packages that were left half-way: how they are finished, and how an undo leaves them as they were found."""

from __future__ import annotations

from steps.doctor.diagnosis import Step
from steps.doctor.evidence import Evidence
from steps.doctor.facts.packages import Row
from steps.doctor.repairs.base import back, keeping, manager_of, run
from steps.model.action import RemovePath


def half(seen: Evidence) -> tuple[Row, ...]:
    """Return the packages that are neither wholly here nor away."""
    return tuple(row for row in seen.packages.rows if row.half)


def finish(seen: Evidence) -> tuple[Step, ...]:
    """Return the end of what dpkg began; undo unpacks the same packages again, so that they wait as they did."""
    manager = manager_of(seen)
    if manager not in ("apt", None) or (manager is None and seen.system.id is not None):
        return ()
    files = [archive(seen, row) for row in half(seen)]
    known = tuple(path for path in files if path)
    argv = ("dpkg", "--force-confdef", "--force-confold", "--configure", "-a")
    if not known or len(known) < len(files):
        return (run("finish", *argv, quiet=720),)
    settings = [path for row in half(seen) for path in _conffiles(seen, row)]
    made = (RemovePath(path=f"{path}{end}") for path in settings for end in ("", ".dpkg-dist", ".dpkg-old"))
    step = run("finish", *argv, undo=(back("dpkg", "--unpack", *known), *made), quiet=720)
    for path in reversed(settings):
        step = keeping(step, path) if seen.host.exists(path) else step
    return (step,)


def _conffiles(seen: Evidence, row: Row) -> tuple[str, ...]:
    """Return the settings that a package brings: configuring it puts them into place."""
    lists = (f"/var/lib/dpkg/info/{row.name}.conffiles", f"/var/lib/dpkg/info/{row.name}:{row.arch}.conffiles")
    text = next((text for path in lists if (text := seen.host.read(path))), "")
    return tuple(line for line in text.splitlines() if line.startswith("/"))


def as_failed(seen: Evidence) -> tuple[Step, ...]:
    """Return a first step that only looks, and whose undo, the last of all, lets the packages fail again that had failed.

    Without it an undo would leave them unpacked where they were half configured.
    """
    failed = tuple(row.name for row in half(seen) if row.state[1:2] == "F" and archive(seen, row))
    undo = tuple(back("dpkg", "--configure", name, tolerant=True) for name in failed)
    return (run("see-half", "dpkg-query", "--show", *failed, undo=undo),) if failed else ()


def archive(seen: Evidence, row: Row) -> str | None:
    """Return the package's file in apt's cache, or `None` when it is gone from there."""
    version = row.version.replace(":", "%3a")
    return next(iter(seen.host.glob(f"/var/cache/apt/archives/{row.name}_{version}_*.deb")), None)
