"""The wizard as numbered lines: the same steps and words, no cursor, one fact a line, the verdict as a word."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from steps import hardware, tuning
from steps.lines import padded
from steps.model.base import Words, phrase
from steps.model.choice import Choice, Option
from steps.model.finding import Finding
from steps.model.machine import Machine
from steps.model.plan import Plan
from steps.model.profile import Profile, answered
from steps.model.step import Step
from steps.registry import SETUP, steps_of
from steps.text import Language, say, say_finding

Ask = Callable[[str], str | None]
"""Shows a prompt and returns the line typed, or `None` at the end of input."""
Write = Callable[[str], None]
BACK, QUIT, HELP, OTHER_GOAL = "b", "q", "?", "o"
_NAME = 28
"""Columns that an option's name is given."""


class Quit(Exception):
    """The person left; nothing was changed."""


class PlainWizard:
    """Walks the setup flow as line prompts and returns the answers."""

    def __init__(self, machine: Machine, answers: Profile, language: Language, ask: Ask, write: Write) -> None:
        self._machine = machine
        self._answers = answers
        self._language: Language = language
        self._ask = ask
        self._write = write
        self._facts: tuple[Option, ...] = ()
        """What the step has shown so far without a question: its numbers come before those of the questions."""

    def walk(self) -> Profile:
        """Return the answers after all steps; raises `Quit`."""
        steps = steps_of(SETUP, self._machine)
        position = 0
        while position < len(steps):
            position = max(0, position + self._step(steps[position], position + 1, len(steps) + 1))
        return self._answers

    def confirm(self, plan: Plan, found: tuple[Finding, ...]) -> bool:
        """Show the plan and ask once; `False` when the person does not want it."""
        self._write(self._say(phrase("cli.plain.review")))
        for number, action in enumerate(plan.actions, start=1):
            unsure = any(one.code == "unverified" and one.params.get("action") == action.id for one in found)
            mark = f"  ({self._say(phrase('cli.unverified'))})" if unsure else ""
            self._write(f"  {number:>2}  {self._say(action.title)}{mark}")
        for finding in found:
            if finding.severity in ("error", "warning"):
                self._write(f"  {self._found(f'cli.severity.{finding.severity}', finding)}")
        word = tuning.word_of(plan)
        if word:
            return self._line(self._say(phrase("cli.plain.word", word=word))) == word
        return self._line(self._say(phrase("cli.plain.start"))).lower() in ("y", "yes")

    def _step(self, step: Step, number: int, total: int) -> int:
        """Run one step; return how far to move: 1, -1 for back, 0 to show it anew."""
        title = self._say(phrase(f"{step.KEY}.title"))
        self._write("")
        self._write(self._say(phrase("cli.plain.step", number=number, total=total, title=title)))
        self._write(self._say(step.intro(self._machine, self._answers)))
        self._facts = ()
        keys = [choice.key for choice in step.choices(self._machine, self._answers)]
        for key in keys:
            choice = next((one for one in step.choices(self._machine, self._answers) if one.key == key), None)
            if choice is None:
                continue
            self._show(choice)
            if choice.kind == "facts":
                self._facts += choice.options
            elif not self._answer(choice):
                return -1
        if all(choice.kind == "facts" for choice in step.choices(self._machine, self._answers)):
            return self._after_facts(of_goal=step.KEY == hardware.KEY)
        return 1

    def _after_facts(self, *, of_goal: bool) -> int:
        """Ask where to go from a step that only shows; facts that are graded for a goal can be shown for another."""
        while True:
            line = self._line(self._say(phrase("cli.plain.go-on-goal" if of_goal else "cli.plain.go-on")))
            if of_goal and line == OTHER_GOAL:
                self._answers = answered(self._answers, hardware.next_goal(self._answers))
                return 0
            if line in ("", BACK):
                return -1 if line == BACK else 1
            if line.startswith("w "):
                self._why((), line[2:])
                continue
            self._write(self._say(phrase("cli.plain.not-taken", line=line)))

    def _show(self, choice: Choice) -> None:
        """Write the group's heading and one line an option."""
        if choice.title:
            self._write(self._say(choice.title))
        for number, option in enumerate(choice.options, start=len(self._facts) + 1):
            name = " ".join(filter(None, (self._say(option.label), self._say(option.detail))))
            self._write(f"  {number:>2}  {padded(name, _NAME)}{self._verdict(option)}")

    def _verdict(self, option: Option) -> str:
        """Return the option's word, and for one that cannot work the first reason."""
        word = self._say(option.tag) or self._say(phrase(f"cli.mark.{option.mark}"))
        if option.mark == "bad" and option.findings:
            return self._found("cli.mark.bad", option.findings[0])
        return word

    def _answer(self, choice: Choice) -> bool:
        """Ask until the line can be taken; `False` means back."""
        while True:
            default = choice.text if choice.kind == "text" else ",".join(self._numbers(choice))
            line = self._line(self._say(phrase("cli.plain.choose", default=default or "-")))
            if line == BACK:
                return False
            if line == HELP:
                self._write(self._say(phrase("cli.plain.help")))
            elif line.startswith("w "):
                self._why(choice.options, line[2:])
            elif not line or self._take(choice, line):
                return True

    def _numbers(self, choice: Choice) -> Iterator[str]:
        """Yield the numbers of what is taken."""
        for number, option in enumerate(choice.options, start=len(self._facts) + 1):
            if option.value in choice.taken:
                yield str(number)

    def _take(self, choice: Choice, line: str) -> bool:
        """Take the option of that number (for `many`: toggle each), or the typed text; `False` when it cannot be taken."""
        if choice.kind == "text":
            self._answers = answered(self._answers, {choice.key: line})
            return True
        picked = [self._option(choice.options, part) for part in line.split(",")]
        if any(option in self._facts for option in picked):
            picked = [None]  # what is only shown cannot be taken
        for option in picked:
            if option is None or not option.takeable:
                self._write(self._say(phrase("cli.plain.not-taken", line=line)))
                if option is not None:
                    self._explain(option)
                return False
        for option in picked:
            if option is not None:
                self._answers = answered(self._answers, option.patch)
        return True

    def _option(self, options: tuple[Option, ...], number: str) -> Option | None:
        """Return what has that number among the step's facts and the options behind them, or `None` when nothing has."""
        text, rows = number.strip(), (*self._facts, *options)
        return rows[int(text) - 1] if text.isdecimal() and 0 < int(text) <= len(rows) else None

    def _why(self, options: tuple[Option, ...], number: str) -> None:
        """Explain a fact of the step, or an option."""
        option = self._option(options, number)
        if option is None:
            self._write(self._say(phrase("cli.plain.not-taken", line=number)))
        else:
            self._explain(option)

    def _explain(self, option: Option) -> None:
        """Write everything that is known about an option."""
        for sentence in option.sentences:
            self._write(f"      {self._say(sentence)}")
        for finding in option.findings:
            self._write(f"      {say_finding(self._language, finding, 'sentence')}")
            for fact in finding.because:
                self._write(f"        {self._say(fact)}")
            if finding.source:
                self._write(f"        {self._say(phrase('cli.source'))} {finding.source}")
        for note in option.notes:
            self._write(f"      {self._say(phrase(f'ui.note.{note.label}'))} {self._say(note.text)}")

    def _line(self, prompt: str) -> str:
        """Return a stripped line; raises `Quit` on q or at the end of input."""
        line = self._ask(prompt)
        if line is None or line.strip() == QUIT:
            raise Quit
        return line.strip()

    def _found(self, mark: str, finding: Finding) -> str:
        """Return a finding behind its mark in words."""
        return self._say(phrase("ui.row", name=self._say(phrase(mark)), value=say_finding(self._language, finding, "sentence")))

    def _say(self, words: Words) -> str:
        return say(self._language, words)
