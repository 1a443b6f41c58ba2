"""CUDA that does not start though the driver runs: fabric manager, UVM, compat libraries, versions, MIG."""

from __future__ import annotations

import re

from steps.detect.bridges import nvswitches
from steps.detect.pci import DEVICES, devices
from steps.doctor import numbers
from steps.doctor.events.containers import HookFailed, OperatorDriver, ToolMissing
from steps.doctor.events.cuda import CudaError, DriverOld, DriverUnseen, FabricManager, NoDevices, SymbolMissing, UvmMissing
from steps.doctor.events.driver_files import DriverFile
from steps.doctor.events.kernel import ModuleNotFound
from steps.doctor.events.libraries import CudnnVersions
from steps.doctor.events.loads import Denied
from steps.doctor.events.nvml import NvmlError
from steps.doctor.evidence import Evidence
from steps.doctor.facts.processes import running
from steps.doctor.overcome import served
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, WEAK, Answer, found, out, rule
from steps.doctor.rules.container import asked, host_works, started, unasked
from steps.doctor.told import Fact, fact


def error(seen: Evidence, number: int) -> CudaError | None:
    """Return the first CUDA error of a number."""
    return seen.first(CudaError, lambda event: event.number == number)


# --- the fabric manager ----------------------------------------------------------------------------

_SWITCHED = re.compile(
    r"\b(?:[ABHV]\d{2,3}(?:[-_ ]SXM\d?|[-_ ]\d+GB HBM\d?)|GB?[23]00|HGX|SXM\d?)\b|H100 80GB HBM3|H200|B200|B300|A800-SXM|H800"
)


_SINGLE = re.compile(r"\b(?:GeForce|Quadro|TITAN|RTX)\b", re.IGNORECASE)
"""Families of cards that no board with NVSwitches carries."""


def _switched(seen: Evidence) -> Fact | None:
    """Return a card that is of a board with NVSwitches, as its name tells."""
    card = next((card for card in seen.cards.cards if _SWITCHED.search(card.name or "")), None)
    return fact(card.name or "", card.place.source, card.place.text) if card is not None else None


def _asks_fabric(argv: tuple[str, ...]) -> bool:
    return argv[:2] in (("systemctl", "is-active"), ("systemctl", "status")) and "fabricmanager" in argv[-1]


def _service(seen: Evidence) -> Fact | None:
    """Return what systemd says of the fabric manager."""
    for argv in seen.host.forms(_asks_fabric, ("systemctl", "is-active", "nvidia-fabricmanager")):
        text = seen.host.run(argv).text.strip()
        word = re.search(r"\b(active|inactive|failed|unknown|not be found|activating)\b", text)
        if word:
            return fact(word[1], " ".join(argv), text.partition("\n")[0])
    return None


def _idle(seen: Evidence) -> Fact | None:
    """Return systemd's word that the service does not run."""
    service = _service(seen)
    return service if service is not None and service.value in ("inactive", "failed", "not be found") else None


def _managed(seen: Evidence) -> bool:
    """Return whether the switches have a manager that is no service of this system: GPU Operator's, or one that was started otherwise."""
    ready = any((state := one.at("Fabric/State")) is not None and state.value == "Completed" for one in seen.readings)
    operator = seen.host.exists("/run/nvidia/driver") is True or seen.has(OperatorDriver)
    return ready or operator or running(seen.processes, "nv-fabricmanager") is not None


@rule("fabricmanager-not-running")
def not_running(seen: Evidence) -> Answer:
    """CUDA waits for a fabric manager that does not run."""
    waiting = error(seen, 802)
    mismatch = seen.first(FabricManager, lambda event: event.says == "mismatch")
    if mismatch is not None:
        return out(mismatch)
    if waiting is None:
        nothing = seen.first(FabricManager, lambda event: event.says == "nothing-to-do")
        if nothing is not None:
            return out(nothing)
        stopped = seen.first(FabricManager, lambda event: event.says == "stopped")
        if stopped is not None:
            return found(LIKELY, stopped, variant="stopped")
        idle, chips = _idle(seen), nvswitches(devices(seen.host))
        if idle is not None and chips and seen.driver_answers and not _managed(seen):
            # Without it CUDA starts on none of these cards, whether somebody tried or not.
            return found(STRONG, idle, fact(chips[0], DEVICES, f"NVSwitch {chips[0]}"))
        failed, switched = seen.first(FabricManager, lambda event: event.says == "failed"), _switched(seen)
        return found(LIKELY, failed, switched) if failed is not None and switched is not None else None
    service = _service(seen)
    if service is not None and service.value == "active":
        return found(POSSIBLE, waiting, service, variant="active")
    return found(CERTAIN if service else STRONG, waiting, service, _switched(seen))


@rule("fabricmanager-version-mismatch")
def mismatch(seen: Evidence) -> Answer:
    """The service compares its version with the driver's, and refuses."""
    said = seen.first(FabricManager, lambda event: event.says == "mismatch")
    if said is not None:
        return found(CERTAIN, said, error(seen, 802), own=said.own or "?", driver=said.driver or "?")
    package = next((row for row in seen.packages.rows if re.match(r"(?:nvidia-)?fabric-?manager", row.name) and row.installed), None)
    loaded = next(iter(seen.versions.loaded), None)
    own = numbers.upstream(package.version) if package is not None else None
    if package is None or loaded is None or own is None or numbers.agree(own, loaded.value):
        return None
    waiting = error(seen, 802)
    return found(STRONG if waiting else POSSIBLE, package, loaded, waiting, own=own, driver=loaded.value)


@rule("fabricmanager-not-needed")
def not_needed(seen: Evidence) -> Answer:
    """There is no switch to manage."""
    said = seen.first(FabricManager, lambda event: event.says == "nothing-to-do")
    waiting = error(seen, 802)
    if said is None:
        failed, cards = seen.first(FabricManager, lambda event: event.says == "failed"), seen.cards.cards
        if failed is None or waiting is not None or not cards or not all(_SINGLE.search(card.name or card.place.text) for card in cards):
            return None
        return found(LIKELY, failed, fact(cards[0].name or cards[0].place.text, cards[0].place.source, cards[0].place.text))
    return out(waiting) if waiting is not None else found(STRONG, said)


# --- unified memory --------------------------------------------------------------------------------


@rule("uvm-hmm-breaks-cuda-init")
def hmm(seen: Evidence) -> Answer:
    """Initialisation fails with 3, which the module's use of HMM does on some kernels."""
    failed = error(seen, 3)
    if failed is None:
        return None
    waiting = error(seen, 802)
    if waiting is not None:
        return out(waiting)
    parameter = (seen.host.read("/sys/module/nvidia_uvm/parameters/uvm_disable_hmm") or "").strip()
    if parameter == "Y":
        return out(fact("Y", "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm"))
    if seen.modules.loads("nvidia_uvm") is False:
        return found(POSSIBLE - 0.1, failed)
    on = fact("N", "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm") if parameter == "N" else None
    return found(STRONG if on else LIKELY, failed, on)


def _uvm_node(seen: Evidence) -> Fact | None:
    """Return a list of the device nodes in which that of UVM is missing."""
    for argv, text in seen.nodes:
        if "/dev/nvidia0" in text and "nvidia-uvm" not in text:
            return fact("absent", " ".join(argv), next(line for line in text.splitlines() if "/dev/nvidia0" in line))
        if "nvidia-uvm" in text and "No such file" in text:
            return fact("absent", " ".join(argv), next(line for line in text.splitlines() if "nvidia-uvm" in line))
    return None


@rule("nvidia-uvm-not-ready")
def uvm(seen: Evidence) -> Answer:
    """CUDA says 999, and the module of unified memory or its node is missing or lost its state."""
    failed = error(seen, 999)
    node = _uvm_node(seen) if failed is not None else None
    unloaded = seen.modules.loads("nvidia_uvm") is False and seen.modules.loads("nvidia") is True
    module = fact("absent", "lsmod", "nvidia, but no nvidia_uvm") if unloaded else None
    woke = next((event for event in seen.all(CudaError) if re.search(r"suspend|resume", event.place.text, re.IGNORECASE)), None)
    absent = (
        seen.first(UvmMissing)
        or seen.first(ModuleNotFound, lambda event: event.module.replace("-", "_") == "nvidia_uvm")
        or seen.first(Denied, lambda event: event.module == "nvidia_uvm" and not seen.modules.loads("nvidia_uvm"))
    )
    if failed is None:
        if error(seen, 3) is not None and module is not None:
            return found(LIKELY, error(seen, 3), module)
        # Without the driver's own module, that of unified memory cannot be there either.
        base = seen.driver_answers is False or seen.has(ModuleNotFound, lambda event: event.module == "nvidia")
        return found(LIKELY, absent, module) if absent is not None and not base else None
    sure = CERTAIN if node or module or absent else LIKELY - 0.1
    return found(sure, failed, node, module, absent, woke)


# --- compat and versions ---------------------------------------------------------------------------


@rule("compat-libcuda-on-unsupported-gpu")
def compat_unsupported(seen: Evidence) -> Answer:
    """Forward compatibility was tried on a card that is not offered it."""
    tried = error(seen, 804)
    if tried is None:
        other = error(seen, 803)
        return out(other) if other is not None else None
    return found(CERTAIN, tried, *seen.cards.cards[:1], _cuda(seen))


@rule("compat-libcuda-shadows-newer-driver")
def compat_shadows(seen: Evidence) -> Answer:
    """An older libcuda is found before the driver's own."""
    combined = error(seen, 803)
    if combined is None:
        other = error(seen, 804)
        return out(other) if other is not None else None
    # The two halves of the driver itself are of two versions: that alone is refused so, without any other libcuda. Not where it answers.
    apart = seen.versions.differ and seen.driver_answers is not True
    return found(POSSIBLE if apart else STRONG, combined, started(seen))


def _cuda(seen: Evidence) -> Fact | None:
    """Return the CUDA version that the driver supports, as nvidia-smi says it."""
    version = seen.smi.cuda_version
    return fact(version, "nvidia-smi", f"CUDA Version: {version}") if version else None


@rule("driver-too-old-for-cuda")
def too_old(seen: Evidence) -> Answer:
    """The driver supports less than what is asked for."""
    said = seen.first(DriverOld, lambda event: event.found is not None or event.wanted is not None) or seen.first(DriverOld)
    hook = seen.first(HookFailed, lambda event: event.reason == "requirement")
    insufficient = seen.first(CudaError, lambda event: event.number == 35 and "cupti" not in event.place.text)
    supported = _cuda(seen)
    wanted = (said.wanted if said else None) or (hook.wanted if hook else None)
    if wanted and supported is not None and numbers.parts(wanted) <= numbers.parts(supported.value):
        return out(supported)
    told = {"supported": (said.found if said and said.found else None) or (supported.value if supported else "?"), "wanted": wanted or "?"}
    if said is not None or hook is not None:
        exact = (said is not None and said.found is not None) or (wanted is not None and supported is not None)
        return found(CERTAIN if exact else STRONG, said, hook, supported, **told)
    if insufficient is None:
        return None
    missing = _tool_missing_inside(seen)
    if missing is not None:
        return out(missing)
    return found(LIKELY, insufficient, supported, **told)


def _driver_unseen_inside(seen: Evidence) -> DriverUnseen | None:
    """Return a program's word that there is no driver, inside a container or from an image's own entry point."""
    unseen = (event for event in seen.all(DriverUnseen) if not served(seen.events, event))
    return next((event for event in unseen if event.place.in_container or "was not detected" in event.place.text), None)


def _tool_missing_inside(seen: Evidence) -> ToolMissing | None:
    return seen.first(ToolMissing, lambda event: event.place.in_container)


def _library_of_the_host(seen: Evidence) -> DriverFile | None:
    """Return the driver's library where a box shows the root of its host: it is there, and nobody mounted it where programs look."""
    return seen.first(DriverFile, lambda event: event.version is not None and "run/host/" in event.place.text)


@rule("driver-libs-not-injected")
def not_injected(seen: Evidence) -> Answer:
    """CUDA calls the driver too old where there is none: the container was not given its libraries."""
    insufficient = error(seen, 35)
    missing = _tool_missing_inside(seen)
    library = seen.nvml("library-not-found")
    inside = library if library is not None and library.place.in_container else _driver_unseen_inside(seen) or unasked(seen)
    version = next((one for one in seen.versions.loaded if one.place.in_container), None)
    if missing is None and inside is None:
        return None
    if insufficient is None and version is None:
        hosts, start = _library_of_the_host(seen), asked(seen) if isinstance(inside, NvmlError) else None
        likely = isinstance(inside, DriverUnseen) or start is not None
        return found(STRONG if host_works(seen) or hosts else LIKELY if likely else POSSIBLE, missing, inside, hosts, start)
    return found(CERTAIN if insufficient else STRONG, insufficient, missing, inside, version)


# --- libraries and MIG -----------------------------------------------------------------------------


@rule("ld-library-path-shadows-bundled-libs")
def shadowed(seen: Evidence) -> Answer:
    """A library of a wheel met an older one that the search path gives first."""
    symbol = seen.first(SymbolMissing)
    older = seen.first(CudnnVersions, lambda event: event.loaded < event.built or (event.refused and event.loaded[0] == event.built[0]))
    if symbol is None and older is None:
        return None
    path = _search_path(seen)
    outside = _outside(seen, symbol)
    if older is not None and symbol is None:
        return found(
            STRONG if older.blames_path or path else LIKELY,
            older,
            path,
            variant="cudnn",
            built=_spelt(older.built),
            loaded=_spelt(older.loaded),
        )
    return found(CERTAIN if path or outside else LIKELY, symbol, outside, path, library=(symbol.library if symbol else "") or "?")


def _spelt(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _search_path(seen: Evidence) -> Fact | None:
    text = seen.host.run(("env",)).stdout
    line = re.search(r"^LD_LIBRARY_PATH=(\S*/(?:cuda|nvidia)\S*)$", text, re.MULTILINE)
    return fact(line[1], "env", line[0]) if line else None


def _outside(seen: Evidence, symbol: SymbolMissing | None) -> Fact | None:
    """Return the line of ldd that takes the library from a toolkit's folder."""
    if symbol is None or not symbol.library:
        return None
    text = "".join(seen.host.run(argv).stdout for argv in seen.host.forms(lambda argv: argv == ("ldd",)))
    line = re.search(rf"^\s*{re.escape(symbol.library)} => (/usr/local/cuda\S*|/usr/lib\S*).*$", text, re.MULTILINE)
    return fact(line[1], "ldd", line[0].strip()) if line else None


@rule("mig-enabled-without-instances")
def mig(seen: Evidence) -> Answer:
    """A card is split, and into nothing."""
    none = seen.first(NoDevices)
    read = next((value for one in seen.readings if (value := one.at("MIG Mode/Current")) is not None and value.value == "Enabled"), None)
    text = seen.host.run(("nvidia-smi",)).stdout if seen.rehearsal or read is not None or none is not None else ""
    enabled = re.search(r"^\|[^|\n]*\|[^|\n]*\|\s+Enabled\*? +\|\s*$", text, re.MULTILINE)
    shown = fact("Enabled", "nvidia-smi", enabled[0].strip()) if enabled else read
    shown = shown or _no_instances(seen)
    if shown is None:
        return None
    listed = seen.host.run(("nvidia-smi", "-L")).stdout
    instance = re.search(r"^\s+MIG \S+ +Device.*$|^\| +\d+ +\d+ +\d+ +\d+ +\|", f"{listed}\n{text}", re.MULTILINE)
    if instance is not None:
        return out(fact("MIG", "nvidia-smi", instance[0].strip()))
    empty = "No MIG devices found" in text or ("GPU " in listed and "MIG " not in listed)
    return found(CERTAIN if none else LIKELY if empty else WEAK, shown, none)


def _no_instances(seen: Evidence) -> Fact | None:
    """Return the answer that no instance is made, which nvidia-smi gives only where cards are split."""
    for argv in seen.host.forms(lambda argv: argv[0] == "nvidia-smi" and argv[1:2] == ("mig",)):
        said = seen.host.run(argv).text
        if "No GPU instances found" in said:
            return fact("0", " ".join(argv), said.strip())
    return None
