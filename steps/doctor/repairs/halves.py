"""Packages that were left half-way: how they are finished, and how an undo leaves them as they were found."""

from __future__ import annotations

import msgspec

from steps.catalog.repairs import tools
from steps.doctor.diagnosis import Step
from steps.doctor.evidence import Evidence
from steps.doctor.facts.packages import Manager, Row
from steps.doctor.repairs.base import back, keeping, manager_of, person, run, tool
from steps.model.action import RemovePath, Run
from steps.model.base import Words, phrase


def half(seen: Evidence) -> tuple[Row, ...]:
    """Return the packages that are neither wholly here nor away."""
    return tuple(row for row in seen.packages.rows if row.half)


def finish(seen: Evidence, *, comes_back: bool = True) -> tuple[Step, ...]:
    """Return the end of what dpkg began; undo unpacks the same packages again, so that they wait as they did.

    dpkg ends with 1 where some of them cannot be configured yet, for what they need is half there too: apt completes that afterwards.
    """
    manager = manager_of(seen)
    if manager not in ("apt", None) or (manager is None and seen.system.id is not None):
        return ()
    files = [archive(seen, row) for row in half(seen)]
    known = tuple(path for path in files if path)
    argv = ("dpkg", "--force-confdef", "--force-confold", "--configure", "-a")
    if not comes_back or not known or len(known) < len(files):
        stays = phrase("repair.undo.configured") if files else ""
        return (msgspec.structs.replace(_passing(run("finish", *argv, quiet=720), stays), undo=stays or None),)
    settings = [path for row in half(seen) for path in _conffiles(seen, row)]
    made = (RemovePath(path=f"{path}{end}") for path in settings for end in ("", ".dpkg-dist", ".dpkg-old"))
    step = _passing(run("finish", *argv, undo=(back("dpkg", "--unpack", *known), *made), quiet=720))
    for path in reversed(settings):
        step = keeping(step, path) if seen.host.exists(path) else step
    return (step,)


def completed(manager: Manager | None) -> Step:
    """Return what lets apt complete what is missing; another manager would upgrade the whole system for that, which a person decides on."""
    row = tools()["fix-broken" if manager == "apt" else "upgrade-all"]
    if manager != "apt":
        command = {"dnf": row.dnf, "pacman": row.pacman}.get(manager or "")
        return person("upgrade-system", *command) if command else person("fix-broken")
    step = tool("fix-broken", "fix-broken", manager)
    stays = phrase("repair.undo.completed")
    actions = (msgspec.structs.replace(one, stays=stays) if isinstance(one, Run) else one for one in step.actions)
    return msgspec.structs.replace(step, actions=tuple(actions), undo=stays)


def _passing(step: Step, stays: Words = "") -> Step:
    """Return the step with dpkg's 1 for no end of the run; `stays` is what no undo takes back."""
    actions = (msgspec.structs.replace(one, passes=(1,), stays=stays) if isinstance(one, Run) else one for one in step.actions)
    return msgspec.structs.replace(step, actions=tuple(actions))


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
