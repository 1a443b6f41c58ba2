"""What the machine and the answers come to, in words: for the first screen, the rail and the review."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steps.errors import BringupError
from tui.screens.base import ui

if TYPE_CHECKING:
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
    driver = shell.say(ui(f"driver-state.{machine.driver.state}", version=version))
    found = (", " if shell.language == "en" else "，").join(wizard.found)
    return shell.say(ui("welcome.found", what=found, driver=driver))


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
    values = values_of(shell, wizard, step)
    if values:
        return values[0]
    count = sum(finding.severity in ("error", "warning") for finding in wizard.check(step))
    return shell.say(ui("to-do", count=count)) if count else "–"


def costs(shell: Shell, plan: Plan) -> list[tuple[str, str]]:
    """Return (key, words) of what a plan costs: download, disk, time, reboots; what is not known is left out."""
    download = sum(action.download_bytes or 0 for action in plan.actions)
    disk = sum(action.disk_bytes or 0 for action in plan.actions)
    minutes = round(sum(action.seconds or 0 for action in plan.actions) / 60)
    reboots = sum(type(action).__name__ == "Reboot" for action in plan.actions)
    found: list[tuple[str, str]] = []
    if download:
        found.append(("download", gigabytes(download)))
    if disk:
        found.append(("disk", gigabytes(disk)))
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
    if plan is None:
        return ()
    return (shell.say(ui("actions", count=len(plan.actions))), *(words for key, words in costs(shell, plan) if key in ("download", "time")))


def gigabytes(size: int) -> str:
    """Return "5.9 GB", "14 GB", "320 MB": two significant digits for estimates."""
    if size < 1e9:
        return f"{size / 1e6:.0f} MB"
    return f"{size / 1e9:.0f} GB" if size >= 1e10 else f"{size / 1e9:.1f} GB"
