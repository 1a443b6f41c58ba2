"""All that a screen needs of the engine: start a run, find one, look at it, talk to it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from steps import resources
from steps.engine import journal
from steps.engine.folder import Order, Refusal, Refused, RunFolder, all_folders, invoking_owner, state_folder
from steps.engine.lock import busy, holder, is_held, target_lock
from steps.engine.server import RUN_OVER, Request, Response, ask
from steps.engine.spool import Spool
from steps.errors import BringupError, InputError, PrivilegeError
from steps.model.plan import Plan, digest
from steps.model.run import RunState, RunSummary
from steps.model.verdict import Rung, from_document

__all__ = ["RunHandle", "Spool", "Sudo", "find", "find_undoable", "invoking_owner", "runs", "start"]

Sudo = Callable[[tuple[str, ...]], int]
"""Runs an argv as root in the person's terminal and returns its exit code."""
_PREFIXES = ("PIP_", "UV_")
_NAMES = frozenset(
    (
        *("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "HF_ENDPOINT"),
    )
)
_UVS_WORD_FOR = {
    "PIP_INDEX_URL": ("UV_DEFAULT_INDEX", "UV_INDEX_URL"),
    "PIP_EXTRA_INDEX_URL": ("UV_INDEX", "UV_EXTRA_INDEX_URL"),
    "PIP_FIND_LINKS": ("UV_FIND_LINKS",),
}
"""uv does not know pip's variables; an address with credentials is in no plan, so it can reach uv only this way."""
_NEVER = frozenset(("UV_PYTHON", "UV_PROJECT", "UV_PROJECT_ENVIRONMENT", "PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_REQUIRE_VIRTUALENV"))
"""They would send the packages somewhere else than the plan says."""


def carried_environment(plan: Plan) -> dict[str, str]:
    """Return what of the person's environment an installer honours: proxies, certificates, package indexes.

    The plan's own proxy goes before the environment's; apt and every other program of the run reads it from there.
    """
    carried = {name: value for name, value in os.environ.items() if (name in _NAMES or name.startswith(_PREFIXES)) and name not in _NEVER}
    for pips, uvs in _UVS_WORD_FOR.items():
        if pips in carried and not any(name in carried for name in uvs):
            carried[uvs[0]] = ",".join(carried[pips].split()) if uvs[0] == "UV_FIND_LINKS" else carried[pips]
    proxy = plan.profile.network.proxy
    return carried | dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), proxy) if proxy else carried


def start(plan: Plan, *, sudo: Sudo | None) -> RunHandle:
    """Start a run and return its handle.

    Raises `Busy` while another run changes the same machine, `PrivilegeError` without root and sudo.
    """
    owner = invoking_owner()
    needs_root = plan.needs_root and not plan.target.rehearsal
    if not plan.target.rehearsal:
        for root in (True, False):
            held = holder(target_lock(plan.target.root, root=root, owner=owner))
            if held is not None:
                raise busy(held)
    descriptor, name = tempfile.mkstemp(prefix="bringup-plan-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(Order(plan=plan, environment=carried_environment(plan))))
        id = _launch((name, "--digest", digest(plan)), needs_root=needs_root, sudo=sudo)
    finally:
        Path(name).unlink(missing_ok=True)
    if id is not None:
        return find(id)
    wanted = digest(plan)
    for folder in reversed(all_folders(owner)):
        if digest(folder.read_plan()) == wanted:
            return RunHandle(folder)
    raise InputError("run-unknown", run="")


def _launch(words: tuple[str, ...], *, needs_root: bool, sudo: Sudo | None) -> str | None:
    """Run the launcher; return the id it prints, or `None` when it printed it to the person's terminal."""
    argv = (*resources.runner_command(), "--launch", *words)
    if needs_root and os.geteuid() != 0:
        if sudo is None:
            raise PrivilegeError("needs-root")
        code = sudo(argv)
        if code:
            raise _refused(code)
        return None
    ended = subprocess.run((*argv, "--json"), capture_output=True, stdin=subprocess.DEVNULL, start_new_session=True, check=False)
    if ended.returncode == 0:
        return ended.stdout.decode().strip()
    try:
        raise Refused(msgspec.json.decode(ended.stderr, type=Refusal))
    except msgspec.MsgspecError:
        raise RuntimeError(ended.stderr.decode(errors="replace")) from None


def _refused(code: int) -> BringupError:
    """Return the error behind the exit code of a launcher whose words went to the person's terminal."""
    if code in (1, 4, 126, 127):
        return PrivilegeError("sudo-refused")
    return Refused(Refusal(code="launch-refused", params={"exit": code}, exit=code))


def runs() -> tuple[RunSummary, ...]:
    """Return all runs of this machine that this person may see, newest first."""
    found: list[RunSummary] = []
    for folder in reversed(all_folders(invoking_owner())):
        try:
            found.append(RunHandle(folder).summary())
        except BringupError:
            # Of another person, or damaged: it is there, and that is all that can be said.
            found.append(RunSummary(id=folder.id, folder=str(folder.path), alive=is_held(folder.lock)))
    return tuple(found)


def find(run_id: str | None) -> RunHandle:
    """Return the run called `run_id`, the newest when `None`; raises `InputError("run-unknown")`."""
    for folder in reversed(all_folders(invoking_owner())):
        if run_id is None or folder.id == run_id:
            return RunHandle(folder)
    raise InputError("run-unknown", run=run_id or "")


def find_undoable() -> RunHandle:
    """Return the newest run that did something which can be taken back; raises `InputError("nothing-to-undo")`."""
    owner = invoking_owner()
    for folder in reversed(all_folders(owner)):
        with contextlib.suppress(BringupError):
            handle = RunHandle(folder)
            rehearsed = handle.plan.target.rehearsal
            if not rehearsed and handle.state().status != "undone" and handle.is_ours():
                return handle
    raise InputError("nothing-to-undo")


class RunHandle:
    """One run, looked at and talked to; it needs no runner for looking."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self.id = folder.id
        self.folder = str(folder.path)
        self.plan = folder.read_plan()
        self._state = RunState()
        self._offset = 0
        self._socket: Path | None = None
        self._spools: dict[str, Spool] = {}

    # --- looking -----------------------------------------------------------------------------------

    def state(self) -> RunState:
        """Return the state now; only what is new in the journal is read. Raises `InputError` when the folder is gone."""
        entries, self._offset = journal.read(self._folder.journal, self._offset)
        for entry in entries:
            if entry.kind == "run-started":
                self._socket = Path(str(entry.data.get("socket", "")))
        self._state = journal.fold(entries, self._state)
        return self._state

    def summary(self) -> RunSummary:
        """Return the run's line in `bringup runs`."""
        state = self.state()
        return RunSummary(
            id=self.id,
            folder=self.folder,
            owner=state.owner,
            started=state.started,
            ended=state.ended,
            status=state.status,
            exit=state.exit,
            alive=self.alive(),
        )

    def is_ours(self) -> bool:
        """Return whether it lies where the launcher looks for it: there might be another run of this name."""
        root = os.geteuid() == 0 or (self.plan.needs_root and not self.plan.target.rehearsal)
        return self._folder.path.parent == state_folder(root=root, owner=invoking_owner()) / "runs"

    def alive(self) -> bool:
        """Return whether a runner is at work on it; a run that is neither alive nor over was cut off and can be resumed."""
        return is_held(self._folder.lock)

    def spool(self, action_id: str) -> Spool:
        """Return the output of an action."""
        if action_id not in self._spools:
            self._spools[action_id] = Spool(self._folder.output(action_id))
        return self._spools[action_id]

    def verdict(self) -> tuple[Rung, ...] | None:
        """Return the rungs that the plan's proof printed; `None` while there are none."""
        proof = next((action for action in reversed(self.plan.actions) if action.lane == "proof"), None)
        if proof is None:
            return None
        spool = self.spool(proof.id)
        for line in reversed(spool.read(max(0, spool.size() - (1 << 20)), 1 << 20).splitlines()):
            if line.startswith(b"{") and b'"bringup/verify"' in line[:80]:
                try:
                    return from_document(msgspec.json.decode(line))
                except msgspec.MsgspecError:
                    return None
        return None

    # --- talking to a runner that is at work ---------------------------------------------------------

    def answer(self, seq: int, text: str) -> None:
        """Answer prompt `seq`: a line, or the id of one of its row's answers; raises `InputError("answer-late")` when it is not open."""
        self._say(Request(word="answer", seq=seq, text=text))

    def keys(self, seq: int, data: bytes) -> None:
        """Type into the full-screen dialog of prompt `seq`."""
        self._say(Request(word="keys", seq=seq, data=data))

    def cancel(self) -> None:
        """Stop the run; a package manager that has begun to unpack is left to finish first."""
        self._say(Request(word="cancel"))

    def pause(self) -> None:
        """Let no further action begin."""
        self._say(Request(word="pause"))

    def proceed(self) -> None:
        """Take back a pause."""
        self._say(Request(word="continue"))

    def _say(self, request: Request) -> None:
        response = self._response(request)
        if response is None:
            raise InputError("run-not-active", run=self.id)
        if response.error is not None:
            raise InputError(response.error, run=self.id)

    def _response(self, request: Request) -> Response | None:
        self.state()
        return None if self._socket is None else ask(self._socket, request)

    # --- going on with one that has stopped ----------------------------------------------------------

    def retry(self, action: str, *, sudo: Sudo | None = None) -> None:
        """Try a failed action again, and then go on."""
        response = self._response(Request(word="retry", action=action))
        if response is None or response.error == RUN_OVER:
            self._go_on((), sudo)
        elif response.error is not None:
            raise InputError(response.error, run=self.id)

    def skip(self, action: str, *, sudo: Sudo | None = None) -> None:
        """Pass over a failed action, and then go on."""
        response = self._response(Request(word="skip", action=action))
        if response is None or response.error == RUN_OVER:
            self._go_on(("--skip", action), sudo)
        elif response.error is not None:
            raise InputError(response.error, run=self.id)

    def resume(self, *, sudo: Sudo | None = None) -> None:
        """Go on after a crash, a reboot or a failure; what is done already is not done again.

        Raises `InputError("run-undone")` once its undo was begun.
        """
        self._go_on((), sudo)

    def undo(self, *, sudo: Sudo | None = None) -> None:
        """Take the run back, newest action first."""
        self._go_on(("--undo",), sudo)

    def _go_on(self, words: tuple[str, ...], sudo: Sudo | None) -> None:
        if not self._folder.exists():
            raise InputError("run-vanished", run=self.id, folder=self.folder)
        if "--undo" not in words and journal.is_taken_back(self.state()):
            raise InputError("run-undone", run=self.id)
        if not self.is_ours():
            raise PrivilegeError("run-of-another", run=self.id)
        needs_root = self.plan.needs_root and not self.plan.target.rehearsal
        _launch(("--run", self.id, *words), needs_root=needs_root, sudo=sudo)
