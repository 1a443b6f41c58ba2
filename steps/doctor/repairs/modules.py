"""Repairs of the kernel's half: a module that is old, missing, of the wrong kind, or not trusted."""

from __future__ import annotations

import re

from steps.catalog.repairs import headers as header_rows
from steps.catalog.repairs import tools
from steps.doctor import numbers
from steps.doctor.diagnosis import Step
from steps.doctor.events.dkms import KernelBuiltBy
from steps.doctor.evidence import Evidence
from steps.doctor.facts.modules import Dkms
from steps.doctor.repairs.base import Plan, apt, aside, back, install, manager_of, not_offered, person, proof, reboot, repairs, run, tool
from steps.doctor.repairs.halves import as_failed, finish, half
from steps.doctor.repairs.plain import is_name
from steps.doctor.rules.base import Candidate
from steps.host.rooted import version_key
from steps.model.action import UndoStep
from steps.model.base import phrase

_STACK = ("nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia_peermem", "nvidia")
"""The modules of the driver, in the order in which they can be unloaded."""


# --- what other modules use -----------------------------------------------------------------------


def kernel_of(seen: Evidence, candidate: Candidate | None = None) -> str | None:
    """Return the kernel that a module is needed for: the diagnosis's, else the running one."""
    told = str(candidate.params.get("kernel", "")) if candidate else ""
    if re.fullmatch(r"\d+\.\d+[\w.+~-]*", told):
        return told
    return seen.system.kernel.value if seen.system.kernel else None


def afterwards(seen: Evidence) -> Step:
    """Return what brings the module on disk into the kernel: it is loaded anew where nothing uses the cards, else the machine reboots."""
    loaded = _idle(seen)
    if loaded is None:
        return reboot()
    unload = run("reload", "modprobe", "-r", *loaded, live=True)
    # What was there besides is there again: nobody else loads the one for InfiniBand, or the one of the screen.
    load = run("load", "modprobe", "--all", *reversed(loaded), live=True)
    return Step(says=phrase("repair.step.reload"), command=unload.command, actions=(*unload.actions, *load.actions), live=True)


def _idle(seen: Evidence) -> tuple[str, ...] | None:
    """Return the loaded modules of the driver when only they use each other; `None` when somebody else does, or nobody knows."""
    text = seen.host.read("/proc/modules") or ""
    found = {line[0]: line for line in (row.split() for row in text.splitlines()) if line and line[0] in _STACK}
    if "nvidia" not in found:
        return None
    for line in found.values():
        by = [name for name in line[3].split(",") if name not in ("-", "")]
        if not line[2].isdigit() or int(line[2]) > len(by) or not set(by) <= set(found):
            return None
    return tuple(name for name in _STACK if name in found)


def first_start(seen: Evidence) -> Step:
    """Return what starts a module that was not there: it is loaded, unless another driver has the cards."""
    return reboot() if seen.modules.loads("nouveau") else run("load", "modprobe", "nvidia", live=True)


def entries(seen: Evidence) -> tuple[Dkms, ...]:
    """Return the driver's lines of DKMS."""
    return tuple(line for line in seen.modules.dkms or () if line.module.startswith("nvidia"))


def built(seen: Evidence, kernel: str | None) -> tuple[Step, ...]:
    """Return what builds the module of the installed packages for a kernel, in place of what is there for it.

    Without DKMS the packages bring the module ready: then they are installed again.
    """
    mine, packages = entries(seen), (*seen.packages.driver("module"), *seen.packages.driver("library", "tool"))
    wanted = next((row.driver for row in packages if row.driver), None)
    # An entry of another version than the packages' is what they left behind, and would be the old module once more.
    target = next((line for line in mine if wanted is None or numbers.agree(line.version, wanted)), None)
    if target is None or kernel is None or not (is_name(target.version) and is_name(kernel)):
        return (*reinstalled(seen, "module"),)
    stale = next((line for line in mine if line.kernel == kernel and line.state == "installed" and line.version != target.version), None)
    one = f"{target.module}/{target.version}"
    build = run(
        "build",
        *("dkms", "install", "--force", one, "-k", kernel),
        undo=_taken_out(seen, target.module, target.version, kernel),
        quiet=720,
        module=one,
        kernel=kernel,
    )
    if stale is None:
        return (build,)
    old = f"{stale.module}/{stale.version}"
    away = run(
        "old-module-away",
        *("dkms", "uninstall", old, "-k", kernel),
        undo=(back("dkms", "install", "--force", old, "-k", kernel),),
        module=old,
        kernel=kernel,
    )
    return (away, build)


def _taken_out(seen: Evidence, module: str, version: str, kernel: str, *, tolerant: bool = False) -> tuple[UndoStep, ...]:
    """Return what takes a module out of a kernel again; nothing where DKMS says that it was in there before."""
    there = any((line.module, line.version, line.kernel, line.state) == (module, version, kernel, "installed") for line in entries(seen))
    return () if there else (back("dkms", "uninstall", f"{module}/{version}", "-k", kernel, tolerant=tolerant),)


def reinstalled(seen: Evidence, *roles: str) -> tuple[Step, ...]:
    """Return what installs the driver's packages again in the version they have: files that were overwritten are theirs again."""
    manager = manager_of(seen)
    found = seen.packages.driver(*roles)  # type: ignore[arg-type]  # the roles are written here
    names = tuple(dict.fromkeys(_exact(row.name, row.version, row.arch, manager) for row in found))
    if manager == "apt" and names:
        return (apt("reinstall", "--reinstall", "--no-remove", "install", *names),)
    if manager == "dnf" and names:
        return (run("reinstall", "dnf", "-y", "reinstall", *names, quiet=300),)
    if manager == "pacman" and names:
        # It has no other version than the lists: where these are newer it would be half an upgrade.
        return (person("reinstall", "pacman", "-S", *names),)
    return (person("reinstall"),)


def _exact(name: str, version: str, arch: str | None, manager: str | None) -> str:
    foreign = f":{arch}" if arch in ("i386", "armhf") else ""
    return f"{name}{foreign}={version}" if manager == "apt" else name


def images(seen: Evidence) -> tuple[Step, ...]:
    """Return what writes the initramfs of every kernel anew; nothing on a system that is seen to make none.

    A person's where it is made by another program than the distribution's usual one: that one alone knows where it belongs.
    """
    step, row = tool("initramfs", "initramfs", manager_of(seen)), tools()["initramfs"]
    if seen.rehearsal or not step.command or _there(seen, step.command[0]):
        return (step,)
    return (person("initramfs"),) if any(_there(seen, argv[0]) for argv in (row.apt, row.dnf, row.pacman)) else ()


def _there(seen: Evidence, program: str) -> bool:
    return any(seen.host.exists(f"{at}/{program}") for at in ("/usr/sbin", "/usr/bin"))


# --- old, missing, mixed --------------------------------------------------------------------------


@repairs("stale-module-on-disk", "kernel-modules-from-two-drivers", "gdrdrv-linked-to-stub")
def stale(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the build of the installed version in place of the old file, and its way into the kernel."""
    linked = [line for line in seen.modules.dkms or () if line.module == "gdrdrv"] if "needs" in candidate.params else []
    kernel = kernel_of(seen, candidate)
    if linked and kernel:
        one = f"gdrdrv/{linked[0].version}"
        again = run("build", "dkms", "install", "--force", one, "-k", kernel, quiet=300, module=one, kernel=kernel)
        return Plan(steps=(again, run("load-gdrdrv", "modprobe", "gdrdrv", live=True)), verify=proof("dkms"))
    return Plan(steps=(*built(seen, kernel), *images(seen), afterwards(seen)), verify=proof("module"))


@repairs("no-module-for-running-kernel")
def missing(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the build for the running kernel, or the package that has it ready."""
    kernel, manager = kernel_of(seen, candidate), manager_of(seen)
    other = _ready_kernel(seen, kernel)
    if other and seen.host.exists(f"/lib/modules/{kernel}") is False:
        # An upgrade took the running kernel away, and the next start takes the one that it brought.
        return Plan(steps=(reboot(),), verify=proof("smi"))
    ready = next(iter(seen.packages.named(r"linux-modules-nvidia-\d+.*")), None)
    if entries(seen):
        steps = built(seen, kernel)
    elif ready is not None and kernel:
        kind = re.match(r"linux-modules-nvidia-\d+(?:-server)?(?:-open)?", ready.name)
        steps = (install("modules-for-kernel", manager, f"{kind[0] if kind else ready.name}-{kernel}", kernel=kernel),)
    elif manager == "dnf" and seen.packages.named(r"akmod-nvidia.*") and kernel:
        steps = (run("build-akmod", "akmods", "--force", "--kernels", kernel, quiet=720, kernel=kernel),)
    elif seen.packages.named(r"nvidia-(kernel-(open-)?dkms|dkms-.*|(open-)?dkms)"):
        steps = reinstalled(seen, "module")
    elif manager == "pacman" and seen.packages.named(r"nvidia(-open)?"):
        steps = (install("with-dkms", manager, "nvidia-open-dkms" if seen.packages.named("nvidia-open") else "nvidia-dkms"),)
    else:
        steps = (person("with-dkms-anew", "bringup", "apply"),)
    sooner = (person("other-kernel", kernel=other),) if other else ()
    return Plan(steps=(*sooner, *steps, *images(seen), first_start(seen)), verify=proof("smi"))


def _ready_kernel(seen: Evidence, running: str | None) -> str | None:
    """Return a kernel to start in place of the running one, which has the module already; `None` without one.

    It is newer, so that the next start takes it, or the running one was started for rescue. One that is seen to be gone is none.
    """
    if running is None:
        return None
    lines = (line for line in entries(seen) if line.state == "installed" and line.kernel)
    kernels = {line.kernel or "" for line in lines} | {file.kernel for file in seen.modules.files or () if file.name == "nvidia"}
    there = seen.host.listdir("/boot")
    found = [
        one
        for one in kernels - {running}
        if there is None or f"vmlinuz-{one}" in there or seen.host.exists(f"/lib/modules/{one}/vmlinuz") is True
    ]
    rescue = re.search(r"(?:^|\s)(?:recovery|single|rescue|emergency|systemd\.unit=(?:rescue|emergency)\.target)(?:\s|$)", _started(seen))
    best = max(found, key=version_key, default=None)
    return best if best and (rescue or version_key(best) > version_key(running)) else None


def _started(seen: Evidence) -> str:
    return seen.host.read("/proc/cmdline") or ""


@repairs("kernel-headers-missing")
def headers(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the headers of the kernel, then the build that waited for them."""
    kernel, manager = kernel_of(seen, candidate), manager_of(seen)
    if kernel is None:
        return Plan(steps=(person("headers-of-kernel"), person("build-all", "dkms", "autoinstall")), verify=proof("dkms"))
    if manager == "pacman" and _older_than_installed(seen, kernel):
        # The headers of this kernel are gone from the archive with it.
        return Plan(steps=(install("headers", manager, _arch_headers(kernel), kernel=kernel), reboot()), verify=proof("dkms"))
    name = _arch_headers(kernel) if manager == "pacman" else _headers(kernel, manager)
    if name is None:
        return Plan(
            steps=(person("headers", kernel=kernel), person("build-all", "dkms", "autoinstall", kernel=kernel)), verify=proof("dkms")
        )
    if candidate.variant == "incomplete" and manager == "apt":
        first = apt("headers-again", "--reinstall", "--no-remove", "install", name, kernel=kernel)
    else:
        first = install("headers", manager, name, refresh=manager == "apt", kernel=kernel)
    build = built(seen, kernel) if entries(seen) else (_build_all(seen, kernel),)
    waiting = finish(seen) if half(seen) else ()
    return Plan(steps=(*as_failed(seen), first, *build, *waiting, *images(seen), first_start(seen)), verify=proof("dkms"))


def _headers(kernel: str, manager: str | None) -> str | None:
    """Return the package with a kernel's headers, by the distribution and the kind of kernel; `None` where it is not known."""
    row = next((one for one in header_rows() if one.manager == manager and re.fullmatch(one.kernel, kernel)), None)
    return row.package.replace("{kernel}", kernel) if row is not None and row.package else None


def _older_than_installed(seen: Evidence, kernel: str) -> bool:
    """Return whether another release of the running kernel's package is installed, as after an upgrade without a reboot."""
    package = _arch_headers(kernel).removesuffix("-headers")
    row = next(iter(seen.packages.named(re.escape(package))), None)
    plain = re.sub(r"-(lts|zen|hardened|rt)\b", "", kernel)
    return row is not None and re.sub(r"[.-]", ".", row.version) not in (re.sub(r"[.-]", ".", one) for one in (plain, kernel))


def _arch_headers(kernel: str) -> str:
    """Return the package of headers of an Arch kernel: each kind of kernel has its own."""
    kind = re.search(r"-(lts|zen|hardened|rt)\b", kernel)
    return f"linux-{kind[1]}-headers" if kind else "linux-headers"


def _build_all(seen: Evidence, kernel: str) -> Step:
    """Return the build of every entry of DKMS; undo takes the modules of the driver away again that were not there before."""
    versions = dict.fromkeys(row.driver for row in seen.packages.driver("module") if row.driver)
    undo = tuple(step for version in versions for step in _taken_out(seen, "nvidia", version, kernel, tolerant=True))
    return run("build-all", "dkms", "autoinstall", "-k", kernel, undo=undo, quiet=720, kernel=kernel)


@repairs("dkms-compiler-too-old")
def compiler(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the compiler that the kernel was built with, then the build."""
    manager, kernel = manager_of(seen), kernel_of(seen, candidate)
    told = re.search(r"gcc-(\d+)|gcc(?: version)? (?:\([^)]*\) )?(\d+)\.", seen.host.read("/proc/version") or "")
    running = seen.system.kernel.value if seen.system.kernel else None
    # What the log of the build names; this machine's kernel tells only where it is the one that was built for.
    named = next((event.major for event in seen.all(KernelBuiltBy)), None)
    major = named or ((told[1] or told[2]) if told and kernel in (None, running) else None)
    if manager == "apt" and major and not_offered(seen, manager, f"gcc-{major}"):
        get = person("compiler", "apt-cache", "policy", f"gcc-{major}", major=major)
    elif manager == "apt" and major:
        get = install("compiler", manager, f"gcc-{major}", major=major)
    else:
        get = install("compiler-any", manager, "gcc") if manager in ("dnf", "pacman") else person("compiler-any")
    steps = (get, *(built(seen, kernel) if entries(seen) else (person("build-all", "dkms", "autoinstall", kernel=kernel or "?"),)))
    return Plan(steps=(*steps, *images(seen), first_start(seen)), verify=proof("dkms"))


@repairs("dkms-tree-stale-entry")
def stale_entry(seen: Evidence, candidate: Candidate) -> Plan:
    """Return what takes the entry without sources out of the tree, where `dkms remove` cannot, then the build of the rest."""
    module, version = str(candidate.params.get("module", "?")), str(candidate.params.get("version", "?"))
    kernel = kernel_of(seen)
    if not is_name(module) or not is_name(version):
        return Plan(steps=(person("entry-away"), person("build-all", "dkms", "autoinstall", kernel=kernel or "?")), verify=proof("dkms"))
    at = f"/var/lib/dkms/{module}/{version}"
    if not seen.rehearsal and (seen.host.listdir(at) is None or seen.host.exists(f"{at}/source/dkms.conf") is not False):
        # Somebody's log names it; here nothing of it is broken.
        return Plan(steps=(person("see-entries", "dkms", "status"),), verify=proof("dkms"))
    # Out of the tree: DKMS takes every folder in there for an entry.
    move = aside("entry-away", at, f"/var/lib/dkms-{module}-{version}")
    rest = [line for line in entries(seen) if line.version != version]
    build = built(seen, kernel) if rest and kernel else (run("build-all", "dkms", "autoinstall", quiet=720, kernel=kernel or "?"),)
    # The packages whose script stumbled over the entry are configured afterwards.
    waiting = finish(seen) if half(seen) else ()
    return Plan(steps=(*as_failed(seen), move, *build, *waiting), verify=proof("dkms"))


@repairs("gpu-firmware-file-missing")
def firmware(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the packages that hold the firmware once more, and an initramfs that has it too."""
    return Plan(steps=(*reinstalled(seen, "firmware", "module"), *images(seen), reboot()), verify=proof("smi"))
