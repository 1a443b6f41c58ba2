"""Undo: what is written down before a change, and how it is taken back, newest action first."""

from __future__ import annotations

import contextlib
import shlex
from typing import Literal

import msgspec

from steps.detect import keys
from steps.engine import aside, ledger, settings
from steps.engine.command import Missing, failed_by, never, run_command
from steps.engine.context import Context, Outcome, failed
from steps.engine.durable import make_folder, write_whole
from steps.engine.files import missing_folders, put_back, real_path, take_away, take_away_emptied, write_out
from steps.engine.folder import all_folders
from steps.engine.journal import Unwritten
from steps.engine.ledger import PathsBefore, paths_of
from steps.engine.mounts import expect_mounted, mount_above
from steps.engine.package_notes import PackagesBefore, forget_unrepaired, read_before, with_repaired
from steps.engine.packages import repair, return_folder, unreadable
from steps.engine.probes import is_gone
from steps.engine.since import asked_for_since, forget_asked, refuse_held_since
from steps.errors import BringupError
from steps.managers.base import Installed, Kept, PackageManager, Snapshot, manager
from steps.managers.preflight import check_return
from steps.model.action import AnyAction, Command, Keep, Packages, RemovePath, Run, Service, Unqueue, Write
from steps.model.base import Record, phrase
from steps.model.run import TAKEN_BACK


class ServiceBefore(Record):
    """Whether a unit was enabled and running; `None` when that was not known."""

    enabled: bool | None
    active: bool | None


def register(action: Run | Service, context: Context) -> None:
    """Write down what undo will need; a second try keeps what the first one wrote."""
    folder = context.folder.kept(action.id)
    if (folder / "undo.json").exists():
        # A runner that was killed may have written the one and not yet the other.
        context.journal.append("registered", action.id)
        return
    if not folder.exists():
        make_folder(folder, gid=context.owner.gid)
    state: Record
    match action:
        case Run():
            real = {path: real_path(path, context.host) for path in paths_of(action)}
            existed = tuple(path for path, lies in real.items() if context.host.exists(lies) is not False)
            mounts = {path: mount for path, lies in real.items() if (mount := mount_above(lies, context.host.root)) is not None}
            state = PathsBefore(
                existed=existed,
                real={path: lies for path, lies in real.items() if lies != path},
                mounts=mounts,
                made=tuple(dict.fromkeys(folder for lies in real.values() for folder in missing_folders(lies, context.host))),
            )
        case Service():
            state = ServiceBefore(enabled=_is("enabled", action.unit, context), active=_is("active", action.unit, context))
    write_whole(folder / "undo.json", msgspec.json.encode(state), gid=context.owner.gid)
    context.journal.append("registered", action.id)


def _is(word: Literal["enabled", "active"], unit: str, context: Context) -> bool | None:
    """Return whether a unit is so; in a mounted system nothing is active, and its own systemctl tells from its files what is enabled."""
    argv = ("systemctl", f"is-{word}", unit)
    if context.host.root == "/":
        status = context.host.run(argv).status
    elif word == "enabled":
        status = context.outside.run(context.host.command(argv)).status
    else:
        return None
    # Without the right to enter the system nothing is known of it.
    return None if status in (None, 125, 126) else status == 0


def take_back(action: AnyAction, context: Context) -> Outcome:
    """Undo one action; `undone`, `kept` when there was nothing to take back, or `failed`."""
    try:
        match action:
            case Packages():
                return _packages(action, context)
            case Write():
                return put_back(action, context)
            case Keep():
                past = ledger.is_of_past(context.folder, context.plan, action.path, all_folders(context.owner))
                return aside.let_go(action, context) if past else aside.bring_back(action, context)
            case Run():
                return _commands(action, context)
            case Service():
                return _service(action, context)
            case _:
                return Outcome(status="kept")
    except Unwritten:
        raise
    except FileNotFoundError:
        return failed(phrase("engine.failed.no-backup"))
    except (BringupError, Missing, msgspec.MsgspecError, OSError) as error:
        return failed_by(error, context.folder.kept(action.id))


def _packages(action: Packages, context: Context) -> Outcome:
    state = read_before(context, action)
    if state is None:
        return Outcome(status="kept")
    context.spool_line(action.id, TAKEN_BACK)
    tool = manager(action.manager)
    early = tool.snapshot(context.host)
    refuse_held_since(action, context, state, early)
    asked = asked_for_since(context, action, state, early)
    for name in sorted(asked):
        context.spool_line(action.id, f"[bringup: {name} was asked for since and is left alone]")
    state = msgspec.structs.replace(state, names=tuple(name for name in state.names if name not in asked))
    again = settings.is_undo_begun(action, context)
    # Before the repair: it may write beside configuration files, which is our doing too.
    found = settings.register_undo(action, context, settings.seen(action, context, tool, state.names))
    outcome = Outcome(status="failed")
    try:
        outcome = _way_back(action, context, tool, state, found, early)
    finally:
        if not again and outcome.status == "failed" and tool.snapshot(context.host) == early:
            # Nothing was done, by an undo that was cut off neither: what a person changes from now on is the person's for the next try.
            forget_notes(action, context)
    if outcome.status == "failed" or not asked:
        return outcome
    return msgspec.structs.replace(outcome, params={**outcome.params, "asked": " ".join(sorted(asked))})


def forget_notes(action: Packages, context: Context) -> None:
    """Let the next undo look for itself: this one changed nothing, or what it began to take back is installed once more."""
    settings.forget_undo(action, context)
    forget_asked(context, action)
    forget_unrepaired(action, context)


def _way_back(
    action: Packages, context: Context, tool: PackageManager, state: PackagesBefore, found: settings.Settings, early: Snapshot | None
) -> Outcome:
    """Take the packages back to `state` from how they are, `early`, and the settings with them, which were `found` so."""
    kept = _still_there(state.kept, context)
    if early is not None:
        # An undo that was tried before may have left packages without files that their own scripts need.
        _carry_out(tool.unpack_again(kept, early, context.host), action, context, tool, frozenset())
    repair(action, context, undoing=True)
    now = tool.snapshot(context.host)
    if now is None:
        return unreadable(action, context, tool)
    state, ours = with_repaired(action, context, state, now)
    if context.plan.repairs is not None:
        ours -= ledger.gone_with(context.plan, all_folders(context.owner))
    commands = tool.restore(state.before, now, kept, ours)
    # Only what was not there before may go; whatever else would go with it was put there by somebody else.
    may_go = frozenset(name for name in ours if not state.before.has(name))
    edited = settings.keep_edited(action, context, found)
    wrong = _carry_out(commands, action, context, tool, may_go)
    now = tool.snapshot(context.host)
    again = tool.unpack_again(kept, now, context.host) if now is not None else ()
    if again:
        # What failed may have failed for want of these files; both are tried once more.
        wrong = _carry_out(again, action, context, tool, may_go)
        now = tool.snapshot(context.host) if wrong is None else None
        if now is not None:
            wrong = _carry_out(tool.restore(state.before, now, kept, ours), action, context, tool, may_go)
    if wrong is not None:
        return wrong
    left = (*settings.put_back(action, context, found, settings.seen(action, context, tool, state.names)), *edited)
    differ = _differ(action, context, state, ours)
    if differ:
        return failed(phrase("engine.failed.not-back", packages=" ".join(differ)))
    lost = tuple(path for path in state.modules if not _is_there(path, context))
    if lost:
        return failed(phrase("engine.failed.module-lost", path=lost[0]))
    # An undo that was cut off had perhaps done all of it: what the run changed is back, whoever did that.
    return Outcome(status="undone" if ours else "kept", params={"changed": " ".join(left)} if left else {})


def forget_kept(context: Context) -> None:
    """Remove the packages that a run had put aside, once it is taken back: they are as large as what they bring back."""
    folders = {return_folder(context, action).rpartition("/")[0] for action in context.plan.actions if isinstance(action, Packages)}
    for folder in folders:
        with contextlib.suppress(OSError):
            context.host.remove(folder)


def _still_there(kept: Kept, context: Context) -> Kept:
    """Return what is left of the packages that were put aside: for what somebody has removed the archive is asked."""
    return Kept(files={package: path for package, path in kept.files.items() if context.host.exists(path)}, lost=kept.lost)


def _carry_out(
    commands: tuple[tuple[str, ...], ...], action: Packages, context: Context, tool: PackageManager, may_go: frozenset[str]
) -> Outcome | None:
    """Run the commands of a way back, each looked at in its turn; `None` when all went well, else how the first one failed."""
    for argv in commands:
        # Each at its turn: what one of them would do rests on what the one before has done.
        check_return(action, tool.foresee(argv, context.host), may_go, kernel=context.plan.target.kernel)
        ending = run_command(context, action, argv, environment=tool.environment(), may_stop=never)
        if ending.code:
            return failed(tool.cause(ending.output) or phrase("engine.failed.exit", status=ending.code), exit=ending.code)
    return None


def _differ(action: Packages, context: Context, state: PackagesBefore, ours: frozenset[str]) -> tuple[str, ...]:
    """Return the packages of `ours` that are not as they were, after all was done to take them back."""
    now = manager(action.manager).snapshot(context.host)
    if now is None:
        return tuple(sorted(ours))
    return tuple(name for name in sorted(ours) if (now.packages.get(name) if now.has(name) else None) != _as_present(state, name))


def _is_there(path: str, context: Context) -> bool:
    """Return whether a module is there again; compressed or not, as the kernel's own build left it."""
    return bool(context.host.glob(f"{path.partition('.ko')[0]}.ko*"))


def _as_present(state: PackagesBefore, name: str) -> Installed | None:
    """Return a package as it was, if any file of it was there: the remains of a removed one are not looked at."""
    return state.before.packages.get(name) if state.before.has(name) else None


def _commands(action: Run, context: Context) -> Outcome:
    if not action.undo:
        return Outcome(status="kept")
    data = (context.folder.kept(action.id) / "undo.json").read_bytes()
    before = msgspec.json.decode(data, type=PathsBefore)
    left = False
    for mount in before.mounts.values():
        expect_mounted(mount)
    context.spool_line(action.id, TAKEN_BACK)
    for step in action.undo:
        if not isinstance(step, RemovePath) and _was_gone(step, action, context):
            # An undo that was cut off had done it and could not say so any more, or a person did it.
            context.spool_line(action.id, f"[bringup: done already: {shlex.join(step.argv)}]")
        elif isinstance(step, Unqueue) and not keys.one_queued(context.host):
            # The firmware has it, or nobody asked in the end; only a person at the console can take an enrolled one out.
            context.spool_line(action.id, f"mokutil --delete {step.certificate}")
            left = True
        elif isinstance(step, Unqueue | Command):
            ending = run_command(context, action, step.argv, environment=action.env, outside=action.outside)
            if ending.code and not (isinstance(step, Command) and step.tolerant):
                return failed(phrase("engine.failed.exit", status=ending.code), exit=ending.code)
        elif step.path not in before.existed:
            path = before.real.get(step.path, step.path)
            context.spool_line(action.id, f"remove {path}")
            take_away(action, path, context)
    take_away_emptied(action, before.made, context)
    # Before the journal says that it is gone: what lies on another disk would be there again after a power cut.
    write_out((*paths_of(action), *before.made), context.host)
    return Outcome(status="kept" if left else "undone")


def _was_gone(step: Command | Unqueue, action: Run, context: Context) -> bool:
    """Return whether the machine shows that a step of a way back, which may be none to go twice, was gone already."""
    if isinstance(step, Unqueue):
        return keys.is_let_go(step.certificate, context.host)
    return is_gone(step.there, action, context)


def _service(action: Service, context: Context) -> Outcome:
    data = (context.folder.kept(action.id) / "undo.json").read_bytes()
    state = msgspec.json.decode(data, type=ServiceBefore)
    words = [word for word, was in (("stop", state.active), ("disable", state.enabled)) if was is False]
    for word in words:
        if word == "stop" and context.host.root != "/":
            continue
        with contextlib.suppress(Missing):
            ending = run_command(context, action, ("systemctl", word, action.unit))
            if ending.code and word == "disable":
                return failed(phrase("engine.failed.exit", status=ending.code), exit=ending.code)
    return Outcome(status="undone" if words else "kept")
