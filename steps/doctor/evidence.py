"""The evidence of one machine: typed facts and events, each looked for once, when a rule first asks."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeVar

from steps.detect import nvml
from steps.detect.probes import Probes
from steps.detect.smi import Smi
from steps.doctor import texts
from steps.doctor.diagnosis import Foreign, Unseen
from steps.doctor.events.all import reader
from steps.doctor.events.base import Event, Events
from steps.doctor.events.nvml import NvmlError, NvmlTrouble
from steps.doctor.events.typed import Command
from steps.doctor.facts.cards import Cards, cards
from steps.doctor.facts.links import LinkSeen, links_seen
from steps.doctor.facts.modules import Modules, modules
from steps.doctor.facts.packages import Packages, Upgradable, packages, upgradable
from steps.doctor.facts.processes import processes
from steps.doctor.facts.queries import Answered, answers, as_readings
from steps.doctor.facts.readings import Readings, readings
from steps.doctor.facts.repositories import Source, sources
from steps.doctor.facts.space import FileSystem, file_systems
from steps.doctor.facts.system import System, system
from steps.doctor.facts.versions import Versions, strangers, versions
from steps.doctor.overcome import in_log_overcome
from steps.doctor.past import Now, Seen, foreign, in_one_version, overtaken, unbuilt
from steps.doctor.told import CONTAINER, Fact
from steps.doctor.unseen import unseen
from steps.host.base import Host
from steps.host.captured import Capture, CapturedHost
from steps.host.files import decoded
from steps.host.hurried import Hurried
from steps.host.transcript import MOST as MOST_PASTED
from steps.host.transcript import answered, session

PATIENCE = 16.0
"""Seconds after which no probe is waited for any more: what is then not known hangs, and that is worth saying."""
E = TypeVar("E", bound=Event)
_IDENTITY = ("systemd-detect-virt", "uname")
"""What tells which machine it is: nobody's paste answers that for this one."""
Log = tuple[str, Iterable[bytes]]
"""A log that a person handed over: its name, and its blocks."""


class Evidence:
    """What is known of a machine; every property is worked out once and never changes afterwards."""

    def __init__(self, host: Host, logs: Iterable[Log] = (), *, now: bool = False, since: float | None = None) -> None:
        """Read every text at once (they are what a diagnosis mostly hangs on); all else waits until it is asked for.

        `now` is for a second look after a repair that began at `since`, in seconds since the epoch: older words of a real machine
        are from before it.
        """
        self.host = Probes(host if host.rehearsal else Hurried(host, PATIENCE))
        self.patient = host
        """The machine itself, for what may take longer than all probes together."""
        self.rehearsal = host.rehearsal
        self.handed: set[str] = set()
        """The names of the logs that a person handed over."""
        self._heard: set[tuple[str, ...]] = set()
        texts.ahead(self.host)
        self._reader = reader()
        answers: dict[tuple[str, ...], str] = {}
        printed: dict[str, str] = {}
        for name, blocks in logs:
            self.handed.add(name)
            start = bytearray()
            self._reader.read_blocks(name, _kept(blocks, start))
            if not name.startswith(CONTAINER) and len(start) <= MOST_PASTED:
                text = decoded(bytes(start))
                answers |= answered(text)
                printed |= session(text).files
        texts.read(self.host, self._reader, now=now, since=since)
        self.events: Events = self._reader.events
        told = versions(self.host, Events(), self.packages)
        works = in_one_version(told, self.packages, self.driver_answers)
        self._answers, self._printed = answers, printed
        self._before = self.events.only(self.handed) if self.handed else Events()
        self.serves = self.driver_answers
        """Whether the driver answers on the machine itself, whatever a log shows."""
        self.foreign = self._foreign(told) if self.handed else None
        if answers and self.foreign is None:
            self._take({argv: output for argv, output in answers.items() if argv[0] not in _IDENTITY})
        self._past = self.events.drop(overtaken(self.events, self.handed, self._now(works, told)))

    def _now(self, works: bool, told: Versions) -> Now:
        """Return what is known of the machine now, against which older words are held."""
        log = self.host.run(("dmesg",), timeout=5)
        running = self.system.kernel
        built = {line.kernel for line in self.modules.dkms or () if line.module.startswith("nvidia") and line.state == "installed"}
        there = self.host.listdir("/lib/modules")
        return Now(
            works=works,
            loaded=told.loaded[0].value if told.loaded else None,
            answering=frozenset(gpu.address for gpu in self.smi.gpus if gpu.address),
            log_of_boot=log.status == 0 and "Linux version " in log.stdout,
            boots_count=not self.rehearsal or self.driver_answers is True,
            unbuilt=unbuilt(
                self.events,
                running.value if running else None,
                {*self.modules.kernels(), *(kernel for kernel in built if kernel is not None)},
                set(there) if there else None,
            ),
        )

    def _foreign(self, told: Versions) -> Foreign | None:
        """Return what shows that the logs which were handed over are not of this machine."""
        running = self.system.kernel
        kernels = {*(self.host.listdir("/lib/modules") or ()), *((running.value,) if running else ())}
        alone = self.logs_alone()
        return foreign(self.events.only(self.handed), alone.marks(alone.versions), self.marks(told), kernels)

    def marks(self, told: Versions) -> Seen:
        """Return what tells this machine from another."""
        names = frozenset(gpu.name for gpu in self.smi.gpus if gpu.name)
        return Seen(told, self.system, self.cards, names, strangers(self.host))

    def _take(self, answers: Mapping[tuple[str, ...], str]) -> None:
        """Let what a person printed here answer before the machine does."""
        self.host.tell(answers)
        self._anew()

    def _anew(self) -> None:
        """Forget what was worked out."""
        for name in [name for name, value in vars(Evidence).items() if isinstance(value, cached_property)]:
            vars(self).pop(name, None)

    def doubted(self, *, quoted: bool = False) -> Evidence:
        """Return the same evidence with what seems to be of the past, and with `quoted` what seems to be nobody's own word."""
        whole: Evidence = copy.copy(self)
        whole._anew()
        whole._reader = copy.copy(self._reader)
        whole.events = whole._reader.events = self.events.joined(self._past, *((self._reader.quoted,) if quoted else ()))
        return whole

    @cached_property
    def own(self) -> Evidence:
        """The same evidence with the facts that the machine itself tells: on pasted answers a cause may rest, and no change of root's."""
        if self.rehearsal or not self._answers:
            return self
        mine: Evidence = copy.copy(self)
        mine._anew()
        mine.host = self.host.untold()
        return mine

    def without_logs(self) -> Evidence:
        """Return what the machine itself tells, where the logs are not of it."""
        own: Evidence = copy.copy(self)
        own._anew()
        own._reader = copy.copy(self._reader)
        own._reader.quoted = self._reader.quoted.without(self.handed)
        own.events = own._reader.events = self.events.without(self.handed)
        own._past, own.handed, own.foreign = self._past.without(self.handed), set(), None
        return own

    def logs_alone(self) -> Evidence:
        """Return what the logs that were handed over tell by themselves, the past included, where nothing else is known."""
        alone = Evidence(CapturedHost(Capture(schema="bringup/capture", version=1, files={**self._printed})))
        alone.serves = None
        alone._take(self._answers)
        alone.handed, alone.events = self.handed, self._before
        alone.events.drop(in_log_overcome(alone.events))
        return alone

    def close(self) -> None:
        """Stop waiting for probes that are still running."""
        self.host.close()

    # -- events -------------------------------------------------------------------------------------------------------

    def all(self, kind: type[E]) -> tuple[E, ...]:
        """Return the events of a kind in the order of reading."""
        return self.events.all(kind)

    def first(self, kind: type[E], where: Callable[[E], bool] = lambda _: True) -> E | None:
        """Return the first event of a kind for which `where` holds, or `None`."""
        return self.events.first(kind, where)

    def has(self, kind: type[E], where: Callable[[E], bool] = lambda _: True) -> bool:
        """Return whether there is such an event."""
        return self.events.has(kind, where)

    def heard(self, kind: type[E], *probes: tuple[str, ...]) -> tuple[E, ...]:
        """Return the events of a kind, those included that these probes tell now where they can be asked; of a recording all is read."""
        for argv in self.host.forms(lambda _: False, *probes):
            if argv not in self._heard:
                self._heard.add(argv)
                self._reader.read(" ".join(argv), self.host.run(argv).text)
        return self.all(kind)

    def commands(self, *programs: str) -> tuple[Command, ...]:
        """Return the commands of these programs that a log shows."""
        return tuple(command for command in self.all(Command) if command.program in programs)

    def nvml(self, *troubles: NvmlTrouble) -> NvmlError | None:
        """Return the first failure of NVML of one of these kinds, or `None`."""
        return self.first(NvmlError, lambda event: event.trouble in troubles)

    # -- facts --------------------------------------------------------------------------------------------------------

    @cached_property
    def system(self) -> System:
        """The distribution, the running kernel, and what it runs inside of."""
        return system(self.host)

    @cached_property
    def packages(self) -> Packages:
        """The packages with their states."""
        return packages(self.host)

    @cached_property
    def upgradable(self) -> tuple[Upgradable, ...]:
        """The packages for which apt offers another version."""
        return upgradable(self.host)

    @cached_property
    def versions(self) -> Versions:
        """The driver's versions in the kernel, on disk and in user space."""
        return versions(self.host, self.events, self.packages)

    @cached_property
    def modules(self) -> Modules:
        """Kernel modules: loaded, on disk, DKMS, settings."""
        return modules(self.host)

    @cached_property
    def smi(self) -> Smi:
        """What nvidia-smi or NVML says of the driver and the cards."""
        return nvml.driver_says(self.host)

    @cached_property
    def cards(self) -> Cards:
        """NVIDIA's cards."""
        return cards(self.host, self.smi)

    @cached_property
    def readings(self) -> tuple[Readings, ...]:
        """The readings of `nvidia-smi -q` for each GPU, and those of its queries."""
        return (*readings(self.host), *as_readings(self.answers))

    @cached_property
    def answers(self) -> tuple[Answered, ...]:
        """The lines that nvidia-smi's queries answered."""
        return answers(self.host)

    @cached_property
    def links(self) -> tuple[LinkSeen, ...]:
        """The PCIe links of the cards, from every source that tells them."""
        return links_seen(self.host, self.readings)

    @cached_property
    def nodes(self) -> tuple[tuple[tuple[str, ...], str], ...]:
        """The lists of the driver's device nodes, each with the command that printed it."""
        asked = self.host.forms(lambda argv: argv[0] == "ls" and any("/dev/nvidia" in word for word in argv), ("ls", "-l", "/dev/nvidia*"))
        return tuple((argv, self.host.run(argv).text) for argv in asked)

    @cached_property
    def processes(self) -> tuple[Fact, ...] | None:
        """The lines of the lists of processes; `None` when nobody looked."""
        return processes(self.host)

    @cached_property
    def repositories(self) -> tuple[Source, ...]:
        """The repositories that are configured."""
        return sources(self.host)

    @cached_property
    def space(self) -> tuple[FileSystem, ...]:
        """The file systems and their room."""
        return file_systems(self.host)

    @cached_property
    def driver_answers(self) -> bool | None:
        """Whether the driver serves its tools now: `True` with a GPU listed, `False` with a failure, `None` when nobody asked."""
        if self.smi.trouble is not None or self.smi.hangs:
            return False
        return True if self.smi.gpus or self.smi.driver_version else None

    @property
    def unseen(self) -> tuple[Unseen, ...]:
        """What was asked so far in vain."""
        return unseen(self.host)

    def asked(self, *argv: str) -> bool:
        """Return whether a probe was recorded, or has been run here."""
        return argv in self._answers or argv in (self.host.host.recorded() if self.rehearsal else self.host.asked())


def _kept(blocks: Iterable[bytes], start: bytearray) -> Iterator[bytes]:
    """Yield the blocks, and keep in `start` what they begin with, a little more than a pasted session may have."""
    for block in blocks:
        start += block[: MOST_PASTED + 1 - len(start)]
        yield block
