"""A packages action: fetch the lists, simulate, judge, keep what will be replaced, and only then install."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

import msgspec

from steps.engine import settings
from steps.engine.command import Ending, judge, never, run_command
from steps.engine.context import Context, Outcome, failed
from steps.engine.durable import open_new
from steps.engine.folder import state_folder
from steps.engine.keeping import put_aside
from steps.engine.package_notes import (
    PackagesBefore,
    changed,
    claim,
    forget_after,
    note_unrepaired,
    read_after,
    read_before,
    write_after,
    write_before,
)
from steps.managers.base import Holder, Kept, PackageManager, Simulation, Snapshot, manager, module_files
from steps.managers.preflight import check, check_space
from steps.model.action import Packages
from steps.model.base import phrase
from steps.model.run import UNREADABLE

LOCK_PATIENCE = 300.0
"""So long is another holder of the package manager waited for; seconds."""
_LOCK_PAUSE = 1.0
BUSY = 75
_UNPACKING = b"pmstatus:"
_MODULE = "nvidia"


def perform_packages(action: Packages, context: Context) -> Outcome:
    """Install the packages; `failed` without a change when the simulation is refused."""
    tool = manager(action.manager)
    if action.refresh:
        outcome = _when_free(action, context, tool, _refresh)
        if outcome.status != "done" or not action.install:
            return outcome
    return _when_free(action, context, tool, _attempt)


_Try = Callable[[Packages, Context, PackageManager], Outcome]


def _when_free(action: Packages, context: Context, tool: PackageManager, do: _Try) -> Outcome:
    """Do it when nobody else has the manager, again while another one was quicker; `BUSY` when that takes too long.

    Each try begins anew: whoever had the manager may have changed what a simulation rested on. apt's own waiting would
    neither name the holder nor cover the locks of the lists and the archives.
    """
    deadline = time.monotonic() + LOCK_PATIENCE
    told: Holder | None = None
    while True:
        holder = tool.lock_holder(context.host)
        if holder is None:
            outcome = do(action, context, tool)
            if outcome.code != BUSY or time.monotonic() > deadline:
                return outcome
        elif time.monotonic() > deadline:
            return _locked(holder, None)
        elif holder != told:
            who = f"{holder.name or '?'} (process {holder.pid or '?'})"
            context.spool_line(action.id, f"[bringup: waiting for {who}, which holds {holder.lock}]")
            told = holder
        if context.switches.cancelled.wait(_LOCK_PAUSE):
            return Outcome(status="cancelled")


def _refresh(action: Packages, context: Context, tool: PackageManager) -> Outcome:
    """Fetch the package lists."""
    return _explained(run_command(context, action, tool.refresh_argv(), environment=tool.environment()), tool)


def _attempt(action: Packages, context: Context, tool: PackageManager) -> Outcome:
    """Simulate, judge, put aside and install without waiting for anybody; `BUSY` when another one has the manager."""
    repair(action, context)
    before = tool.snapshot(context.host)
    if before is None:
        return unreadable(action, context, tool)
    known = read_before(context, action)
    if known is not None and read_after(context, action) is None:
        # What others change from now on is not the work of the tries until here, should this one come to nothing.
        _leave(action, context, before, settings.seen(action, context, tool, known.names))
    simulation = tool.simulate(action, context.host)
    context.spool_line(action.id, f"[bringup: {_foretold(simulation)}]")
    held = frozenset(name for name, package in before.packages.items() if package.held)
    size = tool.installed_bytes(_not_yet_aside(action, context, simulation), context.host)
    check(action, simulation, context.host, kernel=context.plan.target.kernel, held=held, aside=size)
    if context.switches.cancelled.is_set():
        return Outcome(status="cancelled")
    names = _register(action, context, tool, before, simulation)
    if context.switches.cancelled.is_set():
        return Outcome(status="cancelled")
    ending = _install(action, context, tool)
    after = tool.snapshot(context.host)
    if after is not None:
        _leave(action, context, after, settings.seen(action, context, tool, names))
    return _explained(ending, tool)


def _leave(action: Packages, context: Context, after: Snapshot, seen: settings.Settings) -> None:
    """Write down the packages and settings as the tries until now have left them."""
    write_after(context, action, after)
    settings.register_after(action, context, seen)


def unreadable(action: Packages, context: Context, tool: PackageManager) -> Outcome:
    """Return the failure of an action whose packages cannot be read, with the manager's own words in its output."""
    context.spool_line(action.id, UNREADABLE)
    for argv in tool.readings():
        ending = run_command(context, action, argv, environment=tool.environment(), may_stop=never)
        if ending.code:
            return failed(tool.cause(ending.output) or phrase("engine.failed.unreadable", manager=action.manager), exit=ending.code)
    return failed(phrase("engine.failed.unreadable", manager=action.manager))


def _not_yet_aside(action: Packages, context: Context, simulation: Simulation) -> tuple[str, ...]:
    """Return the packages that are still to be put aside: all that will be replaced but those of an earlier try."""
    known = read_before(context, action)
    there = known.kept.files if known is not None else {}
    return tuple(change.name for change in simulation.replaced if f"{change.name}={change.before}" not in there)


def _register(action: Packages, context: Context, tool: PackageManager, before: Snapshot, simulation: Simulation) -> tuple[str, ...]:
    """Put aside what will be replaced and write down the state before; return the packages that the tries meant to change.

    A second try keeps what the first one found of the packages that it changed; of all others the state now counts.
    """
    known = read_before(context, action)
    ours = changed(known, read_after(context, action)) if known is not None else frozenset()
    folder = known.folder if known is not None else return_folder(context, action)
    kept = known.kept if known is not None else Kept()
    if simulation.replaced:
        new = put_aside(action, context, tool, simulation, folder)
        # What lies there now is no longer free for the rest.
        check_space(simulation, context.host)
        kept = Kept(files={**new.files, **kept.files}, lost=tuple(dict.fromkeys((*kept.lost, *new.lost))))
    first = known.before.packages if known is not None else {}
    packages = {name: package for name, package in before.packages.items() if name not in ours}
    packages |= {name: package for name, package in first.items() if name in ours}
    asked = (package.partition("=")[0] for package in action.install)
    names = tuple(sorted({*ours, *asked, *(change.name for change in simulation.changes)}))
    state = PackagesBefore(
        before=msgspec.structs.replace(before, packages=packages),
        kept=kept,
        folder=folder,
        names=names,
        modules=known.modules if known is not None else driver_modules(context),
    )
    settings.register(action, context, settings.seen(action, context, tool, names))
    write_before(context, action, state)
    (context.folder.kept(action.id) / "settings-after.json").unlink(missing_ok=True)
    forget_after(context, action)
    context.journal.append(
        "registered",
        action.id,
        replaced=len(simulation.replaced),
        removed=len(simulation.removed),
        kept=len(kept.files),
        lost=len(kept.lost),
        download_bytes=simulation.download_bytes,
        disk_bytes=simulation.disk_bytes,
    )
    return names


def _foretold(simulation: Simulation) -> str:
    """Return what the transaction will do, in a line of the output: how many, which go, and how large it is."""
    new = sum(change.before is None for change in simulation.changes)
    removed = simulation.removed
    parts = [f"{new} new", f"{len(simulation.replaced) - len(removed)} replaced", f"{len(removed)} removed"]
    parts += [f"removes {' '.join(removed)}"] if removed else []
    sizes = (("fetches", simulation.download_bytes), ("takes", simulation.disk_bytes))
    return ", ".join([*parts, *(f"{word} {size / 1e6:.1f} MB" for word, size in sizes if size is not None)])


def driver_modules(context: Context) -> tuple[str, ...]:
    """Return the files of the driver's module for every kernel that is installed."""
    kernels = context.host.listdir("/lib/modules") or ()
    return tuple(path for kernel in kernels for path in module_files(context.host, _MODULE, kernel))


def return_folder(context: Context, action: Packages) -> str:
    """Return where replaced packages are kept, as the target spells it; it must be inside the target, where the manager runs."""
    state = "/var/lib/bringup" if context.host.root != "/" else str(state_folder(root=True, owner=context.owner))
    return f"{state}/return/{context.folder.id}/{action.id}"


def _install(action: Packages, context: Context, tool: PackageManager) -> Ending:
    # A file and no pipe: a runner that is killed must not take the manager along by a broken pipe.
    descriptor = open_new(context.folder.path / "output" / f"{action.id}.status", gid=context.owner.gid)
    os.set_inheritable(descriptor, True)
    try:
        argv, progress = tool.argv(action, status_fd=descriptor), Progress(descriptor)
        return run_command(context, action, argv, environment=tool.environment(), may_stop=progress.only_downloads, handed=descriptor)
    finally:
        os.close(descriptor)


class Progress:
    """The manager's progress lines, from now on."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._at = os.fstat(descriptor).st_size
        self._rest = b""
        self._unpacks = False

    def only_downloads(self) -> bool:
        """Return whether nothing has been unpacked yet: stopping later would leave half-configured packages."""
        while not self._unpacks:
            block = os.pread(self._descriptor, 1 << 20, self._at)
            if not block:
                break
            self._at += len(block)
            self._unpacks = _UNPACKING in self._rest + block
            # The mark may lie across two blocks.
            self._rest = (self._rest + block)[1 - len(_UNPACKING) :]
        return not self._unpacks


def _explained(ending: Ending, tool: PackageManager) -> Outcome:
    if ending.stopped is not None:
        return judge(ending)
    if ending.killed_by is not None:
        return failed(phrase("engine.failed.signal", signal=ending.killed_by), exit=ending.code)
    if not ending.status:
        return Outcome(status="done", exit=0)
    holder = tool.busy(ending.output)
    if holder is not None:
        return _locked(holder, ending.status)
    cause = tool.cause(ending.output)
    return failed(cause if cause is not None else phrase("engine.failed.exit", status=ending.status), exit=ending.status)


def _locked(holder: Holder, status: int | None) -> Outcome:
    return failed(phrase("engine.failed.locked", holder=holder.name or "?", pid=holder.pid or 0), exit=status, code=BUSY)


def repair(action: Packages, context: Context, *, undoing: bool = False) -> bool:
    """Let the manager finish what was cut off; return whether it could.

    When undoing, what changed since the run is an earlier undo's doing, or is known from its beginning to be somebody's; what the
    repair changes goes back too.
    """
    tool = manager(action.manager)
    environment: Mapping[str, str] = tool.environment()
    known = read_before(context, action)
    asked = frozenset(package.partition("=")[0] for package in action.install)
    commands = tool.repair(context.host, asked | frozenset(known.names if known is not None else ()))
    now = tool.snapshot(context.host) if commands and known is not None else None
    if now is not None and known is not None and undoing:
        note_unrepaired(action, context, known, now)
    elif now is not None and known is not None:
        settings.claim(action, context, settings.seen(action, context, tool, known.names))
        claim(action, context, known, now)
    elif commands and not undoing and not any(read_before(context, one) for one in context.plan.actions if isinstance(one, Packages)):
        # Nothing of this run is half-done yet: what is, others have left so.
        context.journal.append("completed", action.id)
    endings = [run_command(context, action, argv, environment=environment, may_stop=never) for argv in commands]
    return all(ending.status == 0 for ending in endings)
