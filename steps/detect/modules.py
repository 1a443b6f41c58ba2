"""What each installed kernel has of NVIDIA's driver, and what else on disk may stand in its way."""

from __future__ import annotations

import re
from typing import Literal

from steps.catalog.linux import InTree, in_tree
from steps.detect.places import PLACES
from steps.detect.probes import Probes
from steps.host.base import Result
from steps.host.rooted import version_key
from steps.model.software import Flavor, KernelModule

MODULES = "/lib/modules"
MODINFO = ("modinfo", "nvidia")
DKMS = ("dkms", "status")
_TREES = "/var/lib/dkms"
_MOST_KERNELS = 24
Nouveau = Literal["loaded", "blacklisted", "free"]


def ahead(host: Probes) -> None:
    """Start what is slow to answer: DKMS is a shell script that looks at every kernel."""
    if host.listdir(f"{_TREES}/nvidia") or DKMS in host.host.recorded():
        host.ahead(DKMS)


def modules(host: Probes, running: str | None, *, nvidia: bool) -> tuple[KernelModule, ...]:
    """Return an entry for each installed kernel, the newest last; empty without NVIDIA hardware or where no kernel is known."""
    if not nvidia:
        return ()
    built = _dkms(host)
    listed = [name for name in host.listdir(MODULES) or () if name[:1].isdigit()]
    asked = running is not None and host.run(MODINFO).status is not None
    names = {*listed, *built, *((running,) if running and asked else ())}
    kernels = sorted(names, key=version_key)[-_MOST_KERNELS:]
    there = {kernel: _on_disk(host, kernel, listed=kernel in listed) for kernel in kernels}
    host.ahead(*(modinfo(kernel) for kernel in kernels if kernel != running and there[kernel]))
    return tuple(_module(host, kernel, built.get(kernel), present=there[kernel], runs=kernel == running) for kernel in kernels)


def modinfo(kernel: str) -> tuple[str, ...]:
    """Return the question about a kernel that does not run."""
    return ("modinfo", "-k", kernel, "nvidia")


def _on_disk(host: Probes, kernel: str, *, listed: bool) -> bool | None:
    """Return whether the kernel has the module; `None` where its folder was not seen."""
    if not listed or host.listdir(f"{MODULES}/{kernel}") is None:
        return None
    return any(host.glob(f"{MODULES}/{kernel}/{place}/nvidia.ko*") for place in PLACES)


def _module(host: Probes, kernel: str, dkms: str | None, *, present: bool | None, runs: bool) -> KernelModule:
    told = host.run(MODINFO) if runs else host.run(modinfo(kernel)) if present else Result()
    found = told.status in (0, None) and ("vermagic:" in told.stdout or "license:" in told.stdout)
    return KernelModule(
        kernel=kernel,
        present=True if found else present if present is not None else False if runs and told.status == 1 else None,
        version=_field(told.stdout, "version") if found else None,
        flavor=flavor(told.stdout) if found else None,
        signer=_field(told.stdout, "signer") if found else None,
        dkms=dkms,
        headers=_headers(host, kernel),
    )


def _field(text: str, name: str) -> str | None:
    found = re.search(rf"^{name}:[ \t]*(\S.*?)[ \t]*$", text, re.MULTILINE)
    return found[1] if found else None


def flavor(text: str) -> Flavor | None:
    """Return which of the two kinds of module `modinfo` describes, by its licence."""
    license_ = _field(text, "license")
    if license_ is None:
        return None
    return "open" if "GPL" in license_ else "proprietary" if "NVIDIA" in license_ else None


def _headers(host: Probes, kernel: str) -> bool | None:
    """Return whether modules can be built for the kernel: a package of headers hangs its folder behind this link."""
    if not host.listdir(f"{MODULES}/{kernel}"):
        return None
    return host.exists(f"{MODULES}/{kernel}/build")


_NEW_FORM = re.compile(r"^nvidia[\w-]*/(\S+), ([^,\s]+), [^:]*: (\w+)", re.MULTILINE)
_OLD_FORM = re.compile(r"^nvidia[\w-]*, ([^,\s]+), ([^,\s]+), [^:]*: (\w+)", re.MULTILINE)
_ORDER = ("added", "built", "installed")


def _dkms(host: Probes) -> dict[str, str]:
    """Return DKMS's word on NVIDIA's module by kernel; of several versions the one that got furthest."""
    ahead(host)
    text = host.run(DKMS).stdout if DKMS in host.asked() else ""
    found: dict[str, str] = {}
    for _, kernel, state in (*_NEW_FORM.findall(text), *_OLD_FORM.findall(text)):
        if state in _ORDER and _ORDER.index(state) >= _ORDER.index(found.get(kernel, "added")):
            found[kernel] = state
    return found


def spelt(row: InTree) -> str:
    """Return a pattern for a module's name: underscores and dashes are one to the kernel."""
    return row.module.replace("_", "[-_]")


def kept_by_setting(row: InTree, text: str) -> bool:
    """Return whether a file of modprobe's keeps the module out."""
    name = spelt(row)
    return re.search(rf"^\s*(?:blacklist\s+{name}\b|install\s+{name}\s+/\S*/(?:false|true)\b)", text, re.MULTILINE) is not None


def kept_by_option(row: InTree, line: str) -> bool:
    """Return whether the kernel's command line keeps the module out."""
    off = f"|{re.escape(row.off)}" if row.off else ""
    lists = "modprobe.blacklist|module_blacklist|rd.driver.blacklist".replace(".", r"\.")
    return re.search(rf"(?:{lists})=(?:[\w,-]*,)?{spelt(row)}\b{off}", line) is not None


def nouveau(host: Probes, *, nvidia: bool) -> Nouveau | None:
    """Return what becomes of the kernel's own drivers; `None` without NVIDIA hardware or where the settings were not seen.

    Kept out is said of nouveau, which every kernel has; nova is there only where somebody built it.
    """
    if not nvidia:
        return None
    if any(host.exists(f"/sys/module/{row.module}") for row in in_tree()):
        return "loaded"
    usual = in_tree()[0]
    if kept_by_option(usual, host.read("/proc/cmdline") or ""):
        return "blacklisted"
    files = [path for folder in ("/etc/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d") for path in host.glob(f"{folder}/*.conf")]
    if any(kept_by_setting(usual, host.read(path) or "") for path in files):
        return "blacklisted"
    return "free" if host.listdir("/etc/modprobe.d") is not None else None
