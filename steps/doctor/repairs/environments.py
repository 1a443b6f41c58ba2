"""Repairs of what a program runs in: wheels for other cards, another driver or another CUDA."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from steps.catalog import stack
from steps.compat.case import installed_driver
from steps.detect.environments import environments
from steps.doctor.diagnosis import Proof, Step
from steps.doctor.events.builds import Wheel
from steps.doctor.events.libraries import LibrariesSkipped
from steps.doctor.evidence import Evidence
from steps.doctor.repairs.base import Plan, back, command_proof, person, proof, repairs, run
from steps.doctor.repairs.builds import cardless, cuda_major, jax_of, machine_of, torch_build
from steps.doctor.rules.base import Candidate
from steps.model.action import Run, Succeeds
from steps.model.base import Param
from steps.model.machine import judged

_INDEX = "https://download.pytorch.org/whl"
_HAS_CUDA = "import sys, torch; sys.exit(torch.version.cuda is None)"
_PRELOAD = "import onnxruntime; onnxruntime.preload_dlls(); onnxruntime.print_debug_info()"
"""It loads the libraries that lie beside it as wheels (onnxruntime.ai, CUDA Execution Provider, Preload DLLs)."""


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


def pip(
    seen: Evidence, candidate: Candidate, package: str, key: str, *words: str, check: str = "", params: Mapping[str, Param] | None = None
) -> tuple[Step, ...]:
    """Return what changes wheels of an environment, which is copied before: undo moves the copy back. A person's where it is not known.

    `check` is a line of Python that ends well only in an environment that is right; `params` fill the step's sentence.
    """
    path = environment_of(seen, candidate, package)
    if path is None:
        return (person(key, "python", "-m", "pip", "install", *words, **(params or {})),)
    copy = f"{path}.before-repair"
    keep = run(
        "keep-environment",
        *("cp", "--archive", "--reflink=auto", "--no-target-directory", "--", path, copy),
        undo=(back("rm", "-r", "--one-file-system", "--", path), back("mv", "--no-target-directory", "--", copy, path)),
        path=path,
    )
    python = f"{path}/bin/python"
    done_when = (Succeeds(argv=(python, "-c", check)),) if check else ()
    change = run(key, python, "-m", "pip", "install", *words, done_when=done_when, quiet=300, words=params)
    return tuple(_theirs(step) if path.startswith("/home/") else step for step in (keep, change))


def _theirs(step: Step) -> Step:
    """Return the step as the person's own: nothing of root's comes to lie in a home folder."""
    actions = tuple(msgspec.structs.replace(one, by="user") if isinstance(one, Run) else one for one in step.actions)
    return msgspec.structs.replace(step, actions=actions)


def torch_step(seen: Evidence, candidate: Candidate, key: str, *, same: bool = True) -> tuple[Step, ...]:
    """Return what installs the build of PyTorch that runs here; with `same` of the release that is here, if there is one.

    A person's where no build is known to run, and where no card was found that a build could be for.
    """
    machine = machine_of(seen)
    if cardless(seen, machine):
        return (_without_card(),)
    build = torch_build(seen, machine, environment_of(seen, candidate, "torch"), same=same)
    if build is None:
        driver, _ = installed_driver(machine)
        words = {"driver": driver} if driver and judged(machine) else {}
        return (person("build-with-driver" if words else "build-by-hand", "bringup", "recommend", "--want", "torch", **words),)
    names = (f"torch=={build.version}+{build.variant}", *(f"{name}=={version}" for name, version in build.beside.items()))
    wheels, rocm = (*names, "--index-url", f"{_INDEX}/{build.variant}"), build.variant.startswith("rocm")
    if rocm:
        return pip(seen, candidate, "torch", "rocm-build", *wheels)
    told = {"least": build.least} if build.driver is None and build.least else {}
    return pip(seen, candidate, "torch", f"{key}-any-driver" if told else key, *wheels, check=_HAS_CUDA if same else "", params=told)


def _without_card() -> Step:
    return person("no-card", "bringup", "detect")


def _beside_card(seen: Evidence, candidate: Candidate, package: str, key: str, *words: str) -> tuple[Step, ...]:
    """Return what installs a package made for NVIDIA's cards; a person's where there are none."""
    machine = machine_of(seen)
    if cardless(seen, machine):
        return (_without_card(),)
    if (cards := judged(machine)) and cards[0].vendor != "nvidia":
        return (person("build-of-vendor"),)
    return pip(seen, candidate, package, key, *words)


@repairs("cpu-only-build-active")
def with_cuda(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the same release of the framework, built with CUDA."""
    what = str(candidate.params.get("what", "torch"))
    if candidate.variant == "shadow":
        one = _beside_card(seen, candidate, "onnxruntime", "cuda-build", "--force-reinstall", "--no-deps", "onnxruntime-gpu")
        return Plan(steps=(person("cpu-build-away", "python", "-m", "pip", "uninstall", "onnxruntime"), *one), verify=_onnx())
    if what in ("tensorflow", "jaxlib", "jax"):
        name = "tensorflow[and-cuda]" if what == "tensorflow" else f"jax[{jax_of(machine_of(seen)) or 'cuda12'}]"
        test = proof("tensorflow") if what == "tensorflow" else command_proof("jax", "python", "-c", "import jax; print(jax.devices())")
        return Plan(steps=_beside_card(seen, candidate, what, "cuda-build", "--upgrade", name), verify=test)
    if what == "onnxruntime":
        return Plan(steps=_beside_card(seen, candidate, what, "cuda-build", "onnxruntime-gpu"), verify=_onnx())
    if what == "bitsandbytes":
        return Plan(steps=_beside_card(seen, candidate, what, "cuda-build", "--upgrade", what), verify=proof("torch"))
    return Plan(steps=torch_step(seen, candidate, "cuda-build"), verify=proof("torch"))


def _onnx() -> Proof:
    return command_proof("onnx", "python", "-c", "import onnxruntime; print(onnxruntime.get_available_providers())")


@repairs("wheel-lacks-gpu-kernels")
def with_code(seen: Evidence, candidate: Candidate) -> Plan:
    """Return a build with code for the card: a newer one for a new card, an older one for an old card."""
    key = "older-build" if candidate.variant == "older" else "newer-build"
    return Plan(steps=torch_step(seen, candidate, key, same=False), verify=proof("torch"))


# --- the libraries of a program -------------------------------------------------------------------


def _asks(seen: Evidence, candidate: Candidate) -> str | None:
    """Return the framework that asks for a library, by its messages, else the only one in the list of packages; `None`: not known."""
    said = " ".join(told.place.text for told in candidate.facts).lower()
    if "onnxruntime" in said:
        return "onnxruntime"
    if seen.has(LibrariesSkipped) or "tensorflow" in said:
        return "tensorflow"
    if "torch" in said:
        return "torch"
    here = {event.name for event in seen.all(Wheel)} & {"torch", "tensorflow", "onnxruntime-gpu"}
    return here.pop().removesuffix("-gpu") if len(here) == 1 else None


@repairs("cuda-libs-not-found-by-program", "cudnn-major-mismatch", "runtime-lib-other-cuda-major")
def libraries_of_program(seen: Evidence, candidate: Candidate) -> Plan:
    """Return what gives the program that complained the libraries of its own major; a person's where it is not known, or no framework."""
    asks = _asks(seen, candidate)
    library = str(candidate.params.get("wanted") or candidate.params.get("library") or "?")
    if asks == "onnxruntime":
        beside = _beside_card(seen, candidate, asks, "libraries-beside", "onnxruntime-gpu[cuda,cudnn]")
        return Plan(steps=(*beside, person("preload", "python", "-c", _PRELOAD)), verify=_onnx())
    if asks == "tensorflow":
        flow = seen.first(Wheel, lambda event: event.name == "tensorflow")
        exact = f"tensorflow[and-cuda]=={flow.version}" if flow else "tensorflow[and-cuda]"
        return Plan(steps=_beside_card(seen, candidate, asks, "libraries-beside", exact), verify=proof("tensorflow"))
    if asks == "torch":
        cudnn = re.match(r"(?:libcudnn\w*\.so\.)?(\d+)", library)
        steps = _cudnn(seen, candidate, cudnn[1]) if cudnn else torch_step(seen, candidate, "build-of-major")
        return Plan(steps=steps, verify=proof("torch"))
    return Plan(steps=(person("program-of-major", "ldconfig", "-p", library=library),), verify=proof("log"))


def _cudnn(seen: Evidence, candidate: Candidate, wanted: str) -> tuple[Step, ...]:
    """Return the wheel of a cuDNN major for the CUDA of the environment; a person's where that is not known, or there is no such wheel."""
    major = cuda_major(seen, environment_of(seen, candidate, "torch"))
    there = any(row.cuda_major == major and row.version.partition(".")[0] == wanted for row in stack.cudnns())
    if major is None or not there:
        return (person("cudnn-by-hand", wanted=wanted),)
    return pip(seen, candidate, "torch", "cudnn-major", f"nvidia-cudnn-cu{major}=={wanted}.*")


@repairs("tensorflow-gpu-package-withdrawn")
def successor(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the package that took its place."""
    return Plan(steps=_beside_card(seen, candidate, "tensorflow", "successor", "tensorflow[and-cuda]"), verify=proof("tensorflow"))


@repairs("nccl-too-old-for-gpu")
def newer_nccl(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the oldest NCCL that has code for the card, or anything newer, for the CUDA of the environment; a person's: not known."""
    least, major = str(candidate.params.get("least", "")), cuda_major(seen, environment_of(seen, candidate, "torch"))
    known = re.fullmatch(r"\d+\.\d+[\d.]*", least) is not None
    if major is None:
        return Plan(steps=(person("nccl-by-hand", "python", "-m", "pip", "list", least=least if known else "?"),), verify=proof("nccl"))
    name = f"nvidia-nccl-cu{major}" + (f">={least}" if known else "")
    return Plan(steps=pip(seen, candidate, "torch", "newer-nccl", "--upgrade", name), verify=proof("nccl"))
