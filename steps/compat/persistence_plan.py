"""What keeps the driver awake between jobs: NVIDIA's daemon, and on Ubuntu a drop-in, for its unit runs the daemon with the mode off."""

from __future__ import annotations

from steps import resources
from steps.catalog import guide
from steps.compat.case import Case
from steps.model.action import AnyAction, Command, FileIs, Run, Service, Succeeds, Write
from steps.model.base import Words, phrase

UNIT = "nvidia-persistenced.service"
_RELOAD = ("systemctl", "daemon-reload")


def keeps_off(case: Case) -> bool:
    """Return whether the unit that is there, or will come with the planned driver, leaves persistence mode off."""
    row = guide.idle_unit()
    if case.machine.os.id not in row.os:
        return False
    if case.driver.origin == "planned":
        return case.driver.source in row.sources
    return any(row.is_with(package.name) for package in case.machine.driver.packages)


def _awake() -> Succeeds:
    """Return the question about the driver's own word: a unit may be enabled and running with the mode off."""
    return Succeeds(argv=resources.module_command("steps.host.persistence"))


def actions(id: str, why: Words, *, off: bool, runs: bool, root: str = "/", optional: bool = True) -> tuple[AnyAction, ...]:
    """Return what turns the mode on; `off` says that the unit leaves it off, `runs` that the driver runs now and can be asked.

    Where it does not run the unit comes with the next boot: udev wants it as soon as the driver has a card.
    """
    if not off:
        title, enabled = phrase("monitoring.action.service", unit=UNIT), Succeeds(argv=("systemctl", "is-enabled", "--quiet", UNIT))
        done = (enabled, _awake()) if runs else ()
        return (Service(id=id, title=title, why=why, lane="packages", unit=UNIT, done_when=done, seconds=1.0, optional=optional),)
    row = guide.idle_unit()
    file = Write(
        id=f"{id}-file",
        title=phrase("monitoring.action.persistence-file", path=row.path),
        why=phrase("monitoring.why.persistence-file"),
        lane="packages",
        path=row.path,
        text=row.text,
        done_when=(FileIs(path=row.path, text=row.text),),
        optional=optional,
    )
    if root != "/":
        return (file,)
    reload, restart = phrase("monitoring.action.reload-units"), phrase("monitoring.action.restart", unit=UNIT)
    # Undo goes backwards: what the first one takes back comes last, when the file is gone.
    back = (Command(argv=_RELOAD), Command(argv=("systemctl", "try-restart", UNIT), tolerant=True))
    return (
        Run(id=f"{id}-before", title=reload, lane="packages", argv=_RELOAD, undo=back, seconds=1.0, optional=optional),
        file,
        Run(id=f"{id}-reload", title=reload, lane="packages", argv=_RELOAD, needs=(file.id,), seconds=1.0, optional=optional),
        Run(
            id=id,
            title=restart,
            why=why,
            lane="packages",
            argv=("systemctl", "restart" if runs else "try-restart", UNIT),
            needs=(f"{id}-reload",),
            done_when=(FileIs(path=row.path, text=row.text), _awake()) if runs else (),
            seconds=3.0,
            optional=optional,
        ),
    )
