"""Repairs of what a program runs in: wheels for the wrong CUDA, and search paths that put other libraries before theirs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from steps.catalog import frameworks as catalog
from steps.catalog import guide
from steps.catalog.versions import number
from steps.compat import persistence_plan
from steps.compat.wheels import cuda_of
from steps.detect.environments import environments
from steps.doctor.diagnosis import Proof, Step
from steps.doctor.events.builds import Wheel
from steps.doctor.evidence import Evidence
from steps.doctor.repairs.base import (
    Plan,
    back,
    command_proof,
    install,
    made_of,
    manager_of,
    person,
    proof,
    remove,
    repairs,
    run,
    write,
)  # fmt: skip
from steps.doctor.rules.base import Candidate
from steps.model.action import Run, Succeeds
from steps.model.base import phrase

_INDEX = "https://download.pytorch.org/whl"
_HAS_CUDA = "import sys, torch; sys.exit(torch.version.cuda is None)"


# --- wheels ---------------------------------------------------------------------------------------


def environment_of(seen: Evidence, candidate: Candidate, package: str) -> str | None:
    """Return the folder of the environment that it is about: named in the evidence, else the only one with the package; else `None`."""
    for told in candidate.facts:
        named = re.search(r"(/\S+?)/lib(?:64)?/python3\.\d+/site-packages/", told.place.text)
        if named and not named[1].startswith("/usr"):
            return named[1]
    if seen.rehearsal:
        return None
    found = [one.path for one in environments(seen.host) if package in one.frameworks and one.path]
    return found[0] if len(found) == 1 else None


def pip(seen: Evidence, candidate: Candidate, package: str, key: str, *words: str, check: str = "") -> tuple[Step, ...]:
    """Return what changes wheels of an environment, which is copied before: undo moves the copy back. A person's where it is not known.

    `check` is a line of Python that ends well only in an environment that is right.
    """
    path = environment_of(seen, candidate, package)
    if path is None:
        return (person(key, "python", "-m", "pip", "install", *words),)
    copy = f"{path}.before-repair"
    keep = run(
        "keep-environment",
        *("cp", "--archive", "--reflink=auto", "--no-target-directory", "--", path, copy),
        undo=(back("rm", "-r", "--one-file-system", "--", path), back("mv", "--no-target-directory", "--", copy, path)),
        path=path,
    )
    python = f"{path}/bin/python"
    done_when = (Succeeds(argv=(python, "-c", check)),) if check else ()
    change = run(key, python, "-m", "pip", "install", *words, done_when=done_when, quiet=300)
    return tuple(_theirs(step) if path.startswith("/home/") else step for step in (keep, change))


def _theirs(step: Step) -> Step:
    """Return the step as the person's own: nothing of root's comes to lie in a home folder."""
    actions = tuple(msgspec.structs.replace(one, by="user") if isinstance(one, Run) else one for one in step.actions)
    return msgspec.structs.replace(step, actions=actions)


def _torch(seen: Evidence, *, newest: bool) -> tuple[str | None, str | None]:
    """Return PyTorch's release that is here, or its newest, with its newest build that the driver can run; `None`: not known."""
    wheel = seen.first(Wheel, lambda event: event.name == "torch")
    release = catalog.torch_release(wheel.version) if wheel and not newest else catalog.torch_releases()[0]
    if release is None:
        return None, None
    most = number(seen.smi.cuda_version or "")
    builds = [(number(cuda), row.name) for row in release.variant if (cuda := cuda_of(row.name))]
    # Within one major every driver of its first release or newer serves all builds.
    fitting = [build for build in builds if not most or build[0][:1] <= most[:1]]
    return release.version, max(fitting, default=((), None))[1]


def _torch_step(seen: Evidence, candidate: Candidate, key: str, *, newest: bool = False) -> tuple[Step, ...]:
    version, variant = _torch(seen, newest=newest)
    words = (f"torch=={version}+{variant}", "--index-url", f"{_INDEX}/{variant}") if version and variant else ("--force-reinstall", "torch")
    return pip(seen, candidate, "torch", key, *words, check="" if newest else _HAS_CUDA)


@repairs("cpu-only-build-active")
def with_cuda(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the same release of the framework, built with CUDA."""
    what = str(candidate.params.get("what", "torch"))
    if candidate.variant == "shadow":
        one = pip(seen, candidate, "onnxruntime", "cuda-build", "--force-reinstall", "--no-deps", "onnxruntime-gpu")
        return Plan(steps=(person("cpu-build-away", "python", "-m", "pip", "uninstall", "onnxruntime"), *one), verify=_onnx())
    if what in ("tensorflow", "jaxlib", "jax"):
        name = "tensorflow[and-cuda]" if what == "tensorflow" else "jax[cuda12]"
        test = proof("tensorflow") if what == "tensorflow" else command_proof("jax", "python", "-c", "import jax; print(jax.devices())")
        return Plan(steps=pip(seen, candidate, what, "cuda-build", "--upgrade", name), verify=test)
    if what == "onnxruntime":
        return Plan(steps=pip(seen, candidate, what, "cuda-build", "onnxruntime-gpu"), verify=_onnx())
    return Plan(steps=_torch_step(seen, candidate, "cuda-build"), verify=proof("torch"))


def _onnx() -> Proof:
    return command_proof("onnx", "python", "-c", "import onnxruntime; print(onnxruntime.get_available_providers())")


@repairs("wheel-lacks-gpu-kernels")
def with_code(seen: Evidence, candidate: Candidate) -> Plan:
    """Return a build with code for the card: a newer one for a new card, an older one for an old card."""
    if candidate.variant == "older":
        return Plan(steps=(person("older-build", "bringup", "recommend", "--want", "torch"),), verify=proof("torch"))
    return Plan(steps=_torch_step(seen, candidate, "newer-build", newest=True), verify=proof("torch"))


@repairs("cuda-libs-not-found-by-program")
def libraries_beside(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the libraries as wheels beside the framework, where it looks for them."""
    flow = seen.first(Wheel, lambda event: event.name == "tensorflow")
    exact = f"tensorflow[and-cuda]=={flow.version}" if flow else "tensorflow[and-cuda]"
    return Plan(steps=pip(seen, candidate, "tensorflow", "libraries-beside", exact), verify=proof("tensorflow"))


@repairs("tensorflow-gpu-package-withdrawn")
def successor(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the package that took its place."""
    return Plan(steps=pip(seen, candidate, "tensorflow", "successor", "tensorflow[and-cuda]"), verify=proof("tensorflow"))


@repairs("cudnn-major-mismatch", "runtime-lib-other-cuda-major")
def other_major(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the framework's build for the major that is here; for cuDNN the wheel of the wanted major beside it."""
    wanted = re.search(r"libcudnn\w*\.so\.(\d+)", str(candidate.params.get("wanted", "")))
    major = (seen.smi.cuda_version or "12").partition(".")[0]
    if wanted:
        name = f"nvidia-cudnn-cu{major}=={wanted[1]}.*"
        return Plan(steps=pip(seen, candidate, "torch", "cudnn-major", name), verify=proof("torch"))
    return Plan(steps=_torch_step(seen, candidate, "build-of-major"), verify=proof("torch"))


@repairs("nccl-too-old-for-gpu")
def newer_nccl(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the oldest NCCL that has code for the card, or anything newer."""
    least = str(candidate.params.get("least", ""))
    major = (seen.smi.cuda_version or "12").partition(".")[0]
    name = f"nvidia-nccl-cu{major}" + (f">={least}" if re.fullmatch(r"\d+\.\d+[\d.]*", least) else "")
    return Plan(steps=pip(seen, candidate, "torch", "newer-nccl", "--upgrade", name), verify=proof("nccl"))


# --- search paths ---------------------------------------------------------------------------------

_PROFILES = ("/etc/environment", "/etc/profile", "/etc/bash.bashrc", "/etc/profile.d/*.sh")


def _set_in(seen: Evidence, variable: str) -> Iterator[tuple[str, str]]:
    """Yield the system's files that set a variable, with their text without those lines."""
    if seen.rehearsal:
        return
    pattern = re.compile(rf"^(?=\s*(?:export\s+)?{variable}=)", re.MULTILINE)
    for place in _PROFILES:
        for path in seen.host.glob(place) if "*" in place else (place,):
            text = seen.host.read(path)
            if text and pattern.search(text):
                yield path, pattern.sub("# bringup: ", text)


def _unset(seen: Evidence, variable: str, key: str) -> tuple[Step, ...]:
    """Return what keeps a variable from programs: out of the files that set it, and out of the shell that has it already."""
    files = tuple(write("variable-out", path, text, variable=variable) for path, text in _set_in(seen, variable))
    return (*files, person(key, "env", "--unset", variable, "PROGRAM", variable=variable))


@repairs("ld-library-path-shadows-bundled-libs")
def own_libraries(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the search path without the folder that shadows the wheel's libraries."""
    return Plan(steps=_unset(seen, "LD_LIBRARY_PATH", "without-path"), verify=proof("torch"))


@repairs("cuda-visible-devices-hides-gpus")
def all_cards(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the environment without the variable."""
    return Plan(steps=_unset(seen, "CUDA_VISIBLE_DEVICES", "all-cards"), verify=proof("torch"))


@repairs("compat-libcuda-shadows-newer-driver")
def drivers_own(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the removal of the compatibility library; in a container the start without it."""
    names = tuple(row.name for row in seen.packages.named(r"cuda-compat-[\d-]+"))
    if names:
        return Plan(steps=(remove("compat-away", manager_of(seen), *names),), verify=proof("torch"))
    return Plan(steps=(person("without-compat", "docker", "run", "--runtime=nvidia", "--gpus", "all", "IMAGE"),), verify=proof("torch"))


@repairs("distro-nvcc-first-in-path")
def vendors_nvcc(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the removal of the distribution's toolkit, which stands first in the path."""
    if seen.packages.named("nvidia-cuda-toolkit"):
        names = tuple(row.name for row in seen.packages.named(r"nvidia-cuda-(toolkit|dev|gdb|toolkit-gcc)"))
        return Plan(steps=(remove("old-nvcc-away", manager_of(seen), *names),), verify=proof("nvcc"))
    return Plan(steps=(person("nvcc-first", "env", "PATH=/usr/local/cuda/bin:/usr/bin:/bin", "nvcc", "--version"),), verify=proof("nvcc"))


@repairs("host-compiler-too-new-for-nvcc")
def older_compiler(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the newest compiler that this nvcc takes, and how it is chosen for one build."""
    newest, manager = str(candidate.params.get("newest", "")), manager_of(seen)
    if not newest.isdigit():
        return Plan(steps=(person("older-compiler", newest=newest or "?"),), verify=proof("nvcc"))
    names = {"apt": (f"gcc-{newest}", f"g++-{newest}"), "dnf": (f"gcc-toolset-{newest}",), "pacman": (f"gcc{newest}",)}
    get = install("older-compiler", manager, *names[manager], newest=newest) if manager else person("older-compiler", newest=newest)
    use = person("choose-compiler", "env", f"NVCC_PREPEND_FLAGS=-ccbin=g++-{newest}", "COMMAND", newest=newest)
    return Plan(steps=(get, use), verify=proof("nvcc"))


# --- the network of ranks -------------------------------------------------------------------------


@repairs("firewall-blocks-nccl")
def open_between(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the rule that lets the other machine in, on every port: each pair of ranks chooses its own."""
    address = str(candidate.params.get("address", ""))
    if not re.fullmatch(r"[0-9a-fA-F.:]+", address) or manager_of(seen) not in ("apt", "dnf"):
        return Plan(steps=(person("let-in", address=address or "?"),), verify=proof("nccl"))
    if manager_of(seen) == "apt":
        step = run("let-in", "ufw", "allow", "from", address, undo=(back("ufw", "delete", "allow", "from", address),), address=address)
    else:
        rule = ("firewall-cmd", "--zone=trusted")
        undo = (back(*rule, f"--remove-source={address}"), back("firewall-cmd", "--runtime-to-permanent"))
        step = run("let-in", *rule, f"--add-source={address}", undo=undo, address=address)
    return Plan(steps=(step,), verify=proof("nccl"))


# --- the driver between containers -----------------------------------------------------------------


@repairs("persistence-off-slow-gpu-init")
def awake(seen: Evidence, candidate: Candidate) -> Plan:
    """Return what keeps the driver awake: the daemon's unit, or on Ubuntu a drop-in, for its unit leaves the mode off."""
    row = guide.idle_unit()
    off = seen.system.id in row.os and any(row.is_with(package.name) for package in seen.packages.rows if package.installed)
    actions = persistence_plan.actions("persistence", phrase("repair.step.persistence"), off=off, runs=True, optional=False)
    # The driver runs, and what turns it on is a restart of its daemon.
    return Plan(steps=(msgspec.structs.replace(made_of("persistence", actions), live=True),), verify=proof("list"))
