"""The installed system: distribution, kernel, C library, compiler, and what it runs inside of."""

from __future__ import annotations

import re

from steps.catalog import stack
from steps.detect.packages import Packages
from steps.detect.probes import Probes
from steps.host.release import Release, release
from steps.model.software import Os

ASKED = (("uname", "-a"), ("gcc", "--version"))
_VIRTUALIZATION = ("systemd-detect-virt",)
_ARCH = re.compile(r"\b(x86_64|aarch64|ppc64le|riscv64|s390x|i[3-6]86|armv[67]l)\b")


def ahead(host: Probes) -> None:
    """Start what takes its time."""
    host.ahead(*ASKED, _hypervisor_question(host))


def system(host: Probes, packages: Packages) -> Os:
    """Return the facts about the operating system."""
    told = release(host.host)
    kernel = _kernel(host)
    wsl = None if kernel is None else bool(re.search(r"microsoft.*wsl|-Microsoft$", kernel, re.IGNORECASE))
    virtualization = _virtualization(host, wsl=wsl is True)
    return Os(
        id=told.id,
        version=told.version,
        codename=told.codename,
        name=told.name,
        kernel=kernel,
        arch=_arch(host),
        glibc=_glibc(host, packages, told),
        gcc=_gcc(host),
        init=host.line("/proc/1/comm"),
        virtualization=virtualization,
        container=container(host),
        wsl=wsl,
    )


def _kernel(host: Probes) -> str | None:
    """Return the running kernel's release (of a mounted system: the newest installed one)."""
    told = host.line("/proc/sys/kernel/osrelease")
    if told is not None:
        return told
    found = re.match(r"Linux version (\S+)", host.read("/proc/version") or "")
    if found is None and host.host.root == "/":
        found = re.match(r"Linux \S+ (\d\S*)", host.run(("uname", "-a")).stdout) or re.match(r"(\d\S+)", host.run(("uname", "-r")).stdout)
    return found[1] if found else None


def _arch(host: Probes) -> str | None:
    words = _ARCH.findall(host.run(("uname", "-a")).stdout)
    return words[-1] if words else None


def _gcc(host: Probes) -> str | None:
    """Return the version that the compiler ends its first line with; Debian adds a date behind it."""
    result = host.run(("gcc", "--version"))
    found = re.search(r"^gcc\b.*?\)?\s(\d+\.\d+(?:\.\d+)?)(?:\s|$)", re.sub(r"\([^()]*\)", "()", result.stdout.partition("\n")[0]))
    return found[1] if found and result.status in (0, None) else None


def _glibc(host: Probes, packages: Packages, told: Release) -> str | None:
    """Return the C library's version from the package database, else from `ldd`, else as the distribution ships it."""
    for name in ("libc6", "glibc"):
        found = re.match(r"(?:\d+:)?(\d+\.\d+)", packages.version(name) or "")
        if found:
            return found[1]
    result = host.run(("ldd", "--version"))
    printed = re.search(r"(?:GLIBC|GNU libc).*?\s(\d+\.\d+)\s*$", result.stdout.partition("\n")[0])
    if printed:
        return printed[1]
    # A release of a distribution never changes its C library; only rolling ones do, and those have no row.
    return stack.glibc_of(told.id, told.version)


_CONTAINERS = frozenset(("docker", "podman", "lxc", "lxc-libvirt", "systemd-nspawn", "openvz", "rkt", "proot", "pouch", "container-other"))
"""What `systemd-detect-virt` calls a container, which it names before the machine below."""
_HYPERVISORS = (
    (r"KVM|QEMU|Standard PC|RHEV|OpenStack|Nutanix|DigitalOcean", "kvm"),
    (r"Google", "google"),
    (r"Amazon EC2", "amazon"),
    (r"VMware", "vmware"),
    (r"innotek|VirtualBox", "oracle"),
    (r"Microsoft Corporation.*Virtual Machine", "microsoft"),
    (r"Xen", "xen"),
    (r"Parallels", "parallels"),
    (r"Bochs", "bochs"),
)


def _virtualization(host: Probes, *, wsl: bool) -> str | None:
    """Return the hypervisor as `systemd-detect-virt` spells it, "none" for bare metal."""
    if wsl:
        return "wsl"
    for argv in (_hypervisor_question(host), (*_VIRTUALIZATION, "--vm"), _VIRTUALIZATION):
        word = host.run(argv).stdout.strip()
        if re.fullmatch(r"[a-z0-9-]+", word) and word not in _CONTAINERS:
            return word
    flags = re.search(r"^flags\s*:(.*)$", host.read("/proc/cpuinfo") or "", re.MULTILINE)
    if flags is not None and "hypervisor" not in flags[1].split():
        return "none"
    names = " ".join(host.line(f"/sys/class/dmi/id/{name}") or "" for name in ("sys_vendor", "product_name", "bios_vendor"))
    found = next((kind for pattern, kind in _HYPERVISORS if re.search(pattern, names)), None)
    return found or ("vm-other" if flags is not None else None)


def _hypervisor_question(host: Probes) -> tuple[str, ...]:
    """Return how to ask for the hypervisor; where a container is known to stand in front of it, past that."""
    return _VIRTUALIZATION if _marked_container(host) is None else (*_VIRTUALIZATION, "--vm")


def _marked_container(host: Probes) -> str | None:
    """Return the container that says itself which one it is."""
    marked = next((kind for path, kind in _MARKS if host.exists(path)), None)
    return marked or host.line("/run/systemd/container")


_MARKS = (
    ("/.dockerenv", "docker"),
    ("/run/.containerenv", "podman"),
    ("/var/run/secrets/kubernetes.io", "kubernetes"),
    ("/.singularity.d", "apptainer"),
)
"""What the engines leave in a container; Kubernetes' own engines leave nothing but the account of the pod."""


def container(host: Probes) -> str | None:
    """Return the container we are in, "none" when the root file system is a real one."""
    told = _marked_container(host)
    if told is not None:
        return told
    word = host.run(_VIRTUALIZATION).stdout.strip()
    if word in _CONTAINERS:
        return word
    mounts = host.read("/proc/self/mounts") or host.read("/proc/mounts") or ""
    root = re.search(r"^\S+ / (\S+) ", mounts, re.MULTILINE)
    return "none" if root is not None and root[1] not in ("overlay", "aufs", "fuse-overlayfs") else None


def headers(host: Probes, kernel: str | None) -> bool | None:
    """Return whether the headers that modules are built with are here; `None` where the kernel's modules could not be seen."""
    modules = f"/lib/modules/{kernel}"
    names = host.listdir(modules) if kernel else None
    if names is None or "build" in names:
        return host.exists(f"{modules}/build/Makefile") if names else None
    # A capture may hold a few files of the folder only; a listing that is whole names these.
    return False if {"kernel", "modules.dep"} <= set(names) else None
