"""What the machine and the answers come to, in words: for the first screen, the rail and the review."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steps.errors import BringupError
from steps.model.base import phrase
from steps.model.machine import judged
from steps.model.profile import Profile
from tui.screens.base import ui

if TYPE_CHECKING:
    from steps.model.base import Words
    from steps.model.finding import Finding
    from steps.model.plan import Plan
    from steps.model.step import Step
    from tui.shell import Shell
    from tui.wizard import Wizard

MARK_OF = {"error": "bad", "warning": "catch", "info": "info", "ok": "good"}
"""The mark of a finding's severity."""
_WORST_FIRST = ("bad", "catch", "good")


def joined(shell: Shell, names: tuple[str, ...]) -> str:
    """Return names in one line, as the language lists them."""
    return (", " if shell.language == "en" else "、").join(names)


def found_words(shell: Shell, wizard: Wizard) -> str:
    """Return what was found on the machine, in one line; "" before it is known."""
    machine = wizard.machine
    if machine is None:
        return ""
    version = machine.driver.kernel_version or machine.driver.library_version or "?"
    state: str = machine.driver.state
    if not judged(machine) and state == "absent":
        state = "no-gpu"
    elif machine.os.wsl and state == "working":
        state = "windows"
    driver = shell.say(ui(f"driver-state.{state}", version=version))
    found = (", " if shell.language == "en" else "，").join(wizard.found)
    return shell.say(ui("welcome.found", what=found, driver=driver))


def driver_version(wizard: Wizard) -> str | None:
    """Return the version of the installed driver, or `None` when there is none or it is not known."""
    driver = wizard.machine.driver if wizard.machine is not None else None
    return (driver.kernel_version or driver.library_version) if driver is not None and driver.state != "absent" else None


def ended_words(shell: Shell, wizard: Wizard) -> str:
    """Return that the installed driver's branch has ended, with its date; "" when it has not or there is none."""
    step = next((step for step in wizard.steps if step.KEY == "driver"), None)
    if step is None or wizard.machine is None:
        return ""
    found = next((one for one in step.check(wizard.machine, Profile()) if one.code == "driver-end-of-life"), None)
    return (
        shell.say(ui("welcome.ended", branch=str(found.params.get("branch", "?")), date=str(found.params.get("date", "?"))))
        if found
        else ""
    )


def promises(shell: Shell, wizard: Wizard) -> list[tuple[Words, str]]:
    """Return (label, words) of what ends every plan: the proof, the reboots, the way back; empty when no plan can be made."""
    try:
        plan = wizard.plan()
    except BringupError:
        return []
    if plan is None or not plan.actions:
        return []
    reboots = any(type(action).__name__ == "Reboot" for action in plan.actions)
    several = wizard.machine is not None and len(judged(wizard.machine)) > 1
    trains = any(name != "variant" for name in plan.profile.frameworks)
    proof = ("proof-several" if several else "proof-frameworks") if trains else "proof"
    return [
        (ui("review.proof"), shell.say(ui(f"welcome.{proof}"))),
        (ui("review.reboot"), shell.say(ui("reboot-once" if reboots else "reboot-none"))),
        (phrase("ui.note.undo"), shell.say(ui("welcome.undo"))),
    ]


def worst(findings: tuple[Finding, ...]) -> str:
    """Return "bad", "catch" or "good"."""
    marks = {MARK_OF[finding.severity] for finding in findings}
    return next((mark for mark in _WORST_FIRST if mark in marks), "good")


def values_of(shell: Shell, wizard: Wizard, step: Step) -> tuple[str, ...]:
    """Return what is answered in a step, in names; empty where nothing is."""
    return tuple(
        shell.say(option.label)
        for choice in wizard.choices(step)
        if choice.kind in ("one", "many")
        for option in choice.options
        if option.value in choice.taken
    )


def short_value_of(shell: Shell, wizard: Wizard, step: Step) -> str:
    """Return the first answer of a step; where it asks for none, how much is to be looked at."""
    taken = (
        option
        for choice in wizard.choices(step)
        if choice.kind in ("one", "many")
        for option in choice.options
        if option.value in choice.taken
    )
    if (first := next(taken, None)) is not None:
        return shell.say(first.short or first.label)
    # The rows that are marked on the step's own screen, so that both say the same number; what cannot be chosen is nothing to do.
    facts = (choice for choice in wizard.choices(step) if choice.kind == "facts")
    count = sum(option.mark in ("bad", "catch") for choice in facts for option in choice.options)
    return shell.say(ui("to-do", count=count)) if count else "–"


def costs(shell: Shell, plan: Plan) -> list[tuple[str, str]]:
    """Return (key, words) of what a plan costs: download, disk, time, reboots; what is not known is left out."""
    # The first screen says no size.
    from steps.detect import measures

    download = sum(action.download_bytes or 0 for action in plan.actions)
    disk = sum(action.disk_bytes or 0 for action in plan.actions)
    minutes = round(sum(action.seconds or 0 for action in plan.actions) / 60)
    reboots = sum(type(action).__name__ == "Reboot" for action in plan.actions)
    found: list[tuple[str, str]] = []
    if download:
        found.append(("download", measures.download(download)))
    if disk:
        found.append(("disk", measures.download(disk)))
    if plan.actions:
        found.append(("time", shell.say(ui("minutes", count=max(1, minutes)))))
        found.append(("reboot", shell.say(ui("reboot-once" if reboots else "reboot-none"))))
    return found


def totals(shell: Shell, wizard: Wizard) -> tuple[str, ...]:
    """Return what the plan comes to in a few words; empty when it cannot be made."""
    try:
        plan = wizard.plan()
    except BringupError:
        return ()
    return totals_of(shell, plan) if plan is not None else ()


def totals_of(shell: Shell, plan: Plan) -> tuple[str, ...]:
    """Return what one plan comes to in a few words."""
    return (shell.say(ui("actions", count=len(plan.actions))), *(words for key, words in costs(shell, plan) if key in ("download", "time")))
