"""What the wizard asks of the house below it; everything heavy is imported at the first question, never for the first screen."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from steps.errors import InputError
from tui import terminal
from tui.privilege import Sudo, can_be_root

if TYPE_CHECKING:
    from textual.screen import Screen

    from steps.doctor.diagnosis import Verdict
    from steps.host.base import Host
    from steps.model.finding import Finding
    from steps.model.machine import Machine
    from steps.model.plan import Plan, Target
    from steps.model.profile import Profile
    from steps.model.run import RunSummary
    from steps.model.step import Step
    from steps.text import Language

_TRADE = re.compile(r"\(R\)|\(TM\)|\b(AMD|Intel|CPU|Processor|\d+-Core)\b| @ .*")
Privilege = Literal["root", "sudo", "none"]
"""Root now · root by asking · no way to root."""


class Looked(NamedTuple):
    """What looking at a machine brought: its facts, what actions would change, and what fits it best."""

    machine: Machine
    target: Target
    advised: Profile | None
    """The recommended answers; `None` when nothing consistent exists for this machine."""
    findings: tuple[Finding, ...] = ()
    """What the recommendation wants to be known."""
    found: tuple[str, ...] = ()
    """The machine in a few names: processors, memory, accelerators."""
    notices: tuple[Finding, ...] = ()
    """What is to be said about the tables themselves: how old they are, and which file of the person's own does not count."""


class Backend(Protocol):
    """The house below the screens."""

    language: Language
    """What a run that it starts speaks, and the text that it hands over."""

    @property
    def recording(self) -> bool:
        """Whether the hardware is that of a recorded machine."""
        ...

    def look(self) -> Looked:
        """Look at the machine; raises `BringupError`."""
        ...

    def offered(self, machine: Machine, target: Target) -> Machine:
        """Return the machine with what is on offer for it now; asks the network, within a time limit."""
        ...

    def diagnosed(self) -> tuple[Verdict, Plan]:
        """Return what the doctor says of the machine, and the plan of the repair, without actions where a person has to do all."""
        ...

    def confirmed(self, machine: Machine, plan: Plan) -> tuple[Finding, ...]:
        """Return what of a plan nobody could confirm, and what the indexes contradict; asks the package manager, so it takes a while."""
        ...

    def steps(self) -> tuple[Step, ...]:
        """Return the steps in their order."""
        ...

    def plan(self, machine: Machine, answers: Profile, target: Target) -> Plan:
        """Return what would be done; raises `BringupError`."""
        ...

    def without_root(self, plan: Plan, machine: Machine) -> Plan:
        """Return the part of a plan that a person without root can run."""
        ...

    def ahead(self, plan: Plan, *, root: bool) -> Plan:
        """Return what of a plan can be fetched before it starts; without `root` only the wheels."""
        ...

    def without_root_ahead(self, plan: Plan) -> Plan:
        """Return the part of such a fetch that needs no root."""
        ...

    def stop_fetching(self) -> None:
        """Stop what is fetched ahead; returns once nothing of it is left."""
        ...

    def request(self, plan: Plan) -> str:
        """Return a request to the administrator for what only root can do."""
        ...

    def judged(self, machine: Machine, answers: Profile) -> tuple[Finding, ...]:
        """Return every finding of every step."""
        ...

    def card(self, machine: Machine, answers: Profile, language: Language) -> str:
        """Return what is to be changed in the BIOS and where, as text to print."""
        ...

    def word(self, plan: Plan) -> str:
        """Return the word that must be typed before a plan starts, "" when none is needed."""
        ...

    def privilege(self) -> Privilege:
        """Return how root can be had."""
        ...

    def start(self, plan: Plan, sudo: Sudo | None) -> Any:
        """Start a run and return its handle; raises `BringupError`."""
        ...

    def runs(self) -> tuple[RunSummary, ...]:
        """Return the earlier runs, newest first."""
        ...

    def find(self, run_id: str) -> Any:
        """Return the handle of a run; raises `BringupError`."""
        ...

    def watch(self, handle: Any) -> Screen[Any]:
        """Return the screen that shows a run."""
        ...

    def read_profile(self, path: str) -> Profile:
        """Return the answers in a file; raises `BringupError`."""
        ...

    def save(self, path: str, text: str) -> str:
        """Write `text` and return the path as it was taken; raises `BringupError`."""
        ...

    def made_for(self, path: str) -> str | None:
        """Return the machine a profile was saved on, or `None` when its file does not say."""
        ...

    def profile_text(self, answers: Profile, made_for: str) -> str:
        """Return the answers as their file says them, with the machine they were made for."""
        ...

    def recorded(self) -> tuple[tuple[str, str], ...]:
        """Return (name, path) of the recorded machines that can be learned on."""
        ...

    def rehearse(self, path: str) -> None:
        """Use a recorded machine from now on."""
        ...


class House:
    """The real house."""

    def __init__(
        self,
        *,
        machine: str | None = None,
        root: str | None = None,
        language: Language = "en",
        offline: bool = False,
        package_set: str | None = None,
    ) -> None:
        self._machine = machine
        self._root = root
        self.language: Language = language
        self._offline = offline
        self._set = package_set
        self._notices: tuple[Finding, ...] = ()

    @property
    def recording(self) -> bool:
        """Whether the hardware is that of a recorded machine."""
        return self._machine is not None

    def look(self) -> Looked:
        """Look at the machine and ask the solver what fits it."""
        from steps.compat import package_sets, solve
        from steps.headless import facts, knowing
        from steps.headless.console import Asked

        environ = terminal.environment()
        loaded = facts.load(Asked(machine=self._machine, root=self._root, language=self.language), environ)
        self._notices = knowing.notices(knowing.lay(environ))
        chosen = package_sets.named(self._set or "")
        advice = package_sets.advised(loaded.machine, chosen) if chosen else solve.recommend(loaded.machine)
        return Looked(loaded.machine, loaded.target, advice.choices, advice.findings, in_names(loaded.machine), self._notices)

    def offered(self, machine: Machine, target: Target) -> Machine:
        """Return the machine with what its package lists and the Python index offer."""
        from steps.compat import solve
        from steps.headless import offering

        asked = offering.asked(machine, self._host(), target.installer, terminal.environment(), network=not self._offline)
        solve.recommend(asked)  # kept for the screens, which all ask for it
        return asked

    def diagnosed(self) -> tuple[Verdict, Plan]:
        """Return what the doctor says of the machine, and the plan of the repair."""
        from steps.headless import doctor
        from steps.headless.console import Asked

        asked = Asked(machine=self._machine, root=self._root, language=self.language)
        verdict = doctor.examined(asked, ())
        return verdict, doctor.repair(asked, terminal.environment(), verdict)

    def confirmed(self, machine: Machine, plan: Plan) -> tuple[Finding, ...]:
        """Return what the package manager and the indexes say of a plan."""
        from steps.knowledge import confirm

        return confirm.confirmed(machine, plan, self._host(), network=not self._offline)

    def _host(self) -> Host:
        """Return the door to the machine."""
        from steps.host.opening import open_host

        return open_host(self._machine, self._root)

    def steps(self) -> tuple[Step, ...]:
        """Return the setup flow."""
        from steps import registry

        return registry.SETUP

    def plan(self, machine: Machine, answers: Profile, target: Target) -> Plan:
        """Return the plan of the answers."""
        from steps import planning

        return planning.make_plan(machine, answers, target, made=time.time())

    def without_root(self, plan: Plan, machine: Machine) -> Plan:
        """Return the part that a person without root can run."""
        from steps import planning

        return planning.without_root(plan, machine)

    def ahead(self, plan: Plan, *, root: bool) -> Plan:
        """Return what of a plan can be fetched before it starts."""
        from steps.headless import ahead

        return ahead.plan_of(plan, root=root)

    def without_root_ahead(self, plan: Plan) -> Plan:
        """Return the part of such a fetch that needs no root."""
        from steps.headless import ahead

        return ahead.without_root(plan)

    def stop_fetching(self) -> None:
        """Stop what is fetched ahead."""
        from steps.engine import client

        client.stop_ahead()

    def request(self, plan: Plan) -> str:
        """Return the text of a request to the administrator."""
        from steps import lines

        return "\n".join(lines.request(plan, self.language)) + "\n"

    def judged(self, machine: Machine, answers: Profile) -> tuple[Finding, ...]:
        """Return every finding of every step."""
        from steps import planning

        return planning.findings(machine, answers) + self._notices

    def card(self, machine: Machine, answers: Profile, language: Language) -> str:
        """Return the BIOS card."""
        from steps.report.card import card

        return card(machine, answers, language)

    def word(self, plan: Plan) -> str:
        """Return the word that must be typed before a plan starts."""
        from steps import tuning

        return tuning.word_of(plan)

    def privilege(self) -> Privilege:
        """Return how root can be had here."""
        if terminal.is_root():
            return "root"
        return "sudo" if can_be_root() else "none"

    def start(self, plan: Plan, sudo: Sudo | None) -> Any:
        """Start the detached runner."""
        from steps.headless import runs

        return runs.start(plan, sudo, language=self.language)

    def runs(self) -> tuple[RunSummary, ...]:
        """Return the runs of this machine."""
        from steps.engine import client

        return client.runs()

    def find(self, run_id: str) -> Any:
        """Return the handle of one run."""
        from steps.engine import client

        return client.find(run_id)

    def watch(self, handle: Any) -> Screen[Any]:
        """Return the run screen."""
        from tui.screens.run import RunScreen

        return RunScreen(handle)

    def read_profile(self, path: str) -> Profile:
        """Return the answers in a file."""
        from steps.headless import choices

        return choices.read_profile(terminal.full_path(path))

    def save(self, path: str, text: str) -> str:
        """Write a file of the person's own; raises `InputError` when it cannot be written."""
        full = terminal.full_path(path)
        try:
            terminal.write_file(full, text)
        except OSError as error:
            raise InputError("file-not-written", file=full, reason=error.strerror or "") from error
        return full

    def made_for(self, path: str) -> str | None:
        """Return the machine a profile was saved on."""
        from steps import profiles
        from steps.host.local import LocalHost

        return profiles.made_for_line(LocalHost().read(terminal.full_path(path)) or "")

    def profile_text(self, answers: Profile, made_for: str) -> str:
        """Return the answers in TOML."""
        from steps import profiles

        return profiles.dump(answers, made_for)

    def recorded(self) -> tuple[tuple[str, str], ...]:
        """Return the recorded machines that came with the program."""
        from steps import resources

        return tuple(
            (name.removesuffix(".json"), resources.path_of("demo", name)) for name in resources.names("demo") if name.endswith(".json")
        )

    def rehearse(self, path: str) -> None:
        """Look at a recorded machine from now on; nothing real is touched."""
        self._machine, self._root = path, None


def in_names(machine: Machine) -> tuple[str, ...]:
    """Return processors, memory and accelerators as people say them; what is not known is left out."""
    from steps.detect import measures, summary

    names: list[str] = []
    if machine.cpu.model:
        processor = " ".join(_TRADE.sub(" ", machine.cpu.model).split())
        names.append(processor if (machine.cpu.sockets or 1) == 1 else f"{machine.cpu.sockets}× {processor}")
    if machine.memory.total_bytes:
        names.append(measures.memory(machine.memory.total_bytes) + (" ECC" if machine.memory.ecc else ""))
    cards = summary.gpu_line(machine)
    return (*names, cards) if cards else tuple(names)
