"""The wizard without a screen: the machine, the answers, what was advised, and the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steps.advised import completed
from steps.errors import BringupError
from steps.model.finding import Finding, Patch, Value
from steps.model.profile import Profile, answered

if TYPE_CHECKING:
    from steps.compat.effects import Change, Effects, Reason, Way
    from steps.compat.matrix import Matrix
    from steps.model.base import Words
    from steps.model.choice import Choice, Option
    from steps.model.machine import Machine
    from steps.model.plan import Plan, Target
    from steps.model.step import Step
    from tui.backend import Backend, Looked


class Wizard:
    """Answers grow here; every screen is drawn from what stands here and keeps nothing itself but its cursor."""

    def __init__(self, backend: Backend, answers: Profile | None = None) -> None:
        self.backend = backend
        self.machine: Machine | None = None
        self.target: Target | None = None
        self.steps: tuple[Step, ...] = ()
        self.given = answers
        """A profile that was loaded; it goes before the recommendation."""
        self.answers = answers or Profile()
        self.advised: Profile | None = None
        self.advice: tuple[Finding, ...] = ()
        self.found: tuple[str, ...] = ()
        """The machine in a few names."""
        self.notices: tuple[Finding, ...] = ()
        """What is to be said about the tables themselves."""
        self.kept = self.answers
        """What would not be lost on leaving: the recommendation, or what was saved last."""
        self.remark = ""
        """What the next drawing says once in the line below the title."""
        self._before: list[Profile] = []
        self._choices: dict[str, tuple[Choice, ...]] = {}
        self._checked: dict[str, tuple[Finding, ...]] = {}
        self._plan: Plan | None = None

    @property
    def ready(self) -> bool:
        """Whether the machine has been looked at."""
        return self.machine is not None

    def looked(self, looked: Looked) -> None:
        """Take in what looking at the machine brought; answers given before are kept."""
        self.machine, self.target = looked.machine, looked.target
        self.steps = tuple(step for step in self.backend.steps() if step.KEY != "verify" and step.applies(looked.machine))
        self.advice, self.found, self.notices = looked.findings, looked.found, looked.notices
        self.advised = completed(self.steps, looked.machine, looked.advised) if looked.advised is not None else None
        self._use(self.given or self.advised or Profile())
        self.kept = self.answers
        self._before.clear()

    def offered(self, machine: Machine) -> None:
        """Take the machine with what is on offer for it; the answers stay."""
        self.machine = machine
        self._use(self.answers)

    def load(self, answers: Profile) -> None:
        """Use the answers of a file."""
        self.given = answers
        self._before.append(self.answers)
        self._use(answers)
        self.kept = answers

    def _use(self, answers: Profile) -> None:
        self.answers = answers
        self._choices.clear()
        self._checked.clear()
        self._plan = None

    # --- answers --------------------------------------------------------------------------------------

    @property
    def unsaved(self) -> int:
        """How many answers would be lost on leaving."""
        return len(differences(self.kept, self.answers))

    def saved(self) -> None:
        """Remember that the answers are in a file."""
        self.kept = self.answers

    def take(self, patch: Patch) -> bool:
        """Change the answers; return whether anything changed."""
        changed = answered(self.answers, patch)
        if changed == self.answers:
            return False
        self._before.append(self.answers)
        self._use(changed)
        return True

    def take_back(self) -> bool:
        """Undo the last change of the answers; return whether there was one."""
        if not self._before:
            return False
        self._use(self._before.pop())
        return True

    def accept_rest(self) -> None:
        """Take the recommendation for every answer that is open."""
        if self.advised is None:
            return
        open_ones = {key: new for key, old, new in differences_of(self.answers, self.advised) if old is None}
        if open_ones:
            self.take(open_ones)

    # --- what an answer does to the others; the rules are imported when first asked, not for the first screen ---

    def effects(self, option: Option) -> Effects:
        """Return what taking an option comes to, with what has to change with it."""
        return self.effects_of(option.patch)

    def effects_of(self, patch: Patch) -> Effects:
        """Return what taking a change of answers comes to; before the machine is known only itself."""
        from steps.compat import effects

        if self.machine is None:
            return effects.Effects(patch=patch)
        return effects.effects(self.machine, self.answers, patch)

    def removed_by(self, fix: Patch, finding: Finding) -> bool:
        """Whether a change of answers leaves nothing of a finding's kind."""
        step = next((step for step in self.steps if finding.step == step.KEY), None)
        if self.machine is None or step is None:
            return False
        return all(found.code != finding.code for found in step.check(self.machine, answered(self.answers, fix)))

    def would_change(self, patch: Patch) -> bool:
        """Return whether a change of answers changes any."""
        return answered(self.answers, patch) != self.answers

    def differences(self, patch: Patch) -> tuple[Change, ...]:
        """Return the topics that a change of answers changes, as a person calls them."""
        from steps.compat import effects

        return effects.differences(self.machine, self.answers, answered(self.answers, patch)) if self.machine is not None else ()

    def named_of(self, patch: Patch) -> Words | None:
        """Return what the answers of now hold for the first topic of a change, or `None` when nothing."""
        from steps.compat import effects

        topic = effects.topic_of(next(iter(patch), ""))
        return effects.named(self.machine, self.answers).get(topic) if self.machine is not None else None

    def ways(self, choice: Choice, option: Option) -> tuple[Way, ...]:
        """Return the nearest ways out of what forbids an option."""
        from steps.compat import effects

        rows = choice.options if choice.kind == "one" else ()
        advised = next((one.patch for one in rows if one.recommended and one.takeable), None)
        return effects.ways(self.machine, self.answers, option.patch, option.findings, advised) if self.machine is not None else ()

    def reasons(self, option: Option) -> tuple[Reason, ...]:
        """Return the smallest set of facts and answers that forbids an option."""
        from steps.compat import effects

        if self.machine is None:
            return ()
        return effects.reasons(self.machine, self.answers, option.patch, option.label, option.findings)

    def plan_with(self, patch: Patch) -> Plan | None:
        """Return the plan as it would be with a change of answers, or `None` where none can be made."""
        if self.machine is None or self.target is None:
            return None
        try:
            return self.backend.plan(self.machine, answered(self.answers, patch), self.target)
        except BringupError:
            return None

    def matrix(self) -> Matrix | None:
        """Return what goes with what on this machine, or `None` before it is known."""
        from steps.compat import matrix

        return matrix.matrix(self.machine, self.answers) if self.machine is not None else None

    # --- what follows from the answers ------------------------------------------------------------------

    def choices(self, step: Step) -> tuple[Choice, ...]:
        """Return the questions of a step for the answers of now."""
        if self.machine is None:
            return ()
        if step.KEY not in self._choices:
            self._choices[step.KEY] = step.choices(self.machine, self.answers)
        return self._choices[step.KEY]

    def check(self, step: Step) -> tuple[Finding, ...]:
        """Return what a step finds about the answers of now."""
        if self.machine is None:
            return ()
        if step.KEY not in self._checked:
            self._checked[step.KEY] = step.check(self.machine, self.answers)
        return self._checked[step.KEY]

    def errors(self) -> tuple[Finding, ...]:
        """Return what forbids to start."""
        return tuple(found for step in self.steps for found in self.check(step) if found.severity == "error")

    def plan(self) -> Plan | None:
        """Return what would be done, or `None` before the machine is known; raises `BringupError`."""
        if self.machine is None or self.target is None:
            return None
        if self._plan is None:
            self._plan = self.backend.plan(self.machine, self.answers, self.target)
        return self._plan

    def position(self, step: Step) -> int:
        """Return the number of a step, from 1."""
        return self.steps.index(step) + 1

    @property
    def count(self) -> int:
        """How many screens the walk has: the steps and the review."""
        return len(self.steps) + 1


def differences_of(old: Profile, new: Profile) -> list[tuple[str, Value, Value]]:
    """Return (key, old value, new value) of every answer in which two profiles differ."""
    import msgspec

    before, after = _flat(msgspec.to_builtins(old)), _flat(msgspec.to_builtins(new))
    keys = sorted(before.keys() | after.keys())
    return [(key, before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)]


def differences(old: Profile, new: Profile) -> tuple[str, ...]:
    """Return the keys in which two profiles differ."""
    return tuple(key for key, _, _ in differences_of(old, new))


def _flat(tables: dict[str, Any]) -> dict[str, Value]:
    """Return the answers by dotted key; what is not answered is `None`."""
    return {f"{table}.{key}": value for table, entries in tables.items() if isinstance(entries, dict) for key, value in entries.items()}
