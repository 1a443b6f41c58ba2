"""Repairs of what a program runs in: wheels for other cards, another driver or another CUDA."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Literal

import msgspec

from steps.catalog import stack
from steps.catalog.versions import at_least
from steps.compat.case import installed_driver
from steps.detect.environments import environments
from steps.doctor.diagnosis import Proof, Step
from steps.doctor.events.builds import Wheel
from steps.doctor.events.libraries import LibrariesSkipped
from steps.doctor.evidence import Evidence
from steps.doctor.repairs.base import Plan, command_proof, made_of, person, proof, repairs, run
from steps.doctor.repairs.builds import cardless, cuda_major, first_branch, jax_of, least_driver, machine_of, torch_build, with_refused
from steps.doctor.repairs.own_python import HAS_CUDA, shown_by
from steps.doctor.rules.base import Candidate
from steps.errors import PreflightError
from steps.host.trusted_path import person_home, person_uid, roots_alone, works_on
from steps.managers.fetching import Fetching, fetching
from steps.managers.installer import settings
from steps.managers.makers import Argv, adding
from steps.managers.python import LEAST_DEPTH
from steps.model.action import Keep, Run, Succeeds
from steps.model.base import Param, phrase
from steps.model.machine import Machine, judged
from steps.model.profile import Profile

_INDEX = "https://download.pytorch.org/whl"
_PRELOAD = "import onnxruntime; onnxruntime.preload_dlls(); onnxruntime.print_debug_info()"
"""It loads the libraries that lie beside it as wheels (onnxruntime.ai, CUDA Execution Provider, Preload DLLs)."""


# --- wheels ---------------------------------------------------------------------------------------


def environment_of(seen: Evidence, candidate: Candidate, package: str) -> str | None:
    """Return the folder of the environment that it is about: named in the evidence, else the only one with the package; else `None`.

    A name out of a log counts only where an environment lies there: anybody may have written it.
    """
    for told in candidate.facts:
        named = re.search(r"(/\S+?)/lib(?:64)?/python3\.\d+/site-packages/", told.place.text)
        if named and not named[1].startswith("/usr"):
            return named[1] if seen.rehearsal or is_environment(seen, named[1]) else None
    if seen.rehearsal:
        return None
    found = [one.path for one in environments(seen.host) if package in one.frameworks and one.path]
    return found[0] if len(found) == 1 and not _is_base(seen, found[0]) else None


def is_environment(seen: Evidence, path: str) -> bool:
    """Return whether a folder is a Python environment of its own: none of the system's top folders, and no base of conda's."""
    parts = PurePosixPath(path).parts
    if ".." in parts or len(parts) < LEAST_DEPTH or _is_base(seen, path):
        return False
    return any(seen.host.exists(f"{path}/{mark}") is True for mark in ("pyvenv.cfg", "conda-meta"))


def _is_base(seen: Evidence, path: str) -> bool:
    """Return whether conda itself lives there, on which all of its environments rest."""
    return seen.host.exists(f"{path}/condabin") is not False or bool(seen.host.glob(f"{path}/conda-meta/conda-[0-9]*.json"))


def pip(
    seen: Evidence, candidate: Candidate, package: str, key: str, *words: str, check: str = "", params: Mapping[str, Param] | None = None
) -> tuple[Step, ...]:
    """Return what changes wheels of an environment, which is copied before: undo moves the copy back.

    A person's where it is not known, where it is somebody else's, and where nothing is there that could fill it. `check` is a line
    of Python that ends well only in an environment that is right; `params` fill the step's sentence.
    """
    path = environment_of(seen, candidate, package)
    if path is None:
        return (person(key, "python", "-m", "pip", "install", *words, **(params or {})),)
    python = f"{path}/bin/python"
    if seen.rehearsal:
        by: Literal["root", "user"] | None = "user"
    else:
        by = works_on(path, python) if seen.host.host.root == "/" else None
    fill = _filling(seen, path, words, by or "user")
    if by is None or fill is None:
        typed = fill or (("uv", "pip", "install", "--python", python), {})
        return (person(key, *typed[0], *words, **(params or {})),)
    keep = made_of(
        "keep-environment",
        (Keep(id="keep-environment", title=phrase("repair.step.keep-environment", path=path), path=path, quiet_seconds=600),),
        path=path,
    )
    done_when = (Succeeds(argv=(python, "-c", check)),) if check else ()
    change = run(key, *fill[0], *words, done_when=done_when, quiet=300, words=params)
    return tuple(_done_by(step, by, fill[1]) for step in (keep, change))


def _filling(seen: Evidence, path: str, words: tuple[str, ...], by: Literal["root", "user"]) -> tuple[Argv, Mapping[str, str]] | None:
    """Return the call that fills an environment, and its variables: uv's where uv made it or it has no pip; `None` without either."""
    python, plain = f"{path}/bin/python", Fetching(options=(), proxy=None, certificates=None)
    has_pip = seen.rehearsal or bool(seen.host.glob(f"{path}/lib/python3*/site-packages/pip/__init__.py"))
    of_uv = re.search(r"^uv\s*=", seen.host.read(f"{path}/pyvenv.cfg") or "", re.MULTILINE) is not None
    if not seen.rehearsal and (of_uv or not has_pip):
        uv, options = _uv_of(seen, by)
        if uv is not None:
            # An index that the repair names takes the place of the person's; uv does not read where pip's settings say theirs.
            own = () if "--index-url" in words else options
            return (*adding(python, uv), *own), plain.environment("uv")
    return (adding(python, None), plain.environment("pip")) if has_pip else None


def _uv_of(seen: Evidence, by: Literal["root", "user"]) -> tuple[str | None, tuple[str, ...]]:
    """Return uv, `None` where there is none that may be run, and where it is told to look for packages."""
    lines = (line.partition("=") for line in seen.host.run(("env",)).stdout.splitlines())
    environ = {name: value for name, equals, value in lines if equals}
    try:
        installer = settings(seen.host.host, environ, home=person_home(), user=None, uid=person_uid())
    except PreflightError:
        return None, ()
    uv = installer.uv if installer.uv and (by == "user" or roots_alone(installer.uv)) else None
    return uv, fetching(Profile(), installer, ()).options


def _done_by(step: Step, by: Literal["root", "user"], env: Mapping[str, str]) -> Step:
    """Return the step as theirs whose the environment is: nothing of root's comes to lie in it, and root runs nothing out of it."""
    told = ({"by": by, "env": env} if isinstance(one, Run) else {"by": by} for one in step.actions)
    actions = tuple(msgspec.structs.replace(one, **words) for one, words in zip(step.actions, told, strict=True))
    return msgspec.structs.replace(step, actions=actions)


def torch_step(seen: Evidence, candidate: Candidate, key: str, *, same: bool = True, refused: bool = False) -> tuple[Step, ...]:
    """Return what installs the build of PyTorch that runs here; with `same` of the release that is here, if there is one.

    With `refused` it has code for the cards too that a build said it has none for. A person's where no build is known to run, and
    where no card was found that a build could be for.
    """
    machine = with_refused(seen, machine_of(seen)) if refused else machine_of(seen)
    if cardless(seen, machine):
        return (_without_card(),)
    path = environment_of(seen, candidate, "torch")
    build = torch_build(seen, machine, path, same=same)
    if build is None or (refused and _behind(build.driver, first_branch(machine))):
        return (_no_build(seen, machine, path),)
    names = (f"torch=={build.version}+{build.variant}", *(f"{name}=={version}" for name, version in build.beside.items()))
    wheels, rocm = (*names, "--index-url", f"{_INDEX}/{build.variant}"), build.variant.startswith("rocm")
    if rocm:
        return pip(seen, candidate, "torch", "rocm-build", *wheels)
    told = {"least": build.least} if build.driver is None and build.least else {}
    return pip(seen, candidate, "torch", f"{key}-any-driver" if told else key, *wheels, check=HAS_CUDA if same else "", params=told)


def _behind(driver: str | None, least: str | None) -> bool:
    """Return whether a driver is known to be older than what is asked for."""
    return driver is not None and least is not None and not at_least(driver, least)


def _no_build(seen: Evidence, machine: Machine, path: str | None) -> Step:
    """Return what a person does where no build is known to run on these cards with this driver: a newer driver, where that is all."""
    driver, _ = installed_driver(machine)
    if not driver or not judged(machine):
        return person("build-by-hand", "bringup", "recommend", "--want", "torch")
    least = least_driver(seen, machine, path)
    if _behind(driver, least):
        return person("build-needs-driver", "bringup", "apply", driver=driver, least=least or "?")
    return person("build-with-driver", "bringup", "recommend", "--want", "torch", driver=driver)


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
    plan = _with_build(torch_step(seen, candidate, "cuda-build"))
    own = shown_by(environment_of(seen, candidate, "torch"), HAS_CUDA, seen)
    # Without a step that a run can do nothing is proven by it; AMD's build has no CUDA to name.
    return msgspec.structs.replace(plan, verify=own) if own and plan.verify == proof("torch") and _runs(plan) else plan


def _runs(plan: Plan) -> bool:
    return any(step.actions for step in plan.steps)


def _with_build(steps: tuple[Step, ...]) -> Plan:
    """Return the repair with the proof of its build: one for AMD's cards has no CUDA to name."""
    rocm = any(step.says.key == "repair.step.rocm-build" for step in steps)
    return Plan(steps=steps, verify=proof("torch-rocm" if rocm else "torch"))


def _onnx() -> Proof:
    return command_proof("onnx", "python", "-c", "import onnxruntime; print(onnxruntime.get_available_providers())")


@repairs("wheel-lacks-gpu-kernels")
def with_code(seen: Evidence, candidate: Candidate) -> Plan:
    """Return a build with code for the card: a newer one for a new card, an older one for an old card."""
    key = "older-build" if candidate.variant == "older" else "newer-build"
    return _with_build(torch_step(seen, candidate, key, same=False, refused=True))


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
        return _with_build(steps)
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
