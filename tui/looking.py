"""The part of the wizard that looks at the machine, in a thread."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from textual.app import ScreenStackError

from steps.errors import BringupError
from steps.text import say_error
from tui.backend import Backend, Privilege
from tui.messages import Broken, Confirmed, Failed, MachineLooked, Offered, RunsListed
from tui.screens.base import Page, ui
from tui.shell import Look, Shell
from tui.wizard import Wizard

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from steps.model.finding import Finding
    from steps.model.machine import Machine
    from steps.model.plan import Plan, Target
    from steps.model.profile import Profile
    from steps.model.run import RunSummary

SLOW = 2.0
"""Seconds after which the reading of the machine is named as slow."""


class LookingApp(Shell):
    """Knows the machine and the answers; the first screen is there before the machine is known."""

    def __init__(self, backend: Backend, answers: Profile | None = None, **look: Unpack[Look]) -> None:
        super().__init__(**look)
        self.wizard = Wizard(backend, answers)
        self.trouble: BringupError | None = None
        """Why the machine could not be looked at."""
        self._looking = False
        self._since = 0.0
        self.earlier: tuple[RunSummary, ...] | None = None
        self._confirming: Plan | None = None
        self._confirmed: tuple[Finding, ...] | None = None

    def look_again(self) -> None:
        """Look at the machine in a thread; the answers that were changed are kept."""
        if self._looking:
            return
        self._looking, self._since, self.trouble = True, time.monotonic(), None
        if self.wizard.ready and self.wizard.unsaved:
            self.wizard.given = self.wizard.answers
        self.run_worker(self._look, thread=True, exit_on_error=False)
        self.set_timer(SLOW, self._redraw)

    def _look(self) -> None:
        try:
            self.post_message(MachineLooked(self.wizard.backend.look()))
            self.post_message(RunsListed(self.wizard.backend.runs()))
        except BringupError as error:
            self.post_message(Failed(error))
        except Exception as error:  # noqa: BLE001 - a bug of ours is said on the screen; the thread has nobody above it
            self.post_message(Broken(f"{type(error).__name__}: {error}"))

    def on_machine_looked(self, message: MachineLooked) -> None:
        """Fill in what was being read."""
        self._looking = False
        try:
            self.wizard.looked(message.looked)
        except BringupError as error:
            self.trouble = error
        self.machine_known()
        self._redraw()
        machine, target = self.wizard.machine, self.wizard.target
        if machine is not None and target is not None:
            self.run_worker(lambda: self._ask_offers(machine, target), thread=True, exit_on_error=False)

    def _ask_offers(self, machine: Machine, target: Target) -> None:
        try:
            self.post_message(Offered(machine, self.wizard.backend.offered(machine, target)))
        except BringupError:
            # Without an answer everything goes on from the tables, and the plan says what nobody confirmed.
            return
        except Exception as error:  # noqa: BLE001 - as above
            self.post_message(Broken(f"{type(error).__name__}: {error}"))

    def on_offered(self, message: Offered) -> None:
        """Judge anew with what is on offer; the answers stay, whatever it is."""
        if self.wizard.machine is message.before:
            self.wizard.offered(message.machine)
            self._redraw()

    def confirmed(self, plan: Plan) -> tuple[Finding, ...] | None:
        """Return what could not be confirmed of a plan; `None` while it is being asked, which the first call begins."""
        machine = self.wizard.machine
        if self._confirming is not plan and machine is not None:
            self._confirming, self._confirmed = plan, None
            self.run_worker(lambda: self._confirm(machine, plan), thread=True, exit_on_error=False)
        return self._confirmed

    def _confirm(self, machine: Machine, plan: Plan) -> None:
        try:
            self.post_message(Confirmed(plan, self.wizard.backend.confirmed(machine, plan)))
        except BringupError:
            return
        except Exception as error:  # noqa: BLE001 - as above
            self.post_message(Broken(f"{type(error).__name__}: {error}"))

    def on_confirmed(self, message: Confirmed) -> None:
        """Fill in what nobody could confirm."""
        if self._confirming is message.plan:
            self._confirmed = message.found
            self._redraw()

    def machine_known(self) -> None:
        """Go on with what waited for the machine."""

    def on_runs_listed(self, message: RunsListed) -> None:
        """Fill in the earlier runs."""
        self.earlier = message.runs
        self._redraw()

    def on_failed(self, message: Failed) -> None:
        """Say what went wrong and what to do."""
        self._looking = False
        self._trouble_of(message.error)

    def on_broken(self, message: Broken) -> None:
        """Say that this is our fault, and that nothing was changed."""
        self._looking = False
        self._trouble_of(BringupError("bug", detail=message.detail))

    def _trouble_of(self, error: BringupError) -> None:
        """Say an error: on the first screen while no machine is known, else below the title."""
        if self.wizard.ready:
            self.tell(say_error(self.language, error.code, error.params))
        else:
            self.trouble = error
            self._redraw()

    def tell(self, sentence: str) -> None:
        """Say a sentence below the title of the screen."""
        self.wizard.remark = sentence
        self._redraw()

    def top(self) -> Page | None:
        """Return the screen on top, or `None` while the program ends."""
        try:
            screen = self.screen
        except ScreenStackError:
            return None
        return screen if isinstance(screen, Page) else None

    def _redraw(self) -> None:
        page = self.top()
        if page is not None:
            page.redraw()

    # --- what the header and the first screen say -------------------------------------------------------

    @property
    def machine_line(self) -> str:
        """Return the machine's name and summary, or that it is being read."""
        target = self.wizard.target
        if target is None:
            return self.say(ui("reading-now"))
        return " · ".join(part for part in (target.name, target.summary) if part)

    @property
    def notice(self) -> str:
        """Return REHEARSAL or the other root, and that the link is slow."""
        target = self.wizard.target
        parts = [super().notice]
        if target is not None and target.rehearsal:
            parts.insert(0, self.say(ui("rehearsal")))
        elif target is not None and target.root != "/":
            parts.insert(0, self.say(ui("target", root=target.root)))
        return " · ".join(part for part in parts if part)

    @property
    def recorded(self) -> bool:
        """Whether a recorded machine is shown."""
        return self.wizard.backend.recording

    def slow_words(self) -> str:
        """Return how long the reading has taken, once it is worth saying."""
        gone = time.monotonic() - self._since
        return self.say(ui("welcome.slow", seconds=int(gone))) if self._looking and gone >= SLOW - 0.1 else ""

    def privilege(self) -> Privilege:
        """Return how root can be had."""
        return self.wizard.backend.privilege()
