"""The wizard as an application: the machine, the answers, the language, the order of the screens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from steps.errors import BringupError
from steps.text import say_error
from tui import terminal
from tui.ahead import LOOK, Ahead
from tui.backend import Backend, House
from tui.looking import LookingApp
from tui.messages import Broken, Failed, Started
from tui.screens.base import Page, ui
from tui.screens.step import StepScreen
from tui.screens.welcome import WelcomeScreen
from tui.shell import Look, Shell, look_here
from tui.wizard import Wizard

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from steps.model.plan import Plan
    from steps.model.profile import Profile
    from steps.model.step import Step
    from tui.screens.step_acts import StepActs


class BringupApp(LookingApp):
    """The wizard; the first screen is there at once, the machine is looked at behind it."""

    def __init__(self, backend: Backend, answers: Profile | None = None, **look: Unpack[Look]) -> None:
        super().__init__(backend, answers, **look)
        self.visited: set[str] = set()
        """Steps that a person has seen."""
        self.review_when_ready = False
        """Whether the recommendation was asked for before the machine was known."""
        self.made_for: str | None = None
        """The machine that the loaded profile was saved on."""
        self.ahead = Ahead(self)

    def on_mount(self) -> None:
        """Show the first screen, then look at the machine; who asked for Chinese where it cannot be shown is told why it is English."""
        if self.lacks_han:
            self.wizard.remark = self.say(ui("no-han"))
        self.push_screen(WelcomeScreen())
        self.call_after_refresh(self.look_again)
        self.set_interval(LOOK, self._look_ahead)

    def _look_ahead(self) -> None:
        """Follow the answers with what is downloaded, and say how far it is."""
        self.ahead.look()
        if self.ahead.on:
            self._redraw()

    @property
    def notice(self) -> str:
        """Return what the header says before the state of a screen, with the state of the download ahead."""
        return " · ".join(part for part in (super().notice, self.ahead.words()) if part)

    def ask_ahead(self) -> None:
        """Ask whether to download ahead, with what it comes to; or stop it where it was agreed to."""
        from steps.detect import measures
        from tui.screens.confirm import ConfirmPage

        if self.ahead.on:
            self.ahead.stop()
            return
        plan = self.ahead.plan()
        if plan is None or not plan.actions:
            self.tell(self.say(ui("ahead.nothing")))
            return
        size = measures.download(sum(action.download_bytes or 0 for action in plan.actions))
        # The plan's own repositories are unknown to apt as yet; without root not even the known ones can be read from.
        lock = "own-lock" if plan.needs_root else "no-root" if self.privilege() == "none" else "wheels"
        keys = ["what", *(["later"] if plan.needs_root and self.ahead.later else []), "where", lock, "ends"]
        sentences = [self.say(ui(f"ahead.{key}", size=size)) for key in keys]
        self.push_screen(ConfirmPage(self.say(ui("ahead.title")), sentences, lambda: self.ahead.agree(asks=True)))

    def ran(self) -> int:
        """Run until it is left; nothing that was only fetched goes on after it."""
        try:
            return super().ran()
        finally:
            if self.ahead.on:
                self.ahead.stop(beside=False)

    def machine_known(self) -> None:
        """Open the review that was asked for while the machine was read; download ahead where the profile says so."""
        if self.wizard.answers.network.download_ahead and not self.ahead.on:
            self.ahead.agree(asks=False)
        if self.review_when_ready and self.wizard.advised is not None:
            self.go_review()
        self.review_when_ready = False
        self.say_made_for()

    # --- the order of the screens -----------------------------------------------------------------------

    def after(self, step: Step) -> Step | None:
        """Return the step behind a step, or `None` when the review follows."""
        at = self.wizard.steps.index(step) + 1
        return self.wizard.steps[at] if at < len(self.wizard.steps) else None

    def open_step(self, step: Step, *, from_review: bool = False) -> None:
        """Show a step; opened from the review it returns there."""
        self.visited.add(step.KEY)
        self.push_screen(StepScreen(step, from_review=from_review))

    def go_first(self) -> None:
        """Start the walk."""
        if self.wizard.steps:
            self.open_step(self.wizard.steps[0])

    def go_on(self, screen: StepActs) -> None:
        """Go from a step to the next one, or to the review."""
        if screen.from_review:
            self.pop_screen()
            return
        following = self.after(screen.step)
        if following is None:
            self.go_review()
        else:
            self.open_step(following)

    def go_back(self, screen: Page) -> None:
        """Go to the screen before; every answer is kept."""
        screen.dismiss()

    def go_review(self) -> None:
        """Show the review."""
        from tui.screens.review import ReviewScreen

        self.push_screen(ReviewScreen())

    def open_options(self) -> None:
        """Show the options."""
        from tui.screens.lists import OptionsPage

        self.push_screen(OptionsPage())

    def open_runs(self) -> None:
        """Show the earlier runs; Enter opens one."""
        from tui.screens.lists import RunsPage

        self.push_screen(RunsPage())

    def open_recorded(self) -> None:
        """Show the recorded machines; Enter goes on with one, and nothing real is touched."""
        from tui.screens.lists import RecordedPage

        self.push_screen(RecordedPage())

    def open_check(self, *, as_it_is: bool = False) -> None:
        """Show every finding for the answers, or for the machine as it is; nothing can be changed there."""
        from tui.screens.lists import CheckPage

        self.push_screen(CheckPage(as_it_is=as_it_is))

    def rehearse(self, path: str) -> None:
        """Go on with a recorded machine; its answers are new."""
        self.wizard.backend.rehearse(path)
        self.wizard = Wizard(self.wizard.backend)
        self.visited.clear()
        self.look_again()

    # --- profiles ---------------------------------------------------------------------------------------

    def profile_name(self) -> str:
        """Return the file name that is offered for the profile."""
        name = self.wizard.target.name if self.wizard.target is not None and self.wizard.target.name else "bringup"
        return f"{name}.toml"

    def load_profile(self, path: str) -> None:
        """Read a profile and show the review; a wrong one is named with its line, and nothing is taken."""
        try:
            answers = self.wizard.backend.read_profile(path)
            self.made_for = self.wizard.backend.made_for(path)
        except BringupError as error:
            self.tell(say_error(self.language, error.code, error.params))
            return
        self.wizard.load(answers)
        if self.wizard.ready:
            self.go_review()
            self.say_made_for()

    def say_made_for(self) -> None:
        """Say when the profile was saved on another machine; what does not fit is marked, and nothing is taken silently."""
        target = self.wizard.target
        if self.made_for and target is not None and self.made_for != target.summary:
            self.tell(self.say(ui("made-for", there=self.made_for, here=target.summary)))

    def _profile_text(self) -> str:
        summary = self.wizard.target.summary if self.wizard.target is not None else ""
        return self.wizard.backend.profile_text(self.wizard.answers, summary)

    def save_profile(self, screen: Page, path: str | None = None) -> None:
        """Write the answers into a file of the person's."""
        if self.save_text(path or self.profile_name(), self._profile_text()):
            self.wizard.saved()

    def save_text(self, path: str, text: str) -> bool:
        """Write a file and say where it lies, or why it could not be written."""
        try:
            written = self.wizard.backend.save(path, text)
        except BringupError as error:
            self.tell(say_error(self.language, error.code, error.params))
            return False
        self.tell(self.say(ui("saved", file=written)))
        return True

    def save_card(self) -> None:
        """Write the BIOS card into a file of the person's, in the language of the screen."""
        machine = self.wizard.machine
        if machine is not None:
            self.save_text("bios-card.txt", self.wizard.backend.card(machine, self.wizard.answers, self.language))

    # --- starting and leaving ---------------------------------------------------------------------------

    def start(self, plan: Plan) -> None:
        """Start the run; `sudo` asks in the real terminal with the screen put aside."""
        # It may have been changed on a screen since the program began.
        self.wizard.backend.language = self.language
        if plan.needs_root and not plan.target.rehearsal and self.privilege() == "sudo":
            self._start_with_sudo(plan)
        else:
            self.run_worker(lambda: self._start(plan), thread=True, exit_on_error=False)

    def _start(self, plan: Plan) -> None:
        try:
            self.post_message(Started(self.wizard.backend.start(plan, None)))
        except BringupError as error:
            self.post_message(Failed(error))
        except Exception as error:  # noqa: BLE001 - a bug of ours is said on the screen; the thread has nobody above it
            self.post_message(Broken(f"{type(error).__name__}: {error}"))

    def _start_with_sudo(self, plan: Plan) -> None:
        from tui.privilege import sudo

        message: Started | Failed
        # A repaint while the driver is stopped would fill its queue and stop the event loop for good; a batch holds repaints back.
        with self.batch_update(), self.suspend():
            terminal.say_aside(self.say(ui("sudo-asks")))
            try:
                message = Started(self.wizard.backend.start(plan, sudo()))
            except BringupError as error:
                message = Failed(error)
        self.post_message(message)

    def on_started(self, message: Started) -> None:
        """Watch the run."""
        self.wizard.saved()
        self.ahead.taken_over()
        self.push_screen(self.wizard.backend.watch(message.handle))

    def leave(self) -> None:
        """Leave; ask only when answers would be lost."""
        if self.wizard.unsaved:
            from tui.screens.base import Key
            from tui.screens.confirm import ConfirmPage

            title = self.say(ui("leave.title"))
            sentence = self.say(ui("leave.sentence" if self.wizard.unsaved > 1 else "leave.sentence-one", count=self.wizard.unsaved))
            save = Key(("s",), "save", "s", ui("key.save-profile"))
            self.push_screen(ConfirmPage(title, (sentence,), self._leave_now, extra=(save,), actions={"save": self._save_and_leave}))
            return
        self._leave_now()

    def _leave_now(self) -> None:
        self.exit(self.trouble.exit_code if self.trouble is not None and not self.wizard.ready else 0)

    def _save_and_leave(self) -> None:
        if self.save_text(self.profile_name(), self._profile_text()):
            self.exit(0)


def _set_named(name: str) -> str | None:
    """Return the name when it is one of a set of packages, else `None`."""
    from steps.compat import package_sets

    return name if package_sets.named(name) else None


def wizard(asked: Mapping[str, Any], environ: Mapping[str, str], language: str) -> int:
    """Open the wizard and return the exit code."""
    told = terminal.survey(environ, no_color=bool(asked.get("no_color")))
    path = asked.get("profile")
    package_set = None if not path or terminal.exists(path) else _set_named(path)
    house = House(
        machine=terminal.full_path(asked["machine"]) if asked.get("machine") else None,
        root=terminal.full_path(asked["root"]) if asked.get("root") else None,
        language="zh_CN" if language == "zh_CN" else "en",
        offline=bool(asked.get("offline")),
        package_set=package_set,
    )
    answers = house.read_profile(path) if path and not package_set else None
    app = BringupApp(house, answers, **look_here(told, language, low_bandwidth=bool(asked.get("low_bandwidth"))))
    app.made_for = house.made_for(asked["profile"]) if asked.get("profile") else None
    return app.ran()


class Watch(Shell):
    """One run and nothing else: `bringup attach`."""

    def __init__(self, handle: Any, **look: Unpack[Look]) -> None:
        super().__init__(**look)
        self._handle = handle

    @property
    def machine_line(self) -> str:
        """Return the machine of the run's plan."""
        target = self._handle.plan.target
        return " · ".join(part for part in (target.name, target.summary) if part)

    @property
    def recorded(self) -> bool:
        """Whether the run is a rehearsal."""
        return bool(self._handle.plan.target.rehearsal)

    def on_mount(self) -> None:
        """Show the run."""
        from tui.screens.run import RunScreen

        self.push_screen(RunScreen(self._handle, attached=True))


def watch(handle: Any, language: str, *, no_color: bool = False, low_bandwidth: bool = False) -> int:
    """Show a run and return its exit code, 0 while it goes on."""
    told = terminal.survey(terminal.environment(), no_color=no_color)
    return Watch(handle, **look_here(told, language, low_bandwidth=low_bandwidth)).ran()
