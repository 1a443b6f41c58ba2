"""The wizard as an application: the machine, the answers, the language, the order of the screens."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from textual import events
from textual.app import ScreenStackError

from steps.errors import BringupError
from steps.model.base import phrase
from steps.text import FindingPart, Language, say_error, say_finding
from tui import terminal
from tui.backend import Backend, House, Privilege
from tui.messages import Broken, Failed, MachineLooked, RunsListed, Started
from tui.screens.base import Page, ui
from tui.screens.step import StepScreen
from tui.screens.welcome import WelcomeScreen
from tui.screens.wizard_page import MARK_OF
from tui.shell import Shell
from tui.theme import Marks, PaletteName
from tui.wizard import Wizard

if TYPE_CHECKING:
    from steps.model.finding import Finding
    from steps.model.plan import Plan
    from steps.model.profile import Profile
    from steps.model.run import RunSummary
    from steps.model.step import Step
    from tui.widgets.menu import Item

_ORDER = ("bad", "catch", "good")
SLOW = 2.0
"""Seconds after which the reading of the machine is named as slow."""


class BringupApp(Shell):
    """The wizard; the first screen is there at once, the machine is looked at behind it."""

    def __init__(
        self,
        backend: Backend,
        answers: Profile | None = None,
        *,
        language: Language = "en",
        palette: PaletteName = "dark",
        marks: Marks = "unicode",
        low_bandwidth: bool = False,
        probe: bool = False,
        over_ssh: bool = False,
    ) -> None:
        super().__init__(language=language, palette=palette, marks=marks, low_bandwidth=low_bandwidth)
        self.wizard = Wizard(backend, answers)
        self.visited: set[str] = set()
        """Steps that a person has seen."""
        self.trouble: BringupError | None = None
        """Why the machine could not be looked at."""
        self.review_when_ready = False
        self._probe = probe
        self._over_ssh = over_ssh
        self._asked_at = 0.0
        self._looking = False
        self._since = 0.0
        self._runs: tuple[RunSummary, ...] | None = None

    # --- looking at the machine -------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Show the first screen, then look at the machine."""
        self.push_screen(WelcomeScreen())
        self.call_after_refresh(self._first_painted)

    def _first_painted(self) -> None:
        self.look_again()
        if self._probe and self._driver is not None:
            self._asked_at = time.monotonic()
            self._driver.write(terminal.PROBE)
            self._driver.flush()

    def on_cursor_position(self, event: events.CursorPosition) -> None:
        """Take the answer of the probe: how wide an ambiguous sign is, and how far away the terminal is."""
        if not self._asked_at:
            return
        trip, self._asked_at = time.monotonic() - self._asked_at, 0.0
        # The answer names the column behind the sign, counted from 0: 1 for a sign of one cell, 2 for a wide one.
        if event.x >= 2 and self.marks == "unicode":
            self.marks = "narrow"
        if trip > terminal.FAR and self._over_ssh:
            self.low_bandwidth = True
        page = self.top()
        if page is not None:
            page.do_repaint()
            page.redraw()

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
        if self.review_when_ready and self.wizard.advised is not None:
            self.go_review()
        self.review_when_ready = False
        self._redraw()

    def on_runs_listed(self, message: RunsListed) -> None:
        """Fill in the earlier runs."""
        self._runs = message.runs
        self._redraw()

    def on_failed(self, message: Failed) -> None:
        """Say what went wrong and what to do."""
        self._looking = False
        if not self.wizard.ready:
            self.trouble = message.error
        self.tell(say_error(self.language, message.error.code, message.error.params))

    def on_broken(self, message: Broken) -> None:
        """Say that this is our fault, and that nothing was changed."""
        self._looking = False
        error = BringupError("bug", detail=message.detail)
        if not self.wizard.ready:
            self.trouble = error
        self.tell(say_error(self.language, error.code, error.params))

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

    def slow_words(self) -> str:
        """Return how long the reading has taken, once it is worth saying."""
        gone = time.monotonic() - self._since
        return self.say(ui("welcome.slow", seconds=int(gone))) if self._looking and gone >= SLOW - 0.1 else ""

    def found_words(self) -> str:
        """Return what was found, in one line."""
        machine = self.wizard.machine
        if machine is None:
            return ""
        found = (", " if self.language == "en" else "，").join(self.wizard.found)
        driver = self.say(
            ui(f"driver-state.{machine.driver.state}", version=machine.driver.kernel_version or machine.driver.library_version or "?")
        )
        return self.say(ui("welcome.found", what=found, driver=driver))

    def earlier_count(self) -> int | None:
        """Return how many earlier runs there are, or `None` while they are read."""
        return None if self._runs is None else len(self._runs)

    def privilege(self) -> Privilege:
        """Return how root can be had."""
        return self.wizard.backend.privilege()

    # --- what the answers come to -----------------------------------------------------------------------

    def worst_of(self, step: Step) -> str:
        """Return "bad", "catch" or "good" for the answers of a step."""
        marks = {MARK_OF[finding.severity] for finding in self.wizard.check(step)}
        return next((mark for mark in _ORDER if mark in marks), "good")

    def values_of(self, step: Step) -> tuple[str, ...]:
        """Return what is answered in a step, in names; empty where nothing is."""
        return tuple(
            self.say(option.label)
            for choice in self.wizard.choices(step)
            if choice.kind in ("one", "many")
            for option in choice.options
            if option.value in choice.taken
        )

    def value_of(self, step: Step) -> str:
        """Return all that is answered in a step in one line."""
        return (", " if self.language == "en" else "、").join(self.values_of(step))

    def short_value_of(self, step: Step) -> str:
        """Return the first answer of a step; where it asks for none, how much is to be looked at."""
        values = self.values_of(step)
        if values:
            return values[0]
        count = sum(finding.severity in ("error", "warning") for finding in self.wizard.check(step))
        return self.say(ui("to-do", count=count)) if count else "–"

    def costs(self, plan: Plan) -> list[tuple[str, str]]:
        """Return (key, words) of what a plan costs: download, disk, time, reboots; what is not known is left out."""
        download = sum(action.download_bytes or 0 for action in plan.actions)
        disk = sum(action.disk_bytes or 0 for action in plan.actions)
        minutes = round(sum(action.seconds or 0 for action in plan.actions) / 60)
        reboots = sum(type(action).__name__ == "Reboot" for action in plan.actions)
        costs: list[tuple[str, str]] = []
        if download:
            costs.append(("download", gigabytes(download)))
        if disk:
            costs.append(("disk", gigabytes(disk)))
        if plan.actions:
            costs.append(("time", self.say(ui("minutes", count=max(1, minutes)))))
            costs.append(("reboot", self.say(ui("reboot-once" if reboots else "reboot-none"))))
        return costs

    def totals(self) -> list[str]:
        """Return what the plan comes to, for the rail and the first screen; empty when it cannot be made."""
        try:
            plan = self.wizard.plan()
        except BringupError:
            return []
        if plan is None:
            return []
        parts = [self.say(ui("actions", count=len(plan.actions)))]
        return [*parts, *[words for key, words in self.costs(plan) if key in ("download", "time")]]

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

    def go_on(self, screen: StepScreen) -> None:
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

    def open_options(self, screen: Page) -> None:
        """Show the options."""
        self._open_list("options", self._option_items, self._option_taken, lambda key: self.say(ui(f"options.about-{key}")))

    def _open_list(
        self, name: str, items: Callable[[], Sequence[Item]], chosen: Callable[[str], None] | None, about: Callable[[str], str]
    ) -> None:

        from tui.screens.list_page import ListPage

        self.push_screen(ListPage(name, items, chosen, about))

    def _option_items(self) -> Sequence[Item]:
        from tui.widgets.menu import Item

        say = self.say
        return (
            Item("theme", say(ui("options.theme")), say(ui(f"options.palette-{self.palette}"))),
            Item("marks", say(ui("options.marks")), say(ui(f"options.marks-{self.marks}"))),
            Item("speed", say(ui("options.speed")), say(ui("options.speed-slow" if self.low_bandwidth else "options.speed-normal"))),
            Item("tongue", say(ui("options.language")), "English" if self.language == "en" else "中文"),
        )

    def _option_taken(self, key: str) -> None:
        if key == "theme":
            order: tuple[PaletteName, ...] = ("dark", "light", "ansi", "mono")
            self.use_palette(order[(order.index(self.palette) + 1) % len(order)])
        elif key == "marks" and self.marks != "bare":
            self.marks = "ascii" if self.marks != "ascii" else "unicode"
        elif key == "speed":
            self.low_bandwidth = not self.low_bandwidth
        elif key == "tongue":
            page = self.top()
            if page is not None:
                page.do_language()

    def open_runs(self) -> None:
        """Show the earlier runs; Enter opens one."""
        self._open_list("runs", self._run_items, self._run_chosen, self._run_about)

    def _run_items(self) -> Sequence[Item]:
        from tui.widgets.menu import Item

        marks = {"done": "good", "undone": "info", "failed": "bad", "undo-failed": "bad", "cancelled": "catch", "reboot": "catch"}
        return [
            Item(run.id, run.id, mark=marks.get(run.status, "running"), word=self.say(phrase(f"cli.run.{run.status}")))
            for run in self._runs or ()
        ]

    def _run_about(self, key: str) -> str:
        run = next((run for run in self._runs or () if run.id == key), None)
        started = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started)) if run is not None and run.started is not None else "?"
        return self.say(ui("runs.about", started=started, owner=(run.owner if run is not None else None) or "?"))

    def _run_chosen(self, key: str) -> None:
        try:
            self.push_screen(self.wizard.backend.watch(self.wizard.backend.find(key)))
        except BringupError as error:
            self.tell(say_error(self.language, error.code, error.params))

    def open_recorded(self) -> None:
        """Show the recorded machines; Enter goes on with one, and nothing real is touched."""
        self._open_list("recorded", self._recorded_items, self._recorded_chosen, lambda _: self.say(ui("recorded.about")))

    def _recorded_items(self) -> Sequence[Item]:
        from tui.widgets.menu import Item

        return [Item(path, name) for name, path in self.wizard.backend.recorded()]

    def _recorded_chosen(self, path: str) -> None:
        self.wizard.backend.rehearse(path)
        self.wizard = Wizard(self.wizard.backend)
        self.visited.clear()
        self.pop_screen()
        self.look_again()

    def open_check(self, *, errors_first: bool = False) -> None:
        """Show every finding; nothing can be changed there."""
        self._findings = self._judged(errors_first)
        self._open_list("check", self._check_items, None, self._check_about)

    def _judged(self, errors_first: bool) -> tuple[Finding, ...]:
        if self.wizard.machine is None:
            return ()
        found = self.wizard.backend.judged(self.wizard.machine, self.wizard.answers)
        order = ("error", "warning", "info", "ok")
        return tuple(sorted(found, key=lambda one: order.index(one.severity))) if errors_first else found

    def _check_items(self) -> Sequence[Item]:
        from tui.widgets.menu import Item

        return [
            Item(
                str(at),
                found.subject or self.say(phrase(f"{found.step}.name")),
                mark=MARK_OF[found.severity],
                word=say_finding(self.language, found, "tag"),
            )
            for at, found in enumerate(self._findings)
        ]

    def _check_about(self, key: str) -> str:
        found = self._findings[int(key)]
        parts: tuple[FindingPart, ...] = ("sentence", "why", "remedy")
        texts = [say_finding(self.language, found, part) for part in parts]
        because = [f"{self.say(phrase('ui.note.because'))}  {self.say(link)}" for link in found.because]
        source = [f"{self.say(phrase('ui.note.source'))}  {found.source}"] if found.source else []
        return "\n".join(text for text in (*texts, *because, *source) if text)

    # --- profiles ---------------------------------------------------------------------------------------

    def profile_name(self) -> str:
        """Return the file name that is offered for the profile."""
        name = self.wizard.target.name if self.wizard.target is not None and self.wizard.target.name else "bringup"
        return f"{name}.toml"

    def load_profile(self, path: str) -> None:
        """Read a profile and show the review; a wrong one is named with its line, and nothing is taken."""
        try:
            answers = self.wizard.backend.read_profile(path)
        except BringupError as error:
            self.tell(say_error(self.language, error.code, error.params))
            return
        self.wizard.load(answers)
        if self.wizard.ready:
            self.go_review()

    def save_profile(self, screen: Page, path: str | None = None) -> None:
        """Write the answers into a file of the person's."""
        if self.save_text(path or self.profile_name(), self.wizard.backend.profile_text(self.wizard.answers)):
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

    # --- starting and leaving ---------------------------------------------------------------------------

    def start(self, plan: Plan) -> None:
        """Start the run; `sudo` asks in the real terminal with the screen put aside."""
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
        self.exit(0)

    def _save_and_leave(self) -> None:
        if self.save_text(self.profile_name(), self.wizard.backend.profile_text(self.wizard.answers)):
            self.exit(0)


def gigabytes(size: int) -> str:
    """Return "5.9 GB", "14 GB", "320 MB": two significant digits for estimates."""
    if size < 1e9:
        return f"{size / 1e6:.0f} MB"
    return f"{size / 1e9:.0f} GB" if size >= 1e10 else f"{size / 1e9:.1f} GB"


def wizard(asked: Mapping[str, Any], environ: Mapping[str, str], language: str) -> int:
    """Open the wizard and return the exit code."""
    told = terminal.survey(environ, no_color=bool(asked.get("no_color")))
    house = House(
        machine=terminal.full_path(asked["machine"]) if asked.get("machine") else None,
        root=terminal.full_path(asked["root"]) if asked.get("root") else None,
        language="zh_CN" if language == "zh_CN" else "en",
    )
    answers = house.read_profile(asked["profile"]) if asked.get("profile") else None
    app = BringupApp(
        house,
        answers,
        language="zh_CN" if language == "zh_CN" and told.han else "en",
        palette=told.palette,
        marks=told.marks,
        low_bandwidth=bool(asked.get("low_bandwidth")),
        probe=told.marks == "unicode",
        over_ssh=told.ssh,
    )
    app.can_show_han = told.han
    code = app.run()
    return app.return_code or code or 0


class Watch(Shell):
    """One run and nothing else: `bringup attach`."""

    def __init__(self, handle: Any, **look: Any) -> None:
        super().__init__(**look)
        self._handle = handle

    @property
    def machine_line(self) -> str:
        """Return the machine of the run's plan."""
        target = self._handle.plan.target
        return " · ".join(part for part in (target.name, target.summary) if part)

    def on_mount(self) -> None:
        """Show the run."""
        from tui.screens.run import RunScreen

        self.push_screen(RunScreen(self._handle, attached=True))


def watch(handle: Any, language: str, *, no_color: bool = False, low_bandwidth: bool = False) -> int:
    """Show a run and return its exit code, 0 while it goes on."""
    told = terminal.survey(terminal.environment(), no_color=no_color)
    tongue: Language = "zh_CN" if language == "zh_CN" and told.han else "en"
    app = Watch(handle, language=tongue, palette=told.palette, marks=told.marks, low_bandwidth=low_bandwidth)
    app.can_show_han = told.han
    code = app.run()
    return app.return_code or code or 0
