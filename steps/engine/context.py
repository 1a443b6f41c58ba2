"""What an action is run with: the folder, the machine, the person, and the switches that a screen may turn."""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Mapping
from pathlib import Path

from steps.engine.durable import open_new, write_at_once
from steps.engine.folder import MARK, STATE_VARIABLE, Origin, Owner, RunFolder
from steps.engine.journal import Journal
from steps.engine.prompts import Desk
from steps.host.base import WritableHost
from steps.model.action import Action
from steps.model.base import Param, Phrase, Record, Words
from steps.model.plan import Plan

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Outcome(Record):
    """How an action went; `error` is a key of the words (filled from `params`) or text of the program's own."""

    status: str
    """done, already, failed, skipped, cancelled, reboot."""
    exit: int | None = None
    error: str | None = None
    params: Mapping[str, Param] = {}
    code: int | None = None
    """The exit code of the whole run when this one ends it, where 1 would say too little (75: busy, 3: refused)."""


def failed(
    error: Words,
    *,
    exit: int | None = None,  # noqa: A002 - the field is called so
    code: int | None = None,
    **params: Param,
) -> Outcome:
    """Return a failure with its reason."""
    if isinstance(error, Phrase):
        return Outcome(status="failed", exit=exit, error=error.key, params={**error.params, **params}, code=code)
    return Outcome(status="failed", exit=exit, error=error, params=params, code=code)


class Switches:
    """Cancel and pause, set by the server and seen by every lane."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.going = threading.Event()
        self.going.set()


class Context:
    """All that the executor needs besides the action."""

    def __init__(
        self,
        folder: RunFolder,
        *,
        plan: Plan,
        origin: Origin,
        host: WritableHost,
        outside: WritableHost,
        journal: Journal,
        attended: bool = True,
    ) -> None:
        self.folder = folder
        self.plan = plan
        self.origin = origin
        self.host = host
        self.outside = outside
        self.journal = journal
        self.desk = Desk(journal)
        self.switches = Switches()
        self.attended = attended
        """Whether somebody may be asked; where nobody is, a question without an answer ends what asks it."""
        self.word = f"[bringup {os.urandom(4).hex()}]"
        """What sudo asks with in this run and no other program can know beforehand."""

    @property
    def owner(self) -> Owner:
        """The person the run belongs to."""
        return self.origin.owner

    def spool_line(self, action: str, line: str) -> None:
        """Add a line of our own to an action's output, after what a program has left of a line."""
        descriptor = open_new(self.folder.output(action), gid=self.owner.gid)
        size = os.fstat(descriptor).st_size
        begun = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        write_at_once(descriptor, b"\n" * begun + line.encode() + b"\n")

    def spool_command(self, action: str, argv: tuple[str, ...]) -> None:
        """Say in the output what is run, as a person would type it."""
        self.spool_line(action, f"$ {shlex.join(argv)}")

    def as_other(self, action: Action) -> bool:
        """Return whether the action runs as somebody else than this process."""
        return action.by == "user" and os.geteuid() == 0 and self.owner.uid != 0

    def person_prefix(self) -> tuple[str, ...]:
        """Return the command that starts another one as the person."""
        owner = self.owner
        ids = (f"--reuid={owner.uid}", f"--regid={owner.gid}", "--clear-groups")
        return ("setpriv", *ids, "env", f"HOME={owner.home}", f"USER={owner.name}", f"LOGNAME={owner.name}")

    def environment(self, action: Action, more: Mapping[str, str]) -> Mapping[str, str]:
        """Return the whole environment of an action's commands."""
        person = action.by == "user" or os.geteuid() != 0
        home, name = (self.owner.home, self.owner.name) if person else ("/root", "root")
        base = {"PATH": f"{home}/.local/bin:{_PATH}" if person else _PATH, "HOME": home, "USER": name, "LOGNAME": name, "SHELL": "/bin/sh"}
        if person and Path(f"/run/user/{self.owner.uid}").is_dir():
            base["XDG_RUNTIME_DIR"] = f"/run/user/{self.owner.uid}"
        # Where runs lie: `bringup verify`, the last command of a run, looks its own run up.
        base |= {name: os.environ[name] for name in (STATE_VARIABLE, "XDG_STATE_HOME") if name in os.environ}
        quiet = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "LANG": "C.UTF-8", "LANGUAGE": "", "PAGER": "cat"}
        sudo = {"SUDO_PROMPT": f"{self.word} %p: "}
        return {**self.origin.environment, **base, **quiet, **sudo, **more, MARK: self.folder.mark_of(action.id)}
