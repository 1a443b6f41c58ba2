"""A made-up house for the screens: two steps with every kind of row, and a backend that remembers what was asked of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from textual.screen import Screen

from steps.doctor.diagnosis import Verdict
from steps.errors import InputError
from steps.model.action import AnyAction, Packages, Run
from steps.model.base import Words
from steps.model.choice import Choice, Note, Option
from steps.model.finding import Finding, StepKey
from steps.model.hardware import Accelerator, Cpu, Memory
from steps.model.machine import Machine
from steps.model.plan import Ahead as Whose
from steps.model.plan import Plan, Target
from steps.model.profile import DriverAnswers, MonitoringAnswers, Profile
from steps.model.run import RunSummary
from steps.model.software import Driver
from steps.model.step import Step
from steps.text import Language
from tui.backend import Looked, Privilege
from tui.privilege import Sudo
from tui.screens.base import Page

NEEDS_OPEN = Finding(
    code="made-up",
    severity="error",
    step="driver",
    subject="580 proprietary × GB202",
    because=("GPU 0 is 10de:2b85", "chip GB202, Blackwell", "open modules only"),
    source="https://example.org/readme",
    fix={"driver.branch": "580", "driver.flavor": "open"},
)
MACHINE = Machine(
    cpu=Cpu(model="EPYC 7543"),
    memory=Memory(total_bytes=512_000_000_000),
    accelerators=(Accelerator(vendor="nvidia", pci_id="10de:2b85", name="RTX 5090"),),
    driver=Driver(state="working", kernel_version="550.90.07"),
)


class DriverLike:
    """A step with one answer of many: recommended, with a catch, impossible; and a typed value."""

    KEY: StepKey = "driver"

    def applies(self, machine: Machine) -> bool:
        return True

    def intro(self, machine: Machine, answers: Profile) -> Words:
        return "Branch and kernel modules. Ubuntu offers 570, 580, 595."

    def choices(self, machine: Machine, answers: Profile) -> tuple[Choice, ...]:
        taken = f"{answers.driver.branch} {answers.driver.flavor}"
        branches = (
            _branch("580 open", "good", "recommended", recommended=True),
            _branch("595 open", "good", "works"),
            _branch("570 open", "catch", "end of life", notes=(Note(label="leads-to", text="# apt-get install nvidia-570", command=True),)),
            _branch("580 proprietary", "bad", "needs open", findings=(NEEDS_OPEN,)),
        )
        source = (
            Option(value="distro", label="Ubuntu archive", tag="signed", patch={"driver.source": "distro"}, recommended=True),
            Option(value="nvidia-repo", label="NVIDIA repo", mark="catch", tag="adds a key", patch={"driver.source": "nvidia-repo"}),
        )
        return (
            Choice(key="driver.branch", kind="one", options=branches, taken=(taken,)),
            Choice(key="driver.source", kind="one", title="Source of the packages", options=source, taken=(answers.driver.source or "",)),
            Choice(key="environment.path", kind="text", title="Path", text=answers.environment.path or "~/envs/dl"),
        )

    def check(self, machine: Machine, answers: Profile) -> tuple[Finding, ...]:
        return (NEEDS_OPEN,) if answers.driver.flavor == "proprietary" else ()

    def actions(self, machine: Machine, answers: Profile, target: Target) -> tuple[AnyAction, ...]:
        if answers.driver.branch is None:
            return ()
        return (
            Packages(
                id="driver.install", title=f"Driver {answers.driver.branch} open", manager="apt", install=("nvidia-driver-580-open",),
                may_remove=("nvidia-*",), download_bytes=320_000_000, seconds=590,
            ),
        )  # fmt: skip


class MonitoringLike:
    """A step with facts and ticks."""

    KEY: StepKey = "monitoring"

    def applies(self, machine: Machine) -> bool:
        return True

    def intro(self, machine: Machine, answers: Profile) -> Words:
        return "What should watch the GPUs?"

    def choices(self, machine: Machine, answers: Profile) -> tuple[Choice, ...]:
        nvitop, glances = bool(answers.monitoring.nvitop), bool(answers.monitoring.glances)
        ticks = (
            Option(value="nvitop", label="nvitop", tag="fits", patch={"monitoring.nvitop": not nvitop}, recommended=True),
            Option(
                value="glances", label="glances", mark="bad", tag="clashes", sentences=("It brings another library to the same folder.",)
            ),
        )
        facts = (
            Option(value="gpu", label="GPU", detail="1× RTX 5090", tag="enough", sentences=("Blackwell, 32 GB.",)),
            Option(value="data", label="Data", detail="no SSD", mark="catch", tag="short"),
        )
        taken = tuple(name for name, on in (("nvitop", nvitop), ("glances", glances)) if on)
        return (
            Choice(key="monitoring", kind="many", options=ticks, taken=taken),
            Choice(key="facts", kind="facts", title="This machine", options=facts),
        )

    def check(self, machine: Machine, answers: Profile) -> tuple[Finding, ...]:
        return ()

    def actions(self, machine: Machine, answers: Profile, target: Target) -> tuple[AnyAction, ...]:
        return (Run(id="monitoring.nvitop", title="nvitop", argv=("true",), by="user", seconds=5),) if answers.monitoring.nvitop else ()


def _branch(
    name: str, mark: Any, tag: str, *, notes: tuple[Note, ...] = (), findings: tuple[Finding, ...] = (), recommended: bool = False
) -> Option:
    branch, flavor = name.split()
    return Option(
        value=name, label=name, mark=mark, tag=tag, sentences=(f"What {name} is, in a sentence.",), notes=notes, findings=findings,
        patch={"driver.branch": branch, "driver.flavor": flavor}, recommended=recommended,
    )  # fmt: skip


class RunStandIn(Page):
    """Stands for the run screen."""

    def title_words(self) -> str:
        return "running"


class MadeUp:
    """A backend over the made-up steps."""

    def __init__(
        self, folder: Path, *, privilege: Privilege = "root", advised: Profile | None = None, target: Target | None = None
    ) -> None:
        self.folder = folder
        self.language: Language = "en"
        self.started: list[Plan] = []
        self.looks = self.stopped = 0
        self.recording = False
        self.notices: tuple[Finding, ...] = ()
        self.unsure: tuple[Finding, ...] = ()
        self._privilege: Privilege = privilege
        self._advised = advised or Profile(driver=DriverAnswers(branch="580", flavor="open", source="distro"))
        self._target = target or Target(name="ws-5090", summary="1× RTX 5090 · Ubuntu 24.04.2")

    def look(self) -> Looked:
        self.looks += 1
        return Looked(MACHINE, self._target, self._advised, found=("EPYC 7543", "512 GB"), notices=self.notices)

    def offered(self, machine: Machine, target: Target) -> Machine:
        return machine

    def diagnosed(self) -> tuple[Verdict, Plan]:
        return Verdict(healthy=True), Plan(made=0.0, target=self._target, profile=Profile(), actions=())

    def confirmed(self, machine: Machine, plan: Plan) -> tuple[Finding, ...]:
        return self.unsure

    def steps(self) -> tuple[Step, ...]:
        return (DriverLike(), MonitoringLike())

    def plan(self, machine: Machine, answers: Profile, target: Target) -> Plan:
        return Plan(
            made=0.0,
            target=target,
            profile=answers,
            actions=tuple(a for step in self.steps() for a in step.actions(machine, answers, target)),
        )

    def without_root(self, plan: Plan, machine: Machine) -> Plan:
        return Plan(made=0.0, target=plan.target, profile=plan.profile, actions=tuple(a for a in plan.actions if a.by == "user"))

    def ahead(self, plan: Plan, *, root: bool) -> Plan:
        fetches = Run(id="ahead.driver", title=str(plan.profile.driver.branch), argv=("true",), download_bytes=420_000_000, by="user")
        return msgspec.structs.replace(plan, actions=(fetches,), ahead=Whose(pid=1, born="1"))

    def without_root_ahead(self, plan: Plan) -> Plan:
        return msgspec.structs.replace(plan, actions=())

    def stop_fetching(self) -> None:
        self.stopped += 1

    def request(self, plan: Plan) -> str:
        return f"{len(plan.actions)} actions\n"

    def judged(self, machine: Machine, answers: Profile) -> tuple[Finding, ...]:
        return tuple(found for step in self.steps() for found in step.check(machine, answers))

    def card(self, machine: Machine, answers: Profile, language: Language) -> str:
        return f"card in {language}\n"

    def word(self, plan: Plan) -> str:
        return "write" if plan.profile.firmware.linux else ""

    def privilege(self) -> Privilege:
        return self._privilege

    def start(self, plan: Plan, sudo: Sudo | None) -> Any:
        self.started.append(plan)
        return plan

    def runs(self) -> tuple[RunSummary, ...]:
        return (RunSummary(id="1130-a", folder="/nowhere", status="done"),)

    def find(self, run_id: str) -> Any:
        return run_id

    def watch(self, handle: Any) -> Screen[Any]:
        return RunStandIn()

    def read_profile(self, path: str) -> Profile:
        if not (self.folder / path).is_file():
            raise InputError("profile-missing", file=path)
        return Profile(driver=DriverAnswers(branch="595", flavor="open"), monitoring=MonitoringAnswers(nvitop=True))

    def save(self, path: str, text: str) -> str:
        (self.folder / path).write_text(text, encoding="utf-8")
        return path

    def made_for(self, path: str) -> str | None:
        return (self.folder / path).read_text(encoding="utf-8") or None

    def profile_text(self, answers: Profile, made_for: str) -> str:
        return f"branch = {answers.driver.branch}\n"

    def recorded(self) -> tuple[tuple[str, str], ...]:
        return (("gpu01", "/demo/gpu01.json"),)

    def rehearse(self, path: str) -> None:
        self.recording = True
        self._target = Target(name="gpu01", summary="4× RTX 4090", rehearsal=True, machine=path)
