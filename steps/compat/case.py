"""What the rules look at: one machine, one set of answers, and what both come to."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, Literal, TypeVar

from steps.catalog import devices, frameworks, stack
from steps.catalog.versions import line, number
from steps.model.base import Phrase, phrase
from steps.model.hardware import Accelerator
from steps.model.machine import Machine, judged
from steps.model.profile import Profile
from steps.model.software import Flavor

T = TypeVar("T")

_DATA_CENTER = re.compile(r"\b(Tesla|GH200|GB[23]00|[ABHV][1-9]00|P100|A2|A[0-9]{2}|A[0-9]{2}[GX]|[LTPMK][1-9][0-9]?[SG]?|[BH]20)\b")
_DESKTOP = re.compile(r"\bRTX\b|\bActive\b|Quadro|GeForce|TITAN", re.IGNORECASE)
"""Cards of the same chips for desks: the A800 with a fan of its own is called "Active"."""
_VIRTUAL = re.compile(r"-\d+(?:[ABCQ]|CME|B4)$")


def _for_data_centers(card: Accelerator) -> bool:
    """Return whether a card is made for data centers: by the name that belongs to its PCI id, else by its own."""
    row = devices.gpu(card.pci_id) if card.pci_id else None
    names = [name for name in (row.name if row else None, card.name) if name]
    return any(_DATA_CENTER.search(name) for name in names) and not any(_DESKTOP.search(name) for name in names)


class lazy(Generic[T]):  # noqa: N801 - used like `property`
    """A property that is worked out once: `functools.cached_property` without the lock that it takes before Python 3.12."""

    def __init__(self, work: Callable[[Any], T]) -> None:
        self._work = work
        self._name = work.__name__
        self.__doc__ = work.__doc__

    def __get__(self, owner: Any, kind: type[object] | None = None) -> T:
        """Return what the work came to; the instance's own entry hides this from then on."""
        found = owner.__dict__[self._name] = self._work(owner)
        return found


class Gpu:
    """One judged accelerator with the row of its architecture (`None`: we do not know it)."""

    __slots__ = ("capability", "card", "data_center", "name", "position", "row")

    def __init__(self, position: int, card: Accelerator) -> None:
        self.position = position
        self.card = card
        self.row = stack.architecture_of(card.architecture, card.compute_capability, card.chip)
        self.name = short_name(card.name) or card.chip or card.pci_id or "GPU"
        """What the card is called, as short as it is known."""
        self.capability = card.compute_capability or (self.row.compute_capability if self.row else None)
        """The compute capability."""
        self.data_center = _for_data_centers(card)
        """Whether it is made for data centers."""

    @property
    def fact(self) -> Phrase:
        """The fact that chains start with."""
        if not self.card.pci_id:
            return phrase("driver.because.gpu-plain", index=self.position, name=self.name)
        return phrase("driver.because.gpu", index=self.position, name=self.name, id=self.card.pci_id)

    @property
    def kin(self) -> Phrase:
        """The architecture of the card as a fact."""
        return phrase(
            "driver.because.architecture",
            name=self.name,
            chip=self.card.chip or "?",
            architecture=architecture_title(self.row.name if self.row else self.card.architecture),
            capability=self.capability or "?",
        )


@cache
def short_name(name: str | None) -> str:
    """Return a card's name without its maker's: `RTX 4090`."""
    plain = re.sub(r"^(NVIDIA|AMD|Intel)\s+", "", (name or "").partition(" / ")[0])
    return plain.replace("GeForce ", "").strip()


def architecture_title(name: str | None) -> str:
    """Return an architecture's name as it is written in a sentence."""
    return (name or "?").upper() if (name or "").startswith(("cdna", "rdna")) else (name or "?").capitalize()


@dataclass(frozen=True)
class DriverCase:
    """The driver these answers come to.

    `origin`: planned (to be installed), installed (stays), host (a container's or Windows'), none. `version` is exact for an
    installed one and the branch's newest for a planned one.
    """

    origin: Literal["planned", "installed", "host", "none"]
    branch: str | None = None
    version: str | None = None
    flavor: Flavor | None = None
    source: str | None = None
    server: bool = False

    @lazy
    def row(self) -> stack.Branch | None:
        """The branch's row; `None` when there is no driver or we do not know the branch."""
        return stack.branches().get(self.branch or "")

    @property
    def title(self) -> str:
        """The driver in names: `driver 580 (open)`."""
        return f"driver {self.branch or '?'}" + (f" ({self.flavor})" if self.flavor else "")


_found: list[tuple[Machine, tuple[str | None, bool]]] = []
"""What was found installed on the machine looked at last: every case asks for it."""


def installed_driver(machine: Machine) -> tuple[str | None, bool]:
    """Return the version of the installed driver, and whether it works; (`None`, False) without one."""
    if not (_found and _found[0][0] is machine):
        _found[:] = [(machine, _installed(machine))]
    return _found[0][1]


def _installed(machine: Machine) -> tuple[str | None, bool]:
    """Return what is installed."""
    driver = machine.driver
    if driver.state == "absent":
        return None, False
    versions = (driver.kernel_version, driver.library_version, *(package.version for package in driver.packages))
    version = next((found for found in map(_release, versions) if found), None)
    return version, driver.state == "working"


def _release(version: str | None) -> str | None:
    """Return the driver's own version in a package's: `580.95.05-0ubuntu0.22.04.1` → `580.95.05`."""
    found = re.search(r"(?<![\d.])\d{3}\.\d{2,3}(?:\.\d{2})?(?![\d])", version or "")
    return found.group() if found else None


_seen: list[tuple[Machine, tuple[Gpu, ...]]] = []
"""The cards of the machine looked at last: every option of every step asks for them."""


def _cards(machine: Machine) -> tuple[Gpu, ...]:
    """Return the NVIDIA cards of a machine, if the plan is for NVIDIA's."""
    if not (_seen and _seen[0][0] is machine):
        mine = {id(card) for card in judged(machine) if card.vendor == "nvidia"}
        _seen[:] = [(machine, tuple(Gpu(at, card) for at, card in enumerate(machine.accelerators) if id(card) in mine))]
    return _seen[0][1]


def _is_lent(gpu: Gpu) -> bool:
    """Return whether a card is set aside for virtual machines."""
    return gpu.card.kernel_driver == "vfio-pci"


@dataclass(frozen=True)
class Case:
    """A machine and answers, with what follows from both; computed once, looked at by every rule."""

    machine: Machine
    answers: Profile

    @lazy
    def gpus(self) -> tuple[Gpu, ...]:
        """The NVIDIA cards that choices are made for; those that the answers ignore, or that are set aside for guests, are left out."""
        left_out = self.answers.driver.ignore or ()
        here = (gpu for gpu in _cards(self.machine) if not _is_lent(gpu))
        return tuple(gpu for gpu in here if gpu.card.address not in left_out or gpu.card.address is None)

    @lazy
    def lent(self) -> tuple[Gpu, ...]:
        """The NVIDIA cards that somebody set aside for virtual machines: no driver of this system is meant to have them."""
        return tuple(gpu for gpu in _cards(self.machine) if _is_lent(gpu))

    @lazy
    def kinds(self) -> tuple[Gpu, ...]:
        """The first card of each kind: eight equal ones make one finding."""
        return tuple({(gpu.name, gpu.capability): gpu for gpu in reversed(self.gpus)}.values())[::-1]

    @lazy
    def vendor(self) -> str | None:
        """The one vendor of the plan."""
        cards = judged(self.machine)
        return cards[0].vendor if cards else None

    @property
    def wsl(self) -> bool:
        """Whether this is Linux inside Windows."""
        return self.machine.os.wsl is True

    @property
    def contained(self) -> bool:
        """Whether this is a container, whose driver is the host's."""
        return self.machine.os.container not in (None, "none", "")

    @property
    def virtual_gpu(self) -> bool:
        """Whether a card is a slice that the host's GRID driver hands out; Azure hands out the A10 in no other way."""
        hosted = self.machine.os.virtualization == "microsoft"
        return any(_VIRTUAL.search(gpu.card.name or "") or (hosted and short_name(gpu.card.name) == "A10") for gpu in self.gpus)

    @lazy
    def data_center(self) -> bool:
        """Whether all cards are of the data-center kind."""
        return bool(self.gpus) and all(gpu.data_center for gpu in self.gpus)

    @lazy
    def distribution(self) -> stack.Distribution | None:
        """The row of the distribution."""
        return stack.distribution_of(self.machine.os.id, self.machine.os.version)

    @lazy
    def repository(self) -> stack.CudaRepository | None:
        """NVIDIA's repository for this system and processor, if there is one."""
        row = stack.repository_of("wsl" if self.wsl else self.machine.os.id, self.machine.os.version)
        if row is None and self.distribution and self.distribution.token:
            row = stack.repository_of(self.distribution.os[0], self.distribution.version)
        return row if row and repository_arch(self.machine.os.arch) in row.arches else None

    @lazy
    def system(self) -> str:
        """The system in names: `ubuntu 24.04`."""
        return " ".join(part for part in (self.machine.os.id, self.machine.os.version) if part) or "?"

    @lazy
    def driver(self) -> DriverCase:
        """The driver that will run; what the answers leave open is what the packages would turn out to be."""
        answers = self.answers.driver
        version, _ = installed_driver(self.machine)
        if answers.branch and answers.source != "keep":
            row = stack.branches().get(answers.branch)
            flavor = answers.flavor or self._flavor(row)
            server = self._server(answers.branch, flavor) if answers.server is None else answers.server
            source = answers.source or self._source(archive_name(answers.branch, server, flavor))
            return DriverCase("planned", answers.branch, row.latest if row else answers.branch, flavor, source, server)
        if version is None:
            return DriverCase("none")
        origin: Literal["host", "installed"] = "host" if self.wsl or self.contained else "installed"
        return DriverCase(origin, line(version, 1), version, self.machine.driver.flavor, "keep")

    def _flavor(self, row: stack.Branch | None) -> Flavor | None:
        """Return the kernel modules that suit the cards where nobody chose; `None` for a branch that we do not know."""
        if row is None:
            return None
        kinds = {gpu.row.open_modules for gpu in self.gpus if gpu.row}
        if row.open_modules == "none" or "unsupported" in kinds:
            return "proprietary"
        return "open" if row.open_modules != "optional" or "required" in kinds else "proprietary"

    def _server(self, branch: str, flavor: Flavor | None) -> bool:
        """Return whether Ubuntu's -server packages are meant where nobody chose: on data-center cards, if there are any."""
        archive = self.distribution.archive if self.distribution else ()
        plain, server = (archive_name(branch, kind, flavor) in archive for kind in (False, True))
        return server and (self.data_center or not plain)

    def _source(self, variant: str) -> str | None:
        """Return where a driver comes from where nobody chose: the system's archive if it has it, else NVIDIA's repository."""
        if self.distribution and variant in self.distribution.archive:
            return "distro"
        return "nvidia-repo" if self.repository else None

    @lazy
    def torch(self) -> frameworks.TorchRelease | None:
        """The row of the wanted PyTorch."""
        wanted = self.answers.frameworks.get("torch")
        return frameworks.torch_release(wanted) if wanted else None

    @lazy
    def variant(self) -> str | None:
        """The wanted variant; without one it is the package index's own."""
        return self.answers.frameworks.get("variant") or (self.torch.default_variant if self.torch else None)

    @lazy
    def tensorflow(self) -> frameworks.TensorflowRelease | None:
        """The row of the wanted TensorFlow."""
        wanted = self.answers.frameworks.get("tensorflow")
        return frameworks.tensorflow_release(wanted) if wanted else None

    @lazy
    def jax(self) -> frameworks.JaxRelease | None:
        """The row of the wanted JAX."""
        wanted = self.answers.frameworks.get("jax")
        return frameworks.jax_release(wanted) if wanted else None

    @property
    def arm(self) -> bool:
        """Whether the processor is a 64-bit Arm."""
        return self.machine.os.arch in ("aarch64", "arm64")

    @lazy
    def others(self) -> tuple[frameworks.OtherRelease, ...]:
        """The rows of the wanted packages beside the big three."""
        return tuple(row for name, version in self.answers.frameworks.items() if (row := frameworks.other(name, version)))

    @lazy
    def cuda(self) -> str | None:
        """The wanted toolkit line; `None` when none is wanted."""
        wanted = self.answers.toolkit.cuda
        return wanted if wanted and wanted != "none" else None

    @lazy
    def cuda_row(self) -> stack.Cuda | None:
        """The row of the wanted toolkit."""
        return stack.cudas().get(self.cuda or "")

    @lazy
    def cuda_major(self) -> int | None:
        """The CUDA major that system libraries must fit: of the wanted toolkit, else of the only installed one."""
        if self.cuda:
            return number(self.cuda)[0] if number(self.cuda) else None
        if self.answers.toolkit.cuda == "none":
            return None
        majors = {number(kit.version)[0] for kit in self.machine.toolkits if kit.version and number(kit.version)}
        return majors.pop() if len(majors) == 1 else None


def archive_name(branch: str, server: bool, flavor: Flavor | None) -> str:
    """Return how a distribution's archive calls a driver: `580-server-open`."""
    return branch + ("-server" if server else "") + ("-open" if flavor == "open" else "")


def repository_arch(arch: str | None) -> str:
    """Return a processor's name in NVIDIA's repositories: aarch64 servers are `sbsa`."""
    return {"aarch64": "sbsa", "arm64": "sbsa"}.get(arch or "", arch or "x86_64")
