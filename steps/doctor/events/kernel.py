"""What the NVIDIA modules and their loading leave in the kernel's log."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place
from steps.model.software import Flavor

_VERSION = r"\d{3}\.\d+(?:\.\d+)*"


class ApiMismatch(Event):
    """The module met a client of another version; either may have been cut off the message."""

    client: str | None = None
    module: str | None = None
    program: str | None = None


_CLIENT = rf"API mismatch: the client(?: '(?P<program>[^']*)'(?: \(pid \d+\))?)? has the version (?P<client>{_VERSION})"


@parses(
    rf"{_CLIENT}, but (?:NVRM: )?this kernel module has the version (?P<module>{_VERSION})",
    "API mismatch",
    lines=6,
)
def api_mismatch(found: re.Match[str], at: Place) -> ApiMismatch:
    """Recognise the whole message."""
    return ApiMismatch(place=at, client=found["client"], module=found["module"], program=found["program"])


@parses(rf"{_CLIENT}(?![\d.]*\d)(?!,? but (?:NVRM: )?this kernel module has the version {_VERSION})", "API mismatch", lines=6)
def api_mismatch_head(found: re.Match[str], at: Place) -> ApiMismatch:
    """Recognise the beginning of a message that was cut off before the module's version."""
    return ApiMismatch(place=at, client=found["client"], program=found["program"])


@parses(rf"^(?!.*client).*this kernel module has the version (?P<module>{_VERSION})", "module has the version", lines=2)
def api_mismatch_tail(found: re.Match[str], at: Place) -> ApiMismatch:
    """Recognise the end of a message whose beginning was not copied."""
    return ApiMismatch(place=at, module=found["module"])


class ModuleMix(Event):
    """Two modules of the driver refuse each other; user space has no part in it."""

    first: str
    second: str


@parses(
    rf"Version mismatch: nvidia(?:\.ko)?\((?P<first>{_VERSION})\),? nvidia[-_]\w+(?:\.ko)?\((?P<second>{_VERSION})\)",
    "Version mismatch: nvidia",
    lines=2,
)
def module_mix(found: re.Match[str], at: Place) -> ModuleMix:
    """Recognise the message of nvidia-modeset and its sisters; branches before 390 leave `.ko` out."""
    return ModuleMix(place=at, first=found["first"], second=found["second"])


class SymbolMix(Event):
    """A sister module was built against another nvidia.ko than the one that is loaded."""

    module: str
    symbol: str


@parses(
    r"(?P<module>nvidia[_-](?:uvm|modeset|drm|peermem)): disagrees about version of symbol (?P<symbol>(?:nv|rm_|NV_)\w+)",
    "disagrees about version of symbol",
)
def symbol_mix(found: re.Match[str], at: Place) -> SymbolMix:
    """Recognise the kernel's comparison; symbols of the kernel's own, as `module_layout`, are another matter."""
    return SymbolMix(place=at, module=found["module"], symbol=found["symbol"])


class Loading(Event):
    """A module of the driver was loaded."""

    version: str
    flavor: Flavor
    modeset: bool = False
    """Whether it is nvidia-modeset, not nvidia itself."""


@parses(
    r"(?:NVRM|nvidia-modeset): loading NVIDIA (?:UNIX )?(?P<open>Open )?"
    rf".*?Kernel M\w+(?: Setting Driver)?(?: for (?:UNIX platforms|\S+))? +(?P<version>{_VERSION})",
    "oading NVIDIA UNIX",
    "oading NVIDIA Kernel Mode",
    flags=re.IGNORECASE,
)
def loading(found: re.Match[str], at: Place) -> Loading:
    """Recognise the greeting of nvidia or nvidia-modeset."""
    modeset = "modeset" in found[0].partition(":")[0].lower()
    return Loading(place=at, version=found["version"], flavor="open" if found["open"] else "proprietary", modeset=modeset)


class LegacyCard(Event):
    """The driver ignores a card that only an older branch drives."""

    branch: str
    driver: str | None = None
    card: str | None = None


@parses(
    r"(?:The NVIDIA (?P<card>.{1,120}?) GPU installed in this system is )?"
    r"supported through the NVIDIA (?P<branch>\d+)\.xx Legacy drivers"
    rf"(?:.{{0,200}}?The (?P<driver>{_VERSION}) NVIDIA driver will ignore)?",
    "supported through the", "installed in this system is",
    lines=6,
    flags=re.DOTALL,
)  # fmt: skip
def legacy_card(found: re.Match[str], at: Place) -> LegacyCard:
    """Recognise the sentence that names the branch."""
    return LegacyCard(place=at, branch=found["branch"], driver=found["driver"], card=found["card"])


class NeedsOpen(Event):
    """The closed module says that a card needs the open one."""

    address: str | None = None
    pci_id: str | None = None


@parses(
    r"(?:The NVIDIA GPU (?P<address>[0-9a-f:.]+) \(PCI ID: (?P<id>[0-9a-f:]+)\) )?(?:installed in this system )?"
    r"requires use of the NVIDIA open kernel modules",
    "The NVIDIA GPU", "requires use of the",
    lines=4,
)  # fmt: skip
def needs_open(found: re.Match[str], at: Place) -> NeedsOpen:
    """Recognise the sentence of branches that know the card."""
    return NeedsOpen(place=at, address=found["address"], pci_id=found["id"])


class NoGsp(Event):
    """The open module says that a card lacks the processor that it needs."""

    address: str | None = None
    pci_id: str | None = None


@parses(
    r"(?:The NVIDIA GPU (?P<address>[0-9a-f:.]+) \(PCI ID: (?P<id>[0-9a-f:]+)\) installed in this system is )?"
    r"not supported by (?:the )?open nvidia\.ko because it does not include the required GPU System Processor",
    "The NVIDIA GPU", "not supported by", "open nvidia.ko",
    lines=5,
)  # fmt: skip
def no_gsp(found: re.Match[str], at: Place) -> NoGsp:
    """Recognise the sentence of the open module."""
    return NoGsp(place=at, address=found["address"], pci_id=found["id"])


class InitFailed(Event):
    """The module could not start a card; the two first numbers of the code say in which step."""

    address: str | None
    code: str


@parses(r"GPU (?P<address>[0-9a-f:.]+): RmInitAdapter failed! \((?P<code>0x[0-9a-f]+:0x[0-9a-f]+)(?::\d+)*\)", "RmInitAdapter failed")
def init_failed(found: re.Match[str], at: Place) -> InitFailed:
    """Recognise the code of a failed start."""
    return InitFailed(place=at, address=found["address"], code=found["code"])


class NoGpuFound(Event):
    """The module found no GPU that it would drive."""


@parses(r"NVRM: No NVIDIA (?:GPU|graphics adapter|devices) (?:found|probed)", "NVRM: No NVIDIA")
def no_gpu_found(found: re.Match[str], at: Place) -> NoGpuFound:
    """Recognise the last word of a probe."""
    return NoGpuFound(place=at)


class NvlinkCore(Event):
    """The module came (`registered`) or went: its first and its last sign of life."""

    registered: bool


@parses(r"nvidia-nvlink: (?P<what>Nvlink Core is being initialized|Unregistered (?:the )?Nvlink Core)", "nvidia-nvlink: ")
def nvlink_core(found: re.Match[str], at: Place) -> NvlinkCore:
    """Recognise both."""
    return NvlinkCore(place=at, registered=found["what"].startswith("Nvlink"))


class HelperFailed(Event):
    """udev could not load a module beside nvidia."""

    module: str


@parses(r"Process '(?:/usr)?/s?bin/modprobe (?P<module>nvidia[-_]\w+)' failed with exit code", "modprobe nvidia")
def helper_failed(found: re.Match[str], at: Place) -> HelperFailed:
    """Recognise udev's message."""
    return HelperFailed(place=at, module=found["module"])


class FirmwareMissing(Event):
    """The kernel found no firmware file of that name: that is what error -2 says."""

    file: str
    driver: str
    address: str | None = None


@parses(
    r"(?P<driver>nvidia|amdgpu|nouveau)(?: (?P<address>[0-9a-f:.]+))?: "
    r"(?:amdgpu: )?Direct firmware load for (?P<file>\S+) failed with error -2",
    "Direct firmware load",
    lines=2,
)
def firmware_missing(found: re.Match[str], at: Place) -> FirmwareMissing:
    """Recognise the firmware loader's message."""
    return FirmwareMissing(place=at, file=found["file"], driver=found["driver"], address=found["address"])


class FatalInit(Event):
    """amdgpu gave a card up."""


@parses(
    r"amdgpu(?: [0-9a-f:.]+)?: (?:amdgpu: )?(?:Fatal error during GPU init|probe of \S+ failed)",
    "Fatal error during GPU init", "probe of ",
)  # fmt: skip
def fatal_init(found: re.Match[str], at: Place) -> FatalInit:
    """Recognise amdgpu's last word."""
    return FatalInit(place=at)


class FirmwareOther(Event):
    """The module met a firmware file of another version."""

    got: str
    expected: str


@parses(
    rf"firmware image version mismatch: got version (?P<got>{_VERSION}), expected version (?P<expected>{_VERSION})",
    "firmware image version mismatch",
    lines=3,
)
def firmware_other(found: re.Match[str], at: Place) -> FirmwareOther:
    """Recognise both versions."""
    return FirmwareOther(place=at, got=found["got"], expected=found["expected"])


class InsertFailed(Event):
    """modprobe or insmod could not load a module; `module` is `off` where an alias forbids it."""

    module: str
    reason: str | None


@parses(
    r"could not insert (?:'(?P<module>[^']+)'|module (?:\S*/)?(?P<file>[\w-]+)\.ko\S*?)(?:: (?P<reason>.+))?$|"
    r"[Ee]rror inserting (?:'|\S*/)?(?P<old>[\w-]+)(?:'|\.ko\S*)?(?: \(\S+\))?: (?:-1 )?(?P<why>.+)$",
    "could not insert", "rror inserting ",
)  # fmt: skip
def insert_failed(found: re.Match[str], at: Place) -> InsertFailed:
    """Recognise what modprobe and insmod of all ages say."""
    named = found["module"] or found["file"] or found["old"]
    return InsertFailed(place=at, module=named, reason=found["reason"] or found["why"])


class ModuleNotFound(Event):
    """There is no such module for the running kernel."""

    module: str
    kernel: str | None


@parses(
    r"Module (?P<module>nvidia[\w-]*|amdgpu) not found(?: in directory /(?:usr/)?lib/modules/(?P<kernel>\S+))?|"
    r"modprobe: (?:FATAL|ERROR): (?P<bare>nvidia[\w-]*|amdgpu) not found in directory /(?:usr/)?lib/modules/(?P<below>\S+)|"
    r"could not find module by name ?=? ?['\"](?P<named>nvidia[\w-]*|amdgpu)['\"]",
    "find module by name", "not found in directory /lib/modules",
    "not found in directory /usr/lib/modules", "FATAL: Module nvidia", "Module nvidia not found",
)  # fmt: skip
def module_not_found(found: re.Match[str], at: Place) -> ModuleNotFound:
    """Recognise what modprobe and modinfo say."""
    kernel = (found["kernel"] or found["below"] or "").rstrip(".") or None
    return ModuleNotFound(place=at, module=found["module"] or found["bare"] or found["named"], kernel=kernel)


_DIFFERS = r"\b(?:MISMATCH|differs?|is NOT|wrong|stale|old(?:er)?)\b"


class InitramfsDiffers(Event):
    """A check of the initramfs says that the module in it is not the one on disk."""


@parses(
    rf"{_DIFFERS}.{{0,60}}\binitr(?:amfs|d)\b|\binitr(?:amfs|d)\b.{{0,60}}{_DIFFERS}",
    "initramfs", "initrd",
)  # fmt: skip
def initramfs_differs(found: re.Match[str], at: Place) -> InitramfsDiffers | None:
    """Recognise a comparison of the image with the disk that speaks of the driver's module."""
    line = at.text
    return InitramfsDiffers(place=at) if re.search(r"nvidia|amdgpu", line) else None
