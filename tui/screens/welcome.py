"""The first screen: what to do with this machine, and what the recommendation would do."""

from __future__ import annotations

from collections.abc import Sequence

from steps.model.base import phrase
from tui import summary
from tui.ahead import KEY as AHEAD
from tui.cells import BLANK, Line, Span, cut, wrap
from tui.screens.base import Key, ui
from tui.screens.menu_page import MOVE, MenuPage
from tui.theme import MARKS
from tui.widgets.field import Field
from tui.widgets.hint import LABEL, labelled
from tui.widgets.menu import Item, heading


class WelcomeScreen(MenuPage):
    """Ways to begin; the cursor starts on the recommendation."""

    def state_words(self) -> str:
        """Return "start"."""
        return self.shell.say(ui("welcome.state"))

    def title_words(self) -> str:
        """Return the question."""
        return self.shell.say(ui("welcome.title"))

    def context_words(self) -> str:
        """Return what was found, or that it is being read."""
        if self.bringup.trouble is not None:
            return self.shell.say(ui("welcome.trouble"))
        if not self.wizard.ready:
            return self.shell.say(ui("welcome.reading", what=self.bringup.slow_words()))
        return summary.found_words(self.shell, self.wizard)

    def about_words(self) -> str:
        """Return what this screen is for."""
        return self.shell.say(ui("welcome.about"))

    def items(self) -> Sequence[Item]:
        """Return the ways to begin."""
        say = self.shell.say
        count = None if self.bringup.earlier is None else len(self.bringup.earlier)
        runs = Item(
            "runs",
            say(ui("welcome.runs")),
            mark="info",
            word=say(ui("welcome.run-count" if count != 1 else "welcome.run-one", count=count)) if count is not None else "…",
        )
        return (
            Item("recommended", say(ui("welcome.recommended"))),
            Item("steps", say(ui("welcome.steps"))),
            self._repair_item(),
            Item("check", say(ui("welcome.check"))),
            Item("learn", say(ui("welcome.learn"))),
            Item("load", say(ui("welcome.load"))),
            runs,
            heading(),
            Item("language", say(ui("welcome.language"))),
        )

    def _repair_item(self) -> Item:
        """Return the way to the doctor; where the driver that is here does not run, it says so."""
        name, machine = self.shell.say(ui("welcome.repair")), self.wizard.machine
        if machine is None or machine.driver.state not in ("mismatch", "not-loaded", "blocked", "failing"):
            return Item("repair", name)
        return Item("repair", name, mark="catch", word=self.shell.say(ui("welcome.broken")))

    def hint_lines(self, columns: int, rows: int) -> list[Line]:
        """Return what the row under the cursor does; for the recommendation, what it would change and cost."""
        self.cursor()
        if self.at == "recommended":
            return self._recommendation(columns, rows)
        say = self.shell.say
        # How many questions there are depends on the machine.
        key = f"welcome.about-{self.at}" if self.at != "steps" or self.wizard.steps else "reading-now"
        lines: list[Line] = [(Span(cut(next(item.name for item in self.items() if item.key == self.at), columns), "strong"),), BLANK]
        return [*lines, *[(Span(line),) for line in wrap(say(ui(key, count=len(self.wizard.steps))), columns)]][:rows]

    def _recommendation(self, columns: int, rows: int) -> list[Line]:
        say, indent = self.shell.say, LABEL[self.shell.language]
        lines: list[Line] = [(Span(say(ui("welcome.what")), "strong"),), BLANK]
        if self.bringup.trouble is not None:
            lines = [(Span(line),) for line in wrap(self.said(self.bringup.trouble), columns)]
        elif not self.wizard.ready:
            lines.append((Span(say(ui("reading-now")), "mute"),))
        elif self.wizard.advised is None:
            lines += [(Span(line),) for line in wrap(say(ui("welcome.no-advice")), columns)]
        else:
            for step in self.wizard.steps:
                value = summary.joined(self.shell, summary.values_of(self.shell, self.wizard, step))
                if step.KEY == "driver":
                    lines += self._driver_lines(value, indent + 3, columns)
                elif value:
                    lines += labelled(cut(say(phrase(f"{step.KEY}.name")), indent + 2), value, indent + 3, columns)[:2]
            totals = summary.totals(self.shell, self.wizard)
            if totals:
                lines += [BLANK, *labelled(say(phrase("ui.note.cost")), summary.joined(self.shell, totals), indent + 3, columns)]
            lines += self._promises(indent + 3, columns)
        lines.append(BLANK)
        lines += [(Span(line, "mute"),) for line in wrap(say(ui("welcome.promise")), columns)]
        return lines[:rows]

    def _driver_lines(self, value: str, indent: int, columns: int) -> list[Line]:
        """Return the driver, what it replaces, and what is wrong with the installed one."""
        wizard, say = self.wizard, self.shell.say
        have = summary.driver_version(wizard)
        kept = wizard.answers.driver.source == "keep" or not wizard.answers.driver.branch
        shown = f"{have} → {value}" if have and value and not kept else value
        lines = labelled(cut(say(phrase("driver.name")), indent - 1), shown, indent, columns)[:2] if shown else []
        ended = summary.ended_words(self.shell, wizard)
        return (
            [*lines, (Span(" " * indent), Span(f"{MARKS['catch']} {cut(ended, columns - indent - 2)}", "catch-strong"))] if ended else lines
        )

    def _promises(self, indent: int, columns: int) -> list[Line]:
        """Return the proof, the reboots and the way back."""
        say = self.shell.say
        rows = summary.promises(self.shell, self.wizard)
        return [line for label, text in rows for line in labelled(say(label), text, indent, columns)]

    def next_words(self) -> str:
        """Return what Enter does on this row."""
        self.cursor()
        if self.field is not None:
            return self.shell.say(ui("welcome.next-path"))
        return self.shell.say(ui(f"welcome.next-{self.at}"))

    def key_table(self) -> Sequence[Key]:
        """Return the keys of the first screen."""
        if self.field is not None:
            return (Key((), "", "Enter", ui("key.load-path")), Key((), "", "Esc", ui("key.leave-text")))
        say = self.shell.say
        other = "中文" if self.shell.language == "en" else "English"
        return (
            Key(("enter", "space"), "open", "Enter", ui("key.open")),
            MOVE[0]._replace(footer=True),
            *MOVE[1:],
            Key(("L",), "language", "L", other),
            Key(("o",), "options", "o", say(ui("key.options"))),
            Key(("q", "escape"), "leave", "q", ui("key.leave")),
            AHEAD._replace(words=ui("key.ahead-short"), footer=True),
            Key(("a",), "recommended", "a", ui("key.accept-rest"), footer=False),
            Key(("r",), "again", "r", ui("key.again"), footer=False),
        )

    def do_open(self) -> None:
        """Do what the row says."""
        self.cursor()
        getattr(self, f"do_{self.at}")()

    def do_recommended(self) -> None:
        """Go to the review with what is recommended."""
        if not self.wizard.ready:
            self.bringup.review_when_ready = True
            self.remark(self.shell.say(ui("welcome.wait")))
            return
        if self.wizard.given is None and self.wizard.advised is None:
            self.remark(self.shell.say(ui("welcome.no-advice")))
            return
        self.bringup.go_review()

    def do_steps(self) -> None:
        """Go to the first step."""
        if self.wizard.ready:
            self.bringup.go_first()
        else:
            self.remark(self.shell.say(ui("welcome.wait")))

    def do_repair(self) -> None:
        """Ask the doctor."""
        from tui.screens.doctor import DoctorPage

        self.app.push_screen(DoctorPage(self))

    def do_check(self) -> None:
        """Show every finding."""
        if self.wizard.ready:
            self.bringup.open_check(as_it_is=True)
        else:
            self.remark(self.shell.say(ui("welcome.wait")))

    def do_learn(self) -> None:
        """Choose a recorded machine."""
        self.bringup.open_recorded()

    def do_load(self) -> None:
        """Ask for the path of a profile."""
        self.field = Field()

    def do_runs(self) -> None:
        """List the earlier runs."""
        self.bringup.open_runs()

    def do_options(self) -> None:
        """Open the options."""
        self.bringup.open_options()

    def do_again(self) -> None:
        """Look at the machine again."""
        self.bringup.look_again()

    def typed(self, text: str) -> None:
        """Load the profile at the path, and go to the review."""
        self.bringup.load_profile(text)
