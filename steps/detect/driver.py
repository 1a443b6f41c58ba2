"""The accelerator driver: which is loaded, which is installed, and whether it works."""

from __future__ import annotations

import re

import msgspec

from steps.catalog.linux import in_tree_names
from steps.detect import bridges, modules, pci
from steps.detect.modules import MODINFO
from steps.detect.packages import Packages
from steps.detect.pci import Device
from steps.detect.probes import Probes
from steps.detect.run_file import leftovers, run_file
from steps.detect.smi import Smi
from steps.model.base import Record
from steps.model.hardware import Accelerator
from steps.model.software import Driver, DriverState, Flavor, Origin, Os

_PACKAGES = (
    r"(nvidia-.*|libnvidia-.*|libcuda1|cuda-drivers.*|nvidia|xserver-xorg-video-nvidia.*|linux-modules-nvidia-.*|linux-objects-nvidia-.*|"
    r"k?mod-nvidia.*|akmod-nvidia.*|dkms|amdgpu-dkms|amdgpu-core|rocm-core|rocm|hip-runtime-amd|habanalabs.*)"
)
_DRIVER_PACKAGE = re.compile(
    r"(nvidia-(driver|open|dkms|kernel|utils|headless|compute-utils)\b.*|libnvidia-(compute|gl|cfg1)\b.*|cuda-drivers.*|libcuda1|"
    r"k?mod-nvidia.*|akmod-nvidia.*|linux-modules-nvidia-.*)"
)
_OPEN_PACKAGE = (
    r"nvidia-(driver|dkms|headless|kernel-source|kernel)-\d+(-server)?-open|nvidia-open(-\d+)?|nvidia-kernel-open-dkms|"
    r"kmod-nvidia-open.*|nvidia-open-dkms"
)
_PROPRIETARY_PACKAGE = r"nvidia-(driver|dkms)-\d+(-server)?|nvidia-kernel-dkms|cuda-drivers(-\d+)?"


FABRIC = ("systemctl", "is-active", "nvidia-fabricmanager")


def driver(host: Probes, cards: tuple[Accelerator, ...], smi: Smi, packages: Packages, bus: tuple[Device, ...], *, os: Os) -> Driver:
    """Return the driver of the machine's one vendor; state "absent" where there is nothing to drive and nothing installed."""
    found = _driver(host, cards, smi, packages, wsl=os.wsl is True)
    nvidia = os.wsl is not True and any(card.vendor == "nvidia" for card in cards)
    return msgspec.structs.replace(
        found,
        modules=modules.modules(host, os.kernel, nvidia=nvidia),
        leftovers=leftovers(host) if nvidia or found.source is not None else (),
        run_file=run_file(host, found.library_version or found.kernel_version) if found.source in ("runfile", "mixed") else None,
        nouveau=modules.nouveau(host, nvidia=nvidia),
        stream=_stream(host),
        fabric_manager=_fabric_manager(host, bus),
    )


def _stream(host: Probes) -> str | None:
    """Return the module stream that dnf has enabled for the driver."""
    said = dict(re.findall(r"^(\w+) *= *(\S+)$", host.read("/etc/dnf/modules.d/nvidia-driver.module") or "", re.MULTILINE))
    return said.get("stream") if said.get("state") == "enabled" else None


def _fabric_manager(host: Probes, bus: tuple[Device, ...]) -> str | None:
    """Return systemd's word on the service that NVSwitches need."""
    if not bridges.nvswitches(bus) and FABRIC not in host.host.recorded():
        return None
    said = host.run(FABRIC).stdout.strip()
    return said if re.fullmatch(r"[a-z-]{1,20}", said) else None


def _driver(host: Probes, cards: tuple[Accelerator, ...], smi: Smi, packages: Packages, *, wsl: bool) -> Driver:
    """Return what of the driver is loaded and installed."""
    vendors = {card.vendor for card in cards if not card.integrated}
    if "nvidia" not in vendors and "amd" in vendors:
        return _amd(host, cards, packages)
    found = packages.matching(_PACKAGES)
    if "nvidia" not in vendors and "habana" in vendors:
        return _habana(host, cards, packages)
    loaded = _loaded(host)
    installed = smi.installed is True or any(_DRIVER_PACKAGE.fullmatch(package.name) for package in found)
    if not vendors and not wsl and loaded is None and not installed:
        known = pci.seen(host) or smi.installed is False
        return Driver(state="absent" if known else "unknown", packages=found)
    library = _library(host, smi, packages)
    flavor = None if wsl else _flavor(host, packages, loaded=loaded is not None)
    return Driver(
        state=_state(host, cards, smi, packages, Versions(loaded=loaded, library=library), wsl=wsl),
        kernel_version=loaded,
        library_version=library,
        flavor=flavor,
        source=_source(host, packages),
        cuda_max=smi.cuda_version,
        packages=found,
    )


def _loaded(host: Probes) -> str | None:
    """Return the version of the module in the running kernel, or `None`."""
    text = host.read("/proc/driver/nvidia/version") or ""
    found = re.search(r"Kernel Module(?: for \S+)?\s+(\d+\.\d+(?:\.\d+)?)", text)
    return found[1] if found else host.line("/sys/module/nvidia/version")


def _library(host: Probes, smi: Smi, packages: Packages) -> str | None:
    """Return the version of the user-space libraries: by their file names, else by the driver's tools, else by packages."""
    names = host.glob("/usr/lib/*-linux-gnu/libnvidia-ml.so.*.*") + host.glob("/usr/lib64/libnvidia-ml.so.*.*")
    versions = {found[1] for name in names if (found := re.search(r"\.so\.(\d+\.\d+(?:\.\d+)?)$", name))}
    if len(versions) == 1:
        return versions.pop()
    installed = {
        found[1]
        for package in packages.matching(r"libnvidia-compute(-\d+.*)?|libcuda1|libnvidia-ml1|nvidia-driver-cuda(-libs)?")
        if (found := re.match(r"(?:\d+:)?(\d+\.\d+(?:\.\d+)?)", package.version or ""))
    }
    if len(installed) == 1:
        return installed.pop()
    return smi.library_version or smi.driver_version


def _flavor(host: Probes, packages: Packages, *, loaded: bool) -> Flavor | None:
    """Return which of the two kernel modules it is: the loaded one's own words, else the one on disk, else packages."""
    text = host.read("/proc/driver/nvidia/version") or ""
    if "Open Kernel Module" in text:
        return "open"
    if "Kernel Module" in text:
        return "proprietary"
    on_disk = host.run(MODINFO).stdout
    if "license:" in on_disk:
        return modules.flavor(on_disk)
    if loaded:
        return None
    if packages.matching(_OPEN_PACKAGE):
        return "open"
    return "proprietary" if packages.matching(_PROPRIETARY_PACKAGE) else None


def _source(host: Probes, packages: Packages) -> Origin | None:
    """Return where the driver came from; a `.run` installer beside packages is a mixture."""
    packaged = bool(packages.matching(_DRIVER_PACKAGE.pattern))
    installer = any(path.endswith(("nvidia-uninstall", "nvidia-installer.log")) for path in leftovers(host))
    if packaged:
        return "mixed" if installer else "apt" if packages.manager == "apt" else "dnf"
    return "runfile" if installer else None


class Versions(Record):
    """The two halves of a driver that must fit each other."""

    loaded: str | None
    library: str | None


def _state(host: Probes, cards: tuple[Accelerator, ...], smi: Smi, packages: Packages, versions: Versions, *, wsl: bool) -> DriverState:
    loaded = versions.loaded
    nvidia = [card for card in cards if card.vendor == "nvidia"]
    if smi.trouble == "mismatch":
        return "mismatch"
    if loaded is not None and smi.trouble in ("failing", "no-devices"):
        return "failing"
    if loaded is not None and smi.hangs:
        return "failing"
    if smi.gpus or smi.driver_version:
        return "working"
    if loaded is not None:
        return _state_of_loaded(nvidia, loaded, versions.library)
    if wsl:
        return "absent" if smi.installed is False else "unknown"
    if _blocked(host):
        return "blocked"
    return _state_of_unloaded(host, nvidia, smi, packages)


def _state_of_loaded(nvidia: list[Accelerator], loaded: str, library: str | None) -> DriverState:
    """Return the state of a loaded module that no tool was asked about."""
    if library is not None and library != loaded and not loaded.startswith(f"{library}."):
        return "mismatch"
    return "failing" if nvidia and all(card.kernel_driver is None for card in nvidia) else "unknown"


_BLOCKED = re.compile(
    r"Key was rejected by service|Required key not available|Lockdown: modprobe: unsigned module loading|"
    r"Loading of unsigned module is rejected"
)


_LOCKED = re.compile(r"Lockdown: .*: unsigned module loading is restricted")


def _blocked(host: Probes) -> bool:
    """Return whether the kernel refused an unsigned module."""
    if _BLOCKED.search(host.run(("modprobe", "nvidia")).text if ("modprobe", "nvidia") in host.host.recorded() else ""):
        return True
    log = host.run(("dmesg",)).stdout
    if any("nvidia" in line for line in log.splitlines() if _BLOCKED.search(line)):
        return True
    # udev's attempts are logged without the module's name: with the module on disk and a locked kernel there is no other.
    return host.run(MODINFO).status == 0 and _LOCKED.search(log) is not None and "Secure boot enabled" in log


def _state_of_unloaded(host: Probes, nvidia: list[Accelerator], smi: Smi, packages: Packages) -> DriverState:
    """Return why no module is loaded: nothing installed, another driver in the way, or simply not loaded."""
    installed = bool(packages.matching(_DRIVER_PACKAGE.pattern)) or smi.installed is True
    module = host.run(MODINFO)
    if not installed and module.status != 0:
        told = smi.installed is False or packages.known or module.status is not None or host.exists("/sys/module/nvidia") is False
        return "absent" if told else "unknown"
    if any(card.kernel_driver in (*in_tree_names(), "vfio-pci") for card in nvidia):
        return "blocked"
    if "NVRM: The NVIDIA GPU" in (log := host.run(("dmesg",)).stdout) or "RmInitAdapter failed" in log:
        return "failing"
    return "not-loaded"


def _habana(host: Probes, cards: tuple[Accelerator, ...], packages: Packages) -> Driver:
    """Return the habanalabs driver; it works when it holds every card."""
    bound = [card.kernel_driver in ("habanalabs", "habanalabs_gaudi2") for card in cards if card.vendor == "habana"]
    version = host.line("/sys/module/habanalabs/version")
    state: DriverState = "working" if all(bound) else "not-loaded" if host.exists("/sys/module/habanalabs") is False else "failing"
    return Driver(state=state, kernel_version=version, packages=packages.matching(r"habanalabs.*"))


def _amd(host: Probes, cards: tuple[Accelerator, ...], packages: Packages) -> Driver:
    """Return the amdgpu driver; it works when it holds every card."""
    amd = [card for card in cards if card.vendor == "amd" and not card.integrated]
    loaded = host.exists("/sys/module/amdgpu")
    bound = [card.kernel_driver == "amdgpu" for card in amd]
    state: DriverState = "working" if bound and all(bound) else "not-loaded" if loaded is False else "failing" if loaded else "unknown"
    found = packages.matching(_PACKAGES)
    return Driver(
        state=state,
        kernel_version=host.line("/sys/module/amdgpu/version"),
        library_version=(host.line("/opt/rocm/.info/version") or "").partition("-")[0] or None,
        flavor="open" if loaded else None,
        source=packages.manager if any(package.name.startswith("amdgpu") for package in found) else None,
        packages=found,
    )
