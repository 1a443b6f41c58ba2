"""Containers that do not get the GPU: engine, hook, CDI, cgroups, and a host without a driver."""

from __future__ import annotations

import re

from steps.doctor import numbers
from steps.doctor.events.containers import (
    BindMounted,
    CdiRefused,
    CgroupsLeft,
    DesktopContext,
    DeviceRules,
    FileGone,
    HookFailed,
    NoGpuRuntime,
    ToolMissing,
)
from steps.doctor.events.cuda import ContextForbidden, DriverUnseen
from steps.doctor.events.faults import GspTimeout, Xid
from steps.doctor.events.nvml import NvmlError
from steps.doctor.events.peers import CardNamed
from steps.doctor.events.typed import Command
from steps.doctor.evidence import Evidence
from steps.doctor.facts.cdi import specs
from steps.doctor.overcome import served
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, Answer, found, out, rule
from steps.doctor.told import Fact, fact

RUNTIME = "/etc/nvidia-container-runtime/config.toml"
_STARTS = ("docker", "podman", "nerdctl", "kubectl", "oc", "crictl")


def started(seen: Evidence) -> Fact | None:
    """Return the command that starts a container, where a log shows one."""
    typed = next((one for one in seen.commands(*_STARTS) if "run" in one.words), None)
    return fact(" ".join(typed.words), typed.place.source, typed.place.text) if typed is not None else None


_ASKS = re.compile(r"--gpus|--runtime[= ]nvidia|nvidia\.com/gpu|--device[= ]\S*nvidia|NVIDIA_VISIBLE_DEVICES|nvidia-docker|--nv(?:ccli)?\b")


def asked(seen: Evidence) -> Command | None:
    """Return the command that starts a container and asks for the GPU: without a driver on the host no engine would start it."""
    return next((one for one in seen.commands(*_STARTS) if "run" in one.words and _ASKS.search(one.place.text)), None)


def unasked(seen: Evidence) -> DriverUnseen | None:
    """Return a program's complaint right behind the command that started its container without asking for the GPU."""
    for command in seen.commands("docker", "podman", "nerdctl", "singularity", "apptainer"):
        starts = ("run", "exec", "shell") if command.program in ("singularity", "apptainer") else ("run",)
        if command.words[1:2] and command.words[1] in starts and not _ASKS.search(command.place.text):
            unseen = (event for event in seen.all(DriverUnseen) if not served(seen.events, event))
            later = (event for event in unseen if event.place.source == command.place.source)
            said = next((event for event in later if event.place.order > command.place.order), None)
            if said is not None:
                return said
    return None


def inside(seen: Evidence, error: NvmlError | ContextForbidden | None) -> bool:
    """Whether an error was printed inside a container, by its source or by the command before it."""
    if error is None or error.place.in_container:
        return error is not None
    entered = any({"exec", "logs"} & set(one.words) for one in seen.commands(*_STARTS))
    return (entered or started(seen) is not None) and error.place.source.endswith(".log")


def host_works(seen: Evidence) -> bool:
    """Whether nvidia-smi on the host lists GPUs."""
    return seen.driver_answers is True or seen.host.run(("nvidia-smi", "-L")).stdout.startswith("GPU ")


def _no_cgroups(seen: Evidence) -> Fact | CgroupsLeft | None:
    line = re.search(r"^\s*no-cgroups\s*=\s*true", seen.host.read(RUNTIME) or "", re.MULTILINE)
    return fact("true", RUNTIME, line[0].strip()) if line else seen.first(CgroupsLeft)


# --- the host --------------------------------------------------------------------------------------


@rule("no-driver-installed")
def no_driver(seen: Evidence) -> Answer:
    """The driver's library and tool are missing on the host itself."""
    failed = seen.first(HookFailed, lambda event: event.reason == "no-library")
    library = seen.first(NvmlError, lambda event: event.trouble == "library-not-found" and not event.place.in_container)
    unseen = seen.first(DriverUnseen, lambda event: not event.place.in_container and "was not detected" not in event.place.text)
    if failed is None and library is None and (unseen is None or seen.versions.loaded or seen.system.wsl):
        return None
    tool = _tool_missing_on_host(seen)
    if host_works(seen):
        return out(*(seen.cards.cards[:1]))
    elsewhere = _root_differs(seen) or unasked(seen)
    if elsewhere is not None:
        return out(elsewhere)
    packages = [row for row in seen.packages.rows if row.driver and row.installed]
    if packages:
        return out(packages[0])
    # That the tool says it itself shows that part of a driver is there.
    bare = library is not None and "NVIDIA-SMI" not in library.place.text
    sure = CERTAIN if tool else LIKELY if failed or bare else POSSIBLE
    return found(sure, failed, library, unseen, tool)


def _tool_missing_on_host(seen: Evidence) -> Fact | ToolMissing | None:
    said = seen.host.run(("nvidia-smi",))
    if said.status == 127 or "not found" in said.text:
        return fact("127", "nvidia-smi", said.text.strip() or "nvidia-smi: command not found")
    return seen.first(ToolMissing, lambda event: not event.place.in_container)


# --- cgroups ---------------------------------------------------------------------------------------


@rule("container-lost-device-cgroup")
def lost_cgroup(seen: Evidence) -> Answer:
    """NVML fails inside a container that had the GPU, and the host's works."""
    error = seen.nvml("unknown-error")
    closed = seen.first(ContextForbidden)
    if error is None and closed is not None and inside(seen, closed):
        option = _no_cgroups(seen)
        return out(option) if option is not None else found(LIKELY, closed, _systemd(seen), variant="closed")
    if error is None or not (inside(seen, error) or seen.has(DeviceRules) or _worked_before(seen, error)):
        return None
    option = _no_cgroups(seen)
    if option is not None:
        return out(option)
    works = fact("GPU", "nvidia-smi -L") if host_works(seen) else None
    rules = seen.first(DeviceRules, lambda event: event.made)
    before = _worked_before(seen, error)
    return found(CERTAIN if rules else STRONG if works or before else LIKELY, error, rules, before, works, _systemd(seen))


def _worked_before(seen: Evidence, error: NvmlError | None) -> CardNamed | None:
    """Return a card that the source of an error named before it."""
    if error is None:
        return None
    at = error.place
    return seen.first(CardNamed, lambda event: event.place.source == at.source and event.place.order < at.order)


def _systemd(seen: Evidence) -> Fact | None:
    text = seen.host.run(("systemctl", "--version")).stdout
    return fact(text.split()[1], "systemctl --version", text.partition("\n")[0]) if len(text.split()) > 1 else None


@rule("container-runtime-no-cgroups")
def no_cgroups(seen: Evidence) -> Answer:
    """The hook was told to leave the device cgroups alone."""
    error, option = seen.nvml("unknown-error", "no-permission", "blocked-by-os") or seen.first(ContextForbidden), _no_cgroups(seen)
    if error is None or option is None:
        return None
    return found(CERTAIN, option, error)


# --- engines ---------------------------------------------------------------------------------------


@rule("docker-daemon-lacks-nvidia-runtime")
def no_runtime(seen: Evidence) -> Answer:
    """The daemon that answers does not know the NVIDIA runtime."""
    said = seen.first(NoGpuRuntime)
    if said is None:
        return None
    if said.cdi:
        return found(STRONG, said, variant="cdi")
    toolkit = next((row for row in seen.packages.rows if row.name.startswith("nvidia-container-toolkit") and row.installed), None)
    configured = "nvidia-container-runtime" in (seen.host.read("/etc/docker/daemon.json") or "")
    wrote = fact("nvidia", "/etc/docker/daemon.json", '"nvidia": { "path": "nvidia-container-runtime" }') if configured else None
    variant = "restart" if configured else "configure" if toolkit else ""
    return found(STRONG, said, toolkit, wrote, variant=variant)


@rule("docker-context-is-desktop-vm")
def desktop(seen: Evidence) -> Answer:
    """The docker command talks to Docker Desktop's virtual machine."""
    context = seen.first(DesktopContext)
    failed = seen.first(HookFailed) or seen.first(NoGpuRuntime)
    if context is None:
        as_root = _root_differs(seen)
        return found(LIKELY + 0.1, failed, as_root, variant="sudo") if as_root is not None else None
    return found(CERTAIN if failed else POSSIBLE, context, failed)


def _root_differs(seen: Evidence) -> Fact | None:
    """Return the command that starts a container as root without the failure that it had before: two daemons answer."""
    failures = [*seen.all(HookFailed), *seen.all(NoGpuRuntime)]
    first = next((one for one in failures if one.place.source.endswith(".log")), None)
    typed = [one for one in seen.commands("docker") if first is not None and one.place.source == first.place.source and "run" in one.words]
    plain, root = ([one for one in typed if ("sudo " in one.place.text) is wanted] for wanted in (False, True))
    if first is None or not plain or not root or not plain[0].place.order < first.place.order < root[-1].place.order:
        return None
    if any(one.place.order > root[-1].place.order for one in failures):
        return None
    return fact(" ".join(root[-1].words), root[-1].place.source, root[-1].place.text)


# --- CDI -------------------------------------------------------------------------------------------


@rule("cdi-spec-not-usable")
def cdi_refused(seen: Evidence) -> Answer:
    """The engine cannot read the specification though the devices are in it."""
    said = seen.first(CdiRefused, lambda event: event.parsing) or seen.first(CdiRefused)
    if said is None:
        return None
    listed = seen.host.run(("nvidia-ctk", "cdi", "list")).text
    devices = re.search(r"^nvidia\.com/gpu=\S+", listed, re.MULTILINE)
    shown = fact(devices[0], "nvidia-ctk cdi list") if devices else None
    return found(CERTAIN if said.parsing else STRONG if shown else LIKELY, said, shown, variant="parse" if said.parsing else "")


@rule("cdi-spec-stale")
def cdi_stale(seen: Evidence) -> Answer:
    """The specification names files of another driver version."""
    gone = seen.first(FileGone, lambda event: event.version is not None) or seen.first(FileGone)
    now = next(iter(seen.versions.loaded), None) or _said(seen)
    named = _spec_version(seen, now.value if now else None)
    old = named or (fact(gone.version, gone.place.source, gone.place.text) if gone is not None and gone.version else None)
    if old is None:
        return _gone(seen, gone) if gone is not None else None
    if now is not None and numbers.agree(old.value, now.value):
        return out(old, now)
    if now is None and gone is None:
        return None
    return found(
        CERTAIN if now is not None and gone is not None else STRONG if now is not None else LIKELY,
        old,
        gone,
        now,
        old=old.value,
        now=now.value if now else "?",
    )


def _gone(seen: Evidence, gone: FileGone) -> Answer:
    """Return the cause where what is missing carries no driver version: a node, or a library with a version of its own."""
    if gone.path.startswith("/dev/nvidia-uvm"):
        return None  # made with the module of its name, and by no specification
    file = gone.path.rpartition("/")[2]
    stem = f"{file.partition('.so')[0]}.so."
    lists = seen.host.forms(lambda argv: argv[0] in ("ls", "find"), ("ls", f"{gone.path.rpartition('/')[0]}/"))
    listed = (line for argv in lists for line in seen.host.run(argv).stdout.splitlines())
    other = next((line.strip() for line in listed if stem in line and file not in line), None)
    return found(STRONG if other else LIKELY, gone, fact(other, "ls") if other else None, variant="gone", path=gone.path)


def _spec_version(seen: Evidence, now: str | None) -> Fact | None:
    """Return the driver version that a specification's file names carry: one of another driver before one that fits."""
    found = sorted(specs(seen.host), key=lambda spec: now is not None and numbers.agree(spec.version, now))
    return fact(found[0].version, found[0].place.source, found[0].place.text) if found else None


def _said(seen: Evidence) -> Fact | None:
    version = seen.smi.driver_version
    return fact(version, "nvidia-smi", f"Driver Version: {version}") if version else None


# --- inside ----------------------------------------------------------------------------------------


@rule("driver-package-in-container")
def package_inside(seen: Evidence) -> Answer:
    """Apt in a container meets libraries that the host lends."""
    bound = seen.first(BindMounted)
    return found(CERTAIN, bound) if bound is not None else None


@rule("persistence-off-slow-gpu-init")
def slow_start(seen: Evidence) -> Answer:
    """The hook gave up while the driver started GPUs that nobody kept awake."""
    slow = seen.first(HookFailed, lambda event: event.reason == "timeout") or seen.nvml("timeout")
    if slow is None:
        return None
    fault = seen.first(Xid) or seen.first(GspTimeout)
    if fault is not None:
        return out(fault)
    off = _persistence_off(seen)
    return found(STRONG if off else LIKELY, slow, off)


def _persistence_off(seen: Evidence) -> Fact | None:
    for argv in seen.host.forms(lambda argv: argv[0] == "nvidia-smi" and any("persistence_mode" in word for word in argv)):
        line = next((line for line in seen.host.run(argv).stdout.splitlines() if "Disabled" in line), None)
        if line:
            return fact("Disabled", " ".join(argv), line)
    return next((value for one in seen.readings if one.active("Persistence Mode") is False and (value := one.at("Persistence Mode"))), None)
