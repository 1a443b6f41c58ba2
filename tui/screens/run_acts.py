"""What the screen of a run starts: its own runner again, the run of a repair, and the way back from there."""

from __future__ import annotations

import sys
from collections.abc import Callable

from steps.errors import BringupError
from steps.model.base import phrase
from steps.model.plan import Plan
from steps.text import say, say_error
from tui.privilege import Sudo, sudo
from tui.screens.run_doctor import RepairPage
from tui.screens.run_view import RunView
from tui.watching import Watched


class RunActs(RunView):
    """A run whose runner can be started from its screen."""

    def _launch(self, act: Callable[[Sudo | None], Watched | None], plan: Plan | None = None) -> None:
        """Start a runner: beside the screen, or with the screen put aside where `sudo` asks in the real terminal.

        `plan` is what it works on, where that is not this run's; what `act` returns is another run, which is watched from then on.
        """
        plan = plan or self.handle.plan
        asks = sudo() if plan.needs_root and not plan.target.rehearsal else None
        self.busy = True
        if asks is None:
            self.run_worker(lambda: self._beside(act), thread=True, exit_on_error=False)
            return
        # A repaint while the driver is stopped would fill its queue and stop the event loop for good; a batch holds repaints back.
        with self.app.batch_update(), self.app.suspend():
            sys.stdout.write(say(self.shell.language, phrase("ui.sudo-asks")) + "\n")
            sys.stdout.flush()
            said, other = self._tried(act, asks)
        self._launched(said, other)

    def _beside(self, act: Callable[[Sudo | None], Watched | None]) -> None:
        """Start the runner in a thread, since that takes longer than a key may."""
        said, other = self._tried(act, None)
        self.app.call_from_thread(self._launched, said, other)

    def _tried(self, act: Callable[[Sudo | None], Watched | None], asks: Sudo | None) -> tuple[str, Watched | None]:
        """Return the words of the error that a person can answer, and the other run that is to be watched."""
        found: list[Watched | None] = []
        said = self._said_of(lambda: found.append(act(asks)))
        return said, found[0] if found else None

    def _said_of(self, act: Callable[[], object]) -> str:
        """Do it and return the words of the error that a person can answer; "" when there was none."""
        try:
            act()
        except BringupError as error:
            return say_error(self.shell.language, error.code, error.params)
        return ""

    def _launched(self, said: str, other: Watched | None) -> None:
        """Look at the run again, or at the other one."""
        self.busy = False
        if other is not None:
            self._watch(other)
            return
        self._said = said
        self._without = 0
        self.poll()

    def _try(self, act: Callable[[], object]) -> None:
        """Do it; an error that a person can answer is said above the keys."""
        said = self._said_of(act)
        if said:
            self.remark(said)
        else:
            self.poll()

    def _order(self, act: Callable[[], object]) -> None:
        """Do it in a thread: a runner that is stopped or overrun lets wait for seconds, and the screen must not."""

        def done() -> None:
            said = self._said_of(act)
            self.app.call_from_thread(self.remark if said else self.poll, *([said] if said else []))

        self.run_worker(done, thread=True, exit_on_error=False)

    def do_again(self) -> None:
        """Try the failed action again."""
        action = self.seen.action.id
        self._launch(lambda asks: self.handle.retry(action, sudo=asks))

    def do_leave_out(self) -> None:
        """Go on without the failed action."""
        action = self.seen.action.id
        self._launch(lambda asks: self.handle.skip(action, sudo=asks))

    def do_repair(self) -> None:
        """Show what the repair changes and how it is taken back; agreed to, it is a run of its own: this one has let go of the machine."""
        told = self.told
        if told is not None:
            self.app.push_screen(RepairPage(self, told.verdict, told.plan, lambda: self._start_repair(told.plan)))

    def _start_repair(self, plan: Plan) -> None:
        """Start the run of the repair, and watch it in place of this one."""
        from steps.headless import runs

        self._launch(lambda asks: runs.start(plan, asks, language=self.shell.language), plan)

    def do_go_on(self) -> None:
        """Go on with the run that this one repaired."""
        repaired = self._repaired
        if repaired is not None:
            self._launch(lambda asks: _resumed(repaired, asks), repaired.plan)

    def do_back(self) -> None:
        """Look at the run that this one was to repair."""
        if self._repaired is not None:
            self._watch(self._repaired)

    def _watch(self, handle: Watched) -> None:
        """Show another run in place of this one, with what lies above it: two screens of one stack would both follow their run's end."""
        while self.app.screen is not self:
            self.app.pop_screen()
        self.app.switch_screen(type(self)(handle, now=self._now))

    def do_resume(self) -> None:
        """Start a runner that goes on."""
        self._launch(lambda asks: self.handle.resume(sudo=asks))


def _resumed(handle: Watched, asks: Sudo | None) -> Watched:
    """Start a runner that goes on with a run, and return the run."""
    handle.resume(sudo=asks)
    return handle
