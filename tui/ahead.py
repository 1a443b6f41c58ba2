"""Downloading ahead while questions are open: begun by a person's yes alone, follows the answers, and ends with the program."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from steps.errors import BringupError, PrivilegeError
from steps.model.base import phrase
from steps.text import say_error
from tui import privilege, terminal
from tui.screens.base import Key, ui

if TYPE_CHECKING:
    from steps.model.action import AnyAction
    from steps.model.plan import Plan
    from tui.app import BringupApp

KEY = Key(("D",), "ahead", "D", ui("key.ahead"), footer=False)
LOOK = 1.0
"""Seconds between two looks at the answers and at the download."""
_SETTLED = 3.0
"""Seconds in which the answers have to stand before what they need is fetched."""


class Ahead:
    """The download ahead of one wizard; it does nothing before `agreed`."""

    def __init__(self, app: BringupApp) -> None:
        self._app = app
        self._on = False
        self._asks = False
        """Whether root may be asked for in the terminal: once, at the yes."""
        self._busy = False
        self._handle: Any = None
        self._fetched: tuple[AnyAction, ...] = ()
        """What the present download fetches, or has fetched."""
        self._wanted: tuple[AnyAction, ...] = ()
        self._since = 0.0
        self._later = False
        self._told: Any = None
        """The handle whose failure was said."""

    @property
    def later(self) -> bool:
        """Whether packages of the plan that was made last cannot be fetched before it adds their repository, or without root."""
        return self._later

    @property
    def on(self) -> bool:
        """Whether a person has agreed."""
        return self._on

    def agree(self, *, asks: bool) -> None:
        """Fetch from now on what the answers need; `asks` allows sudo to ask in the terminal, once."""
        self._on, self._asks, self._since = True, asks, 0.0
        self.look()

    def plan(self) -> Plan | None:
        """Return what would be fetched now; `None` before the machine is known and where the answers make no plan."""
        try:
            plan = self._app.wizard.plan()
        except BringupError:
            return None
        if plan is None or plan.target.rehearsal:
            return None
        fetches = self._app.wizard.backend.ahead(plan, root=self._app.privilege() != "none")
        ids = {action.id for action in fetches.actions}
        self._later = any(getattr(action, "install", ()) and f"ahead.{action.id}" not in ids for action in plan.actions)
        return fetches

    def look(self) -> None:
        """Begin, follow changed answers, say what failed, or do nothing; called once a second."""
        self._say_failure()
        plan = self.plan() if self._on and not self._busy else None
        if plan is None:
            return
        now = time.monotonic()
        if plan.actions != self._wanted:
            self._wanted, self._since = plan.actions, now
            if self._handle is not None and self._fetched != plan.actions:
                self._in_thread(self._app.wizard.backend.stop_fetching)
        elif plan.actions != self._fetched and (self._asks or now - self._since >= _SETTLED):
            self._begin(plan)

    def _begin(self, plan: Plan) -> None:
        self._fetched = plan.actions
        if not plan.actions:
            self._handle = None
            return
        if plan.needs_root and self._asks and (asks := privilege.sudo()) is not None:
            self._asks = False
            # A repaint while the driver is stopped would fill its queue and stop the event loop for good; a batch holds repaints back.
            with self._app.batch_update(), self._app.suspend():
                terminal.say_aside(self._app.say(ui("sudo-asks")))
                self._start(plan, asks)
            return
        self._asks = False
        self._in_thread(lambda: self._start(plan, privilege.quiet_sudo()))

    def _in_thread(self, act: Any) -> None:
        self._busy = True

        def done() -> None:
            try:
                act()
            finally:
                self._busy = False

        self._app.run_worker(done, thread=True, exit_on_error=False)

    def _start(self, plan: Plan, sudo: privilege.Sudo | None) -> None:
        """Start the fetch; where root is refused only the wheels, and where another run works nothing."""
        backend = self._app.wizard.backend
        try:
            self._handle = backend.start(plan, sudo)
        except PrivilegeError:
            own = backend.without_root_ahead(plan)
            self._handle = backend.start(own, None) if own.actions else None
        except BringupError as error:
            self._handle, self._on = None, False
            self._app.call_later(self._app.tell, say_error(self._app.language, error.code, error.params))

    def stop(self, *, beside: bool = True) -> None:
        """Stop it, and fetch no more; not `beside` the screen once there is none any more."""
        self._on, self._handle, self._fetched, self._wanted = False, None, (), ()
        if beside:
            self._in_thread(self._app.wizard.backend.stop_fetching)
        else:
            self._app.wizard.backend.stop_fetching()

    def taken_over(self) -> None:
        """Fetch no more: the run that begins has stopped it."""
        self._on, self._handle = False, None

    def _say_failure(self) -> None:
        """Say once for each download why a part of it failed."""
        if not self._on or self._busy or self._handle is None or self._handle is self._told:
            return
        try:
            state = self._handle.state()
        except BringupError:
            return
        for action in self._handle.plan.actions:
            one = state.actions.get(action.id)
            if one is not None and one.status == "failed":
                self._told = self._handle
                error = self._app.say(one.error) if one.error is not None else ""
                self._app.tell(self._app.say(phrase("ui.ahead.failed", title=self._app.say(action.title), error=error)))
                return

    def words(self) -> str:
        """Return its state for the header; "" while it is not agreed to."""
        if not self._on:
            return ""
        # Not for the first screen, which has no word of it.
        from tui.watching import ENDED, of

        if self._handle is None or self._busy:
            return self._app.say(phrase("ui.ahead.waits"))
        try:
            state = self._handle.state()
        except BringupError:
            return ""
        actions = [action for action in self._handle.plan.actions if action.download_bytes is not None or action.lane != "packages"]
        actions = actions or list(self._handle.plan.actions)
        done = sum(of(state, action.id).status in ("done", "already") for action in actions)
        failed = sum(of(state, action.id).status == "failed" for action in self._handle.plan.actions)
        word = "partly" if failed else "at"
        if state.status in ENDED and not failed:
            word = "stopped" if done < len(actions) else self._whole()
        return self._app.say(phrase(f"ui.ahead.{word}", done=done, total=len(actions), failed=failed))

    def _whole(self) -> str:
        """Return the word for all that could be fetched: it may be less than all that is needed."""
        if not self._later:
            return "done"
        return "done-known" if self._handle.plan.needs_root else "done-wheels"
