"""What the CUDA runtime and the fabric manager say."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place


class CudaError(Event):
    """CUDA refused to start or to go on, by number (the driver's and the runtime's are the same but for a few)."""

    number: int


_NUMBERS: tuple[tuple[str, int], ...] = (
    ("system not yet initialized", 802),
    ("system_not_ready", 802),
    ("systemnotready", 802),
    ("forward compatibility was attempted", 804),
    ("compat_not_supported_on_device", 804),
    ("unsupported display driver", 803),
    ("system_driver_mismatch", 803),
    ("systemdrivermismatch", 803),
    ("insufficient for cuda runtime", 35),
    ("insufficientdriver", 35),
    ("driver version is insufficient", 35),
    ("init failure: 3", 3),
    ("cuda_error_not_initialized", 3),
    ("cudaerrorinitializationerror", 3),
    ("cuda driver initialization failed", 3),
    ("initialization error", 3),
    ("cuinit failed: unknown", 999),
    ("unknown error", 999),
    ("cuda_error_unknown", 999),
    ("cudaerrorunknown", 999),
)
_OLDER = {30: 999}
"""Numbers that CUDA gave the runtime's errors before 10.1, and what it calls them since."""

_BEFORE = (
    *(f"{word}{then}" for word in ("rror", "RROR") for then in (" ", "=", ": ", " (", "(", " code ", " code: ", " code=")),
    *(f"code{then}" for then in (" ", "=", ": ", "(")),
    "turned ", "turned: ", "ailed: ", "ailed with ", "ailure ", "ailure: ", "uccess (",
)  # fmt: skip
"""What programs write before the number of an error."""


@parses(
    r"system not yet initialized|CUDA_ERROR_SYSTEM_NOT_READY|cudaErrorSystemNotReady|"
    r"forward compatibility was attempted on non supported HW|"
    r"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE|unsupported display driver ?/ ?cuda driver combination|CUDA_ERROR_SYSTEM_DRIVER_MISMATCH|"
    r"cudaErrorSystemDriverMismatch|CUDA driver version is insufficient|cudaErrorInsufficientDriver|cuda driver library init failure: 3|"
    r"CUDA_ERROR_NOT_INITIALIZED|cudaErrorInitializationError|CUDA_ERROR_UNKNOWN|cudaErrorUnknown|"
    r"CUDA (?:initialization|unknown error)[^\n]{0,60}unknown error|CUDA unknown error|"
    r"(?:initiali[sz]e CUDA|cuda error) ?: ?(?:unknown error|initialization error)|cuInit failed: unknown|"
    r"CUDA driver initialization failed|(?:cuda\w*|cuInit\w*)[^\n]{0,60}(?<!cli:[ ])initialization error|"
    r"(?:\b3\)?\W{1,4}|-> ?)initialization error|"
    r"(?:error|returned|code|failed|failure|cudaSuccess|cuInit\D{0,20})\W{0,3}(?P<number>802|803|804|999)\b|"
    r"(?:CUDA (?:error|failure)(?: code)?|CUDA initialization failure with error|"
    r"(?:cuInit|cudaGetDevice(?:Count)?)\b[^\n]{0,20}?(?:returned|failed|error|err|->))\W{0,4}(?P<plain>35?)\b(?!\.\d)|"
    r"(?:CUDA (?:error|failure)(?: code)?|(?:cuInit|cudaGetDevice(?:Count)?)\b[^\n]{0,20}?(?:returned|failed|error|err))"
    r"\W{0,4}(?P<older>30)\b(?!\.\d)|"
    r"\b(?:30|999)\)? ?(?::|->|\() ?unknown error",
    "ystem not yet", "SYSTEM_NOT_READY", "SystemNotReady", "orward compatibility", "COMPAT_NOT_SUPPORTED", "unsupported display driver",
    "DRIVER_MISMATCH", "DriverMismatch", "version is insufficient", "InsufficientDriver", "init failure: 3", "ERROR_NOT_INITIALIZED",
    "InitializationError", "ERROR_UNKNOWN", "ErrorUnknown", "CUDA unknown error", "CUDA initialization", "cuInit",
    "unknown error", "initialization error", "CUDA driver init", "cudaGetDevice", "CUDA error", "CUDA failure",
    *(f"{before}{number}" for before in _BEFORE for number in (802, 803, 804, 999)),
    flags=re.IGNORECASE,
)  # fmt: skip
def cuda_error(found: re.Match[str], at: Place) -> CudaError | None:
    """Recognise an error by its name, its sentence or its number beside the word."""
    if found["older"]:
        return CudaError(place=at, number=_OLDER[int(found["older"])])
    if found["plain"]:
        return CudaError(place=at, number=int(found["plain"]))
    if found["number"]:
        return CudaError(place=at, number=int(found["number"])) if re.search("cu(?:da|Init|BLAS)|Error|error|returned", at.text) else None
    text = found[0].lower()
    return next((CudaError(place=at, number=number) for words, number in _NUMBERS if words in text), None)


class DriverOld(Event):
    """A program says that the driver is too old; `found` is the CUDA version that the driver supports, `wanted` what is needed."""

    found: str | None = None
    wanted: str | None = None


@parses(
    r"NVIDIA driver on your system is too old \(found version (?P<coded>\d{4,5})\)|"
    r"unsatisfied condition: cuda ?>= ?(?P<wanted>\d+\.\d+)|"
    r"unsupported CUDA version: driver (?P<has>[1-9]\d*\.\d+) < image (?P<image>\d+\.\d+)|"
    r"requires? (?:at least )?CUDA(?: driver)?(?: version)? ?>?=? ?(?P<needs>\d+\.\d+)[^\n]{0,60}driver|"
    r"the provided PTX was compiled with an unsupported toolchain|CUDA_ERROR_UNSUPPORTED_PTX_VERSION|\[222\] Call to cu\w+ results in|"
    r"ptxas application ptx input[^\n]{0,40}Unsupported \.version|"
    r"built for NVIDIA Driver Release [\d.]+ or later, but version [\d.]+ was detected|"
    r"CUDA (?P<julia>\d+\.\d+) is not supported by\s+your driver \(which supports up to (?P<upto>\d+\.\d+)\)|"
    r"only supports NVIDIA drivers for CUDA (?P<least>\d+)\.x[^\n(]{0,40}\(yours is for CUDA (?P<yours>\d+\.\d+)|"
    r"driver (?:version )?(?:is )?too old[^\n]{0,60}",
    "is too old", "too old", "unsatisfied condition", "unsupported CUDA version", "unsupported toolchain", "UNSUPPORTED_PTX",
    "[222] Call", "ptxas application ptx", "requires CUDA", "require CUDA", "built for NVIDIA Driver",
    "is not supported by", "only supports NVIDIA drivers",
    lines=2,
)  # fmt: skip
def driver_old(found: re.Match[str], at: Place) -> DriverOld | None:
    """Recognise PyTorch's number (1000 x major + 10 x minor), an image's requirement, the compiler's complaint and Julia's sentences."""
    if "gpu" in at.text.lower() and "too old" in at.text.lower() and "driver" not in at.text.lower():
        return None
    if found["least"] and int(found["yours"].partition(".")[0]) >= int(found["least"]):
        return None  # a driver newer than a version of CUDA.jl knows
    coded = found["coded"]
    version = f"{int(coded) // 1000}.{int(coded) % 1000 // 10}" if coded else found["has"] or found["upto"] or found["yours"]
    least = f"{found['least']}.0" if found["least"] else None
    return DriverOld(place=at, found=version, wanted=found["wanted"] or found["image"] or found["needs"] or found["julia"] or least)


class DriverUnseen(Event):
    """A program found no driver: neither its library nor a module that answers."""


@parses(
    r"Found no NVIDIA driver on your system|The NVIDIA Driver was not detected\. *GPU functionality|"
    r"libcuda\.so(?:\.1)?['\"]?: cannot open shared object file|libcuda\.so(?:\.1)? => not found|"
    r"Could not load dynamic library 'libcuda\.so\.1'|Couldn['’]t open CUDA library libcuda\.so|CUDA driver library cannot be found|"
    r"kernel driver does not appear to be running on this host",
    "no NVIDIA driver on your", "NVIDIA Driver was not detected", "libcuda.so", "driver library cannot be", "kernel driver does not appear",
)  # fmt: skip
def driver_unseen(found: re.Match[str], at: Place) -> DriverUnseen:
    """Recognise PyTorch, the entry point of NVIDIA's images, the loader, TensorFlow and Numba."""
    return DriverUnseen(place=at)


class ContextForbidden(Event):
    """A program may not make a context on a card that it had listed: the device is closed to it (CUDA's error 800)."""


@parses(
    r"failed to get device context 800|(?:cuCtxCreate|cuDevicePrimaryCtxRetain)\w*[^\n]{0,40}(?:CUDA_ERROR_NOT_PERMITTED|"
    r"(?:[Ee]rror|[Ff]ailed|returned)[^\n\w]{1,4}(?:(?:code|with) )?800\b)",
    "device context 800", "cuCtxCreate", "cuDevicePrimaryCtxRetain",
)  # fmt: skip
def context_forbidden(found: re.Match[str], at: Place) -> ContextForbidden:
    """Recognise ollama's number and the driver's own name; in the capture of a stream the same number means something else."""
    return ContextForbidden(place=at)


class UvmMissing(Event):
    """A program could not load the module of unified memory, or did not find its node."""


@parses(
    r"Could not load UVM kernel module|/dev/nvidia-uvm\b[^\n]{0,40}(?:[Nn]o such (?:file|device)|ENOENT)|"
    r"(?:stat|open|mknod)\w*[^\n]{0,20}/dev/nvidia-uvm: [Nn]o such",
    "load UVM kernel module", "/dev/nvidia-uvm",
)  # fmt: skip
def uvm_missing(found: re.Match[str], at: Place) -> UvmMissing:
    """Recognise container engines and traces of system calls."""
    return UvmMissing(place=at)


class SymbolMissing(Event):
    """A library of a wheel met an older sister: a symbol is not there; `library` is where it was looked for."""

    symbol: str
    library: str


@parses(
    r"lib(?P<user>cu\w+|nv\w+|torch\w*|cudnn\w*)\.so[\d.]*: "
    r"(?:undefined symbol: (?P<symbol>\w+)(?:, version (?P<library>lib\w+\.so\.\d+))?|"
    r"symbol (?P<unlinked>\w+),? version (?P<sister>lib\w+\.so\.\d+) not defined in file)|"
    r"CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH",
    "undefined symbol: ", "not defined in file", "SUBLIBRARY_VERSION_MISMATCH",
)  # fmt: skip
def symbol_missing(found: re.Match[str], at: Place) -> SymbolMissing:
    """Recognise the dynamic linker's two wordings about CUDA's libraries, and cuDNN 9's own check of its parts."""
    if found["user"] is None:
        return SymbolMissing(place=at, symbol="", library="libcudnn.so.9")
    return SymbolMissing(place=at, symbol=found["symbol"] or found["unlinked"], library=found["library"] or found["sister"] or "")


class FabricManager(Event):
    """What the fabric manager's service says: "mismatch" of versions, "nothing-to-do", "failed", "stopped" by its configuration."""

    says: str
    own: str | None = None
    driver: str | None = None


@parses(
    r"(?:fabric ?manager|nvidia-fabricmanager\S*|NVIDIA GPU driver interface)[^\n]{0,90}?version (?P<own>\d{3}(?:\.\d+)+)"
    r"[^\n]{0,80}?(?:do(?:es)?n['’]t match|do(?:es)? not match|mismatch|not compatible)[^\n]{0,80}?version (?P<driver>\d{3}(?:\.\d+)+)|"
    r"nvidia-nvswitch\d*: Version mismatch, kernel version (?P<kernel>\d{3}(?:\.\d+)+) user version (?P<user>\d{3}(?:\.\d+)+)|"
    r"NV_WARN_NOTHING_TO_DO|(?P<none>no NVSwitch|NVSwitch\w* (?:device )?not (?:found|present)|"
    r"Detected Pre-NVL5 system.{0,200}NOTHING_TO_DO)|"
    r"(?:don't match|do not match|doesn't match|does not match|version mismatch)[^\n]{0,60}fabric ?manager|"
    r"fabric ?manager[^\n]{0,80}(?:don't match|do not match|doesn't match|does not match|version mismatch)",
    "abric manager", "abricmanager", "abricManager", "abric Manager", "NOTHING_TO_DO", "GPU driver interface version", "NVSwitch",
    "nvidia-nvswitch",
    flags=re.IGNORECASE,
)  # fmt: skip
def fabric_manager(found: re.Match[str], at: Place) -> FabricManager:
    """Recognise the two versions, or that there is no switch."""
    text = found[0].lower()
    if "nothing_to_do" in text or found["none"]:
        return FabricManager(place=at, says="nothing-to-do")
    return FabricManager(place=at, says="mismatch", own=found["own"] or found["user"], driver=found["driver"] or found["kernel"])


@parses(
    r"Job for nvidia-fabricmanager\.service failed|nvidia-fabricmanager\.service: (?:Failed with result|Unit entered failed)|"
    r"Failed to start [^\n]{0,40}fabric ?manager",
    "nvidia-fabricmanager.service", "abric manager", "abricmanager", "abricManager", "abric Manager", "FabricManager",
    flags=re.IGNORECASE,
)  # fmt: skip
def fabric_manager_failed(found: re.Match[str], at: Place) -> FabricManager:
    """Recognise systemd's word for a service that did not start."""
    return FabricManager(place=at, says="failed")


@parses(
    r"fabric ?manager config file item: \S+ has an invalid value|Unknown option: \S*fabricmanager\.cfg",
    "config file item: ",
    "fabricmanager.cfg",
)
def fabric_manager_stopped(found: re.Match[str], at: Place) -> FabricManager:
    """Recognise a configuration that this release does not understand, and options that its start script does not know."""
    return FabricManager(place=at, says="stopped")


class NoDevices(Event):
    """A program of CUDA, or of HIP, found no device."""


@parses(
    r"No CUDA devices(?: found)?|No (?:CUDA|HIP) GPUs are available|no (?:CUDA|ROCm)-capable device|"
    r"There is no device supporting CUDA|(?:CUDA|HIP)_ERROR_NO_DEVICE|(?:cuda|hip)ErrorNoDevice",
    "No CUDA devices",
    "no CUDA-capable",
    "no ROCm-capable",
    "no device supporting",
    "ERROR_NO_DEVICE",
    "ErrorNoDevice",
    "No CUDA GPUs",
    "No HIP GPUs",
)
def no_devices(found: re.Match[str], at: Place) -> NoDevices:
    """Recognise error 100."""
    return NoDevices(place=at)
