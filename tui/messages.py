"""What workers tell the application; only handlers touch screens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from steps.errors import BringupError
    from steps.model.finding import Finding
    from steps.model.machine import Machine
    from steps.model.plan import Plan
    from steps.model.run import RunSummary
    from tui.backend import Looked


class MachineLooked(Message):
    """The machine has been looked at."""

    def __init__(self, looked: Looked) -> None:
        super().__init__()
        self.looked = looked


class Offered(Message):
    """What is on offer for a machine is known."""

    def __init__(self, before: Machine, machine: Machine) -> None:
        super().__init__()
        self.before = before
        self.machine = machine


class Confirmed(Message):
    """What could not be confirmed of a plan is known."""

    def __init__(self, plan: Plan, found: tuple[Finding, ...]) -> None:
        super().__init__()
        self.plan = plan
        self.found = found


class Failed(Message):
    """Something a person can answer went wrong."""

    def __init__(self, error: BringupError) -> None:
        super().__init__()
        self.error = error


class RunsListed(Message):
    """The earlier runs are known."""

    def __init__(self, runs: tuple[RunSummary, ...]) -> None:
        super().__init__()
        self.runs = runs


class Started(Message):
    """A run was started."""

    def __init__(self, handle: object) -> None:
        super().__init__()
        self.handle = handle


class Broken(Message):
    """A bug of ours; the screen says so, and what is safe."""

    def __init__(self, detail: str) -> None:
        super().__init__()
        self.detail = detail
