"""The review: everything on one screen, then start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import events

from steps.errors import BringupError
from steps.model.action import Manual, Packages, Reboot
from steps.model.base import phrase
from steps.model.plan import digest
from steps.text import say_finding
from tui import summary
from tui.cells import BLANK, Line, Span, cut, width, wrap
from tui.screens.base import Key, event_name, ui
from tui.screens.menu_page import MOVE, MenuPage
from tui.widgets.field import Field
from tui.widgets.hint import LABEL, labelled
from tui.widgets.menu import Item, heading

if TYPE_CHECKING:
    from steps.model.action import AnyAction
    from steps.model.finding import Finding
    from steps.model.plan import Plan


class ReviewScreen(MenuPage):
    """The cursor starts on Start; a number opens a step and comes back here."""

    TYPE_AHEAD = False

    def __init__(self) -> None:
        super().__init__()
        self._number = 0
        self._saving = ""
        self.trouble: BringupError | None = None
        """Why no plan can be made."""

    @property
    def is_review(self) -> bool:
        """Return that this is the review."""
        return True

    # --- what is drawn --------------------------------------------------------------------------------

    def plan(self) -> Plan | None:
        """Return the plan of the answers, or `None` when it cannot be made; the reason is in `trouble`."""
        self.trouble = None
        try:
            return self.wizard.plan()
        except BringupError as error:
            self.trouble = error
            return None

    def state_words(self) -> str:
        """Return "Review · 8 of 8"."""
        count = self.wizard.count
        return self.shell.say(ui("step.position", name=self.shell.say(ui("review.name")), at=count, count=count))

    def title_words(self) -> str:
        """Return that all is ready, or what is missing."""
        stopped = self._errors() or (self.plan() is None and self.trouble is not None)
        return self.shell.say(ui("review.stopped" if stopped else "review.title"))

    def context_words(self) -> str:
        """Return what starting would mean."""
        say, plan = self.shell.say, self.plan()
        if plan is None:
            return say(ui("review.sub-no-plan" if self.trouble is not None else "reading-now"))
        if self._errors():
            count = len(self._errors())
            return say(ui("review.sub-errors" if count != 1 else "review.sub-error", count=count))
        if not plan.actions:
            return say(ui("review.sub-nothing"))
        if self._split():
            return say(ui("review.sub-no-root"))
        if plan.target.rehearsal:
            return say(ui("review.sub-rehearsal"))
        return say(ui("review.sub"))

    def about_words(self) -> str:
        """Return what this screen is for."""
        return self.shell.say(ui("review.about"))

    def _errors(self) -> tuple[Finding, ...]:
        """Return what forbids to start: the rules, and the index that does not have what would be installed."""
        return (*self.wizard.errors(), *(one for one in self._confirmed() if one.severity == "error"))

    def _confirmed(self) -> tuple[Finding, ...]:
        """Return what of the plan nobody confirmed or an index contradicts; empty while that is being asked."""
        plan = self.plan()
        return (self.bringup.confirmed(plan) or ()) if plan is not None and plan.actions else ()

    def _split(self) -> bool:
        """Whether the plan wants root and there is no way to it."""
        plan = self.plan()
        return plan is not None and plan.needs_root and not plan.target.rehearsal and self.bringup.privilege() == "none"

    def items(self) -> Sequence[Item]:
        """Return start, the steps, and what can be kept."""
        say = self.shell.say
        start = Item("start", say(ui("review.start-own" if self._split() else "review.start")))
        if self._errors():
            start = start._replace(mark="bad", word=say(ui("review.forbidden")))
        items = [start, heading(), heading(say(ui("review.change")))]
        for number, step in enumerate(self.wizard.steps, 1):
            worst = summary.worst(self.wizard.check(step))
            name = f"{number} {say(phrase(f'{step.KEY}.name'))}"
            value = summary.short_value_of(self.shell, self.wizard, step)
            items.append(Item(f"step:{step.KEY}", name, value, worst, say(ui(f"review.{worst}"))))
        items += [heading(), heading(say(ui("review.keep"))), Item("save", f"s {say(ui('review.save'))}")]
        if self._split():
            items.append(Item("request", f"e {say(ui('review.request'))}"))
        return items

    def hint_lines(self, columns: int, rows: int) -> list[Line]:
        """Return the plan: its actions in order and what they come to."""
        say, plan = self.shell.say, self.plan()
        if plan is None:
            sentence = self.said(self.trouble) if self.trouble is not None else say(ui("reading-now"))
            return list[Line]((Span(line),) for line in wrap(sentence, columns))[:rows]
        lines: list[Line] = [
            (Span(say(ui("review.plan")), "strong"), Span("  " + say(ui("review.digest", digest=spaced(digest(plan)))), "mute"))
        ]
        tail = self._totals(plan, columns)
        room = rows - len(lines) - len(tail) - 1
        whole = [line for at, action in enumerate(plan.actions, 1) for line in self._action(at, action, columns)]
        if len(whole) > room:
            whole = [self._action(at, action, columns, rows=1)[0] for at, action in enumerate(plan.actions, 1)]
        if len(whole) > room:
            more = len(whole) - room + 1
            whole = [*whole[: room - 1], (Span("   "), Span(say(ui("review.more", count=more)), "mute"))]
        return [*lines, *whole, BLANK, *tail]

    def _action(self, number: int, action: AnyAction, columns: int, *, rows: int = 2) -> list[Line]:
        """Return one action in at most so many rows, with what a person should know before."""
        words = ""
        if isinstance(action, Packages) and action.may_downgrade:
            words = self.shell.say(ui("review.goes-back"))
        elif isinstance(action, Packages) and action.may_remove:
            words = self.shell.say(ui("review.replaces"))
        elif isinstance(action, Reboot):
            words = self.shell.say(ui("review.reboots"))
        if any(one.code == "unverified" and one.params.get("action") == action.id for one in self._confirmed()):
            unsure = self.shell.say(ui("review.unsure") if words else phrase("cli.unverified"))
            words = summary.joined(self.shell, tuple(part for part in (words, unsure) if part))
        room = columns - 3 - (width(words) + 3 if words else 0)
        title = self.shell.say(action.title)
        parts = wrap(title, room) if rows > 1 else [cut(title, room)]
        parts = parts if len(parts) <= rows else [*parts[: rows - 1], cut(" ".join(parts[rows - 1 :]), room)]
        lines: list[Line] = [(Span(f"{number:2d} " if at == 0 else "   ", "mute"), Span(part)) for at, part in enumerate(parts)]
        if words:
            lines[0] = (*lines[0], Span(f" ! {words}", "catch-strong"))
        return lines

    def _totals(self, plan: Plan, columns: int) -> list[Line]:
        say, indent = self.shell.say, LABEL[self.shell.language]
        lines: list[Line] = []
        for key, text in summary.costs(self.shell, plan):
            lines += labelled(say(ui(f"review.{key}")), text, indent, columns)
        for notice in self.wizard.notices:
            lines += labelled(say(ui("review.tables")), say_finding(self.shell.language, notice, "sentence"), indent, columns)
        lines += labelled(say(phrase("ui.note.undo")), say(ui("welcome.undo")), indent, columns) if plan.actions else []
        return lines

    def next_words(self) -> str:
        """Return what Enter does."""
        say, plan = self.shell.say, self.plan()
        if self.field is not None:
            return say(ui("review.next-path"))
        self.cursor()
        if self.at.startswith("step:"):
            step = next((one for one in self.wizard.steps if f"step:{one.KEY}" == self.at), None)
            values = summary.values_of(self.shell, self.wizard, step) if step is not None else ()
            chosen = summary.joined(self.shell, values)
            return say(ui("review.next-step-chosen", values=chosen)) if values else say(ui("review.next-step"))
        if self.at in ("save", "request"):
            return say(ui(f"review.next-{self.at}"))
        if self._errors():
            return say(ui("review.next-errors"))
        if plan is None or not plan.actions:
            return say(ui("review.next-nothing"))
        if plan.target.rehearsal:
            return say(ui("review.next-rehearsal"))
        asks = plan.needs_root and self.bringup.privilege() == "sudo"
        return say(ui("review.next-sudo" if asks else "review.next"))

    # --- keys -----------------------------------------------------------------------------------------

    def key_table(self) -> Sequence[Key]:
        """Return the keys of the review."""
        if self.field is not None:
            return (Key((), "", "Enter", ui("key.save-path")), Key((), "", "Esc", ui("key.leave-text")))
        self.cursor()
        enter = {"start": "key.start-run", "save": "key.save", "request": "key.request"}.get(self.at, "key.change")
        count = len(self.wizard.steps)
        keys = [
            Key(
                ("enter",) if self.at == "start" else ("enter", "space"),
                "open",
                "Enter",
                ui("key.why-not" if self.at == "start" and self._errors() else enter),
            ),
            Key(tuple(str(at) for at in range(1, count + 1)), "number", f"1-{count}", ui("key.change")),
            Key(("s",), "save", "s", ui("key.save-profile")),
        ]
        if self._split():
            keys.append(Key(("e",), "request", "e", ui("key.request")))
        return (
            *keys,
            Key(("d",), "details", "d", ui("key.details")),
            Key(("escape", "b"), "back", "Esc", ui("key.back")),
            *MOVE,
            Key(("w",), "why", "w", ui("key.why"), footer=False),
            Key(("z",), "take_back", "z", ui("key.take-back"), footer=False),
            Key(("o",), "options", "o", ui("key.options"), footer=False),
            Key(("r",), "again", "r", ui("key.again"), footer=False),
            Key(("q",), "leave", "q", ui("key.leave"), footer=False),
        )

    def on_key(self, event: events.Key) -> None:
        """Remember a digit, then do what the key says."""
        name = event_name(event)
        self._number = int(name) if name.isdigit() and name.isascii() else 0
        super().on_key(event)

    def do_open(self) -> None:
        """Do what the row says."""
        self.cursor()
        if self.at.startswith("step:"):
            self._open_step(next(at for at, step in enumerate(self.wizard.steps) if f"step:{step.KEY}" == self.at))
        else:
            getattr(self, f"do_{self.at}")()

    def do_number(self) -> None:
        """Open the step of the digit."""
        self._open_step(self._number - 1)

    def _open_step(self, at: int) -> None:
        self.at = "start"
        self.bringup.open_step(self.wizard.steps[at], from_review=True)

    def do_start(self) -> None:
        """Start the run, or explain what forbids it."""
        plan = self.plan()
        if self._errors():
            self.do_why()
        elif plan is None or not plan.actions:
            self.remark(self.shell.say(ui("review.next-nothing")))
        else:
            machine = self.wizard.machine
            self._start(self.wizard.backend.without_root(plan, machine) if machine is not None and self._split() else plan)

    def _start(self, plan: Plan) -> None:
        """Start the run; what changes the kernel's start or its switches wants a typed word first."""
        word = self.wizard.backend.word(plan)
        if not word:
            self.bringup.start(plan)
            return
        from tui.screens.confirm import ConfirmPage

        say = self.shell.say
        touched = [say(action.title) for action in plan.actions if action.id.startswith("firmware.") and not isinstance(action, Manual)]
        sentences = (say(ui("write.title")), *(f"· {title}" for title in touched), say(ui("write.kept")))
        self.app.push_screen(ConfirmPage(say(ui("review.title")), sentences, lambda: self.bringup.start(plan), word=word))

    def do_why(self) -> None:
        """Show the findings of all answers."""
        self.bringup.open_check()

    def do_details(self) -> None:
        """Show the whole plan with its commands."""
        from tui.screens.details import DetailsPage

        self.app.push_screen(DetailsPage(self, self.plan))

    def do_save(self) -> None:
        """Ask for the path of the profile."""
        self.at, self._saving = "save", "profile"
        self.field = Field(self.bringup.profile_name(), suggested=True)

    def do_request(self) -> None:
        """Ask for the path of the request to the administrator."""
        self.at, self._saving = "request", "request"
        self.field = Field("bringup-request.txt", suggested=True)

    def typed(self, text: str) -> None:
        """Write the profile or the request."""
        if self._saving == "profile":
            self.bringup.save_profile(self, text)
        else:
            plan = self.plan()
            if plan is not None:
                self.bringup.save_text(text, self.wizard.backend.request(plan))
        self.at = "start"

    def do_take_back(self) -> None:
        """Take the last answer back."""
        self.remark(self.shell.say(ui("step.taken-back" if self.wizard.take_back() else "step.nothing-back")))

    def do_options(self) -> None:
        """Open the options."""
        self.bringup.open_options()

    def do_again(self) -> None:
        """Look at the machine again."""
        self.bringup.look_again()

    def do_back(self) -> None:
        """Go back to where the review was opened."""
        self.bringup.go_back(self)


def spaced(text: str) -> str:
    """Return the first eight digits of a digest in two groups."""
    return f"{text[:4]} {text[4:8]}"
