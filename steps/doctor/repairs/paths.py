"""Repairs of what a program finds and asks for: search paths, variables, compilers, and the way between ranks."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from steps.doctor import numbers
from steps.doctor.diagnosis import Step
from steps.doctor.evidence import Evidence
from steps.doctor.facts.packages import Manager
from steps.doctor.repairs.base import Plan, install, manager_of, not_offered, person, proof, remove, repairs, write
from steps.doctor.repairs.environments import environment_of
from steps.doctor.repairs.own_python import IMPORTS, shown_by
from steps.doctor.rules.base import Candidate

# --- search paths ---------------------------------------------------------------------------------

_PLAIN = "/etc/environment"
"""Read by PAM line by line, and by no shell."""
_PROFILES = (_PLAIN, "/etc/profile", "/etc/bash.bashrc", "/etc/profile.d/*.sh")
_MARK = "# bringup: "


def _set_in(seen: Evidence, variable: str) -> Iterator[tuple[str, str | None]]:
    """Yield the system's files that set a variable, with their text once they do not; `None` where a line does more than that."""
    if seen.rehearsal:
        return
    for place in _PROFILES:
        for path in seen.host.glob(place) if "*" in place else (place,):
            text = seen.host.read(path)
            if text and re.search(rf"^\s*(?:export\s+)?{variable}=", text, re.MULTILINE):
                yield path, _without_lines(text, variable) if path == _PLAIN else without_setting(text, variable)


def _without_lines(text: str, variable: str) -> str:
    return re.sub(rf"^(?=\s*(?:export\s+)?{variable}=)", _MARK, text, flags=re.MULTILINE)


def without_setting(text: str, variable: str) -> str | None:
    """Return a shell's script that sets a variable no more; `None` where one of its lines does something beside.

    A command that does nothing takes the place of each line: without one an `if` around it would be an error.
    """
    starts = re.compile(rf"\s*(?:export\s+)?{variable}=")
    done: list[str] = []
    for lines in _commands(text):
        if not any(starts.match(line) for line in lines):
            done += lines
            continue
        if "<<" in text or not starts.match(lines[0]) or not _only_sets("".join(lines), variable):
            return None
        blank = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
        done += [f"{blank}: {_MARK}{lines[0].lstrip()}", *(f"{blank}{_MARK}{line.lstrip()}" for line in lines[1:])]
    return "".join(done)


def _commands(text: str) -> Iterator[list[str]]:
    """Yield the lines of a script, those together that a backslash joins."""
    joined: list[str] = []
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        joined.append(line)
        ends = line.rstrip("\n")
        # In a remark a backslash joins nothing.
        if (ends.lstrip().startswith("#") and len(joined) == 1) or (len(ends) - len(ends.rstrip("\\"))) % 2 == 0:
            yield joined
            joined = []
    if joined:
        yield joined


def _only_sets(command: str, variable: str) -> bool:
    """Return whether a command is one assignment and nothing else; not where a quotation goes on in the next line."""
    words = shlex.shlex(command.replace("\\\n", ""), posix=True, punctuation_chars=True)
    words.whitespace_split = True
    try:
        found = [word for word in words if word != "export"]
    except ValueError:
        return False
    return len(found) == 1 and found[0].startswith(f"{variable}=") and not re.search(r"\$\(|`", command)


def _unset(seen: Evidence, variable: str, key: str) -> tuple[Step, ...]:
    """Return what keeps a variable from programs: out of the files that set it, and out of the shell that has it already."""
    files = (
        person("variable-by-hand", "grep", "--line-number", variable, path, variable=variable, path=path)
        if text is None
        else write("variable-out", path, text, variable=variable)
        for path, text in _set_in(seen, variable)
    )
    return (*files, person(key, "env", "--unset", variable, "PROGRAM", variable=variable))


@repairs("ld-library-path-shadows-bundled-libs")
def own_libraries(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the search path without the folder that shadows the wheel's libraries."""
    *files, shell = _unset(seen, "LD_LIBRARY_PATH", "without-path")
    # Not every shell reads every file: where one is left to a person, a login may go well and theirs does not.
    all_written = all(step.actions for step in files)
    own = shown_by(environment_of(seen, candidate, "torch"), IMPORTS, seen) if all_written else None
    return Plan(steps=(*files, shell), verify=own or proof("torch"))


@repairs("cuda-visible-devices-hides-gpus")
def all_cards(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the environment without the variable."""
    variable = str(candidate.params.get("name", "CUDA_VISIBLE_DEVICES"))
    return Plan(steps=_unset(seen, variable, "all-cards"), verify=proof("torch"))


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
    if manager == "dnf" and seen.system.id != "fedora":
        # A toolset lies beside the system's compiler, and is chosen by name.
        name = f"gcc-toolset-{newest}"
        use = person("choose-toolset", "scl", "enable", name, "COMMAND", newest=newest)
        return Plan(steps=(_compiler(seen, newest, manager, name), use), verify=proof("nvcc"))
    names = (f"gcc-{newest}", f"g++-{newest}") if manager == "apt" else ()
    use = person("choose-compiler", "env", f"NVCC_PREPEND_FLAGS=-ccbin=g++-{newest}", "COMMAND", newest=newest)
    return Plan(steps=(_compiler(seen, newest, manager, *names), use), verify=proof("nvcc"))


def _compiler(seen: Evidence, newest: str, manager: Manager | None, *names: str) -> Step:
    """Return the step that brings a compiler; a person's where its packages are not known, or not on offer here."""
    if not names or not_offered(seen, manager, *names):
        return person("older-compiler", newest=newest)
    return install("older-compiler", manager, *names, newest=newest)


# --- the network of ranks -------------------------------------------------------------------------


@repairs("firewall-blocks-nccl")
def open_between(seen: Evidence, candidate: Candidate) -> Plan:
    """Return what a person does: see whether there is a way at all, then let this machine in over there.

    It is the other side that does not answer, and an address out of a log is nothing that a rule here should name.
    """
    address = str(candidate.params.get("address", ""))
    known = re.fullmatch(r"[0-9a-fA-F.:]+", address) is not None
    way = person("see-way", *(("ip", "route", "get", address) if known else ("ip", "route")), address=address if known else "?")
    return Plan(steps=(way, person("let-in-there", address=address if known else "?")), verify=proof("nccl"))


_SHM = "/dev/shm"  # noqa: S108 - it is the one place that shared memory has


@repairs("shm-too-small")
def more_shared_memory(seen: Evidence, candidate: Candidate) -> Plan:
    """Return more room in /dev/shm: of the container, or of this machine where what was seen is its own."""
    line = next((told.place.text for told in candidate.facts if told.place.text.endswith(_SHM)), "")
    inside = seen.system.container is not None or line.startswith("shm ")
    if not inside and (line or not seen.rehearsal):
        larger = person("larger-shm-here", "mount", "-o", "remount,size=50%", _SHM)
    else:
        larger = person("larger-shm", "docker", "run", "--shm-size=8g", "--gpus", "all", "IMAGE")
    return Plan(steps=(larger,), verify=proof("shm"))


@repairs("driver-too-old-for-cuda")
def older_cuda(seen: Evidence, candidate: Candidate) -> Plan:
    """Return a build for what the driver serves, by the wish that asks for it; or a newer driver."""
    driver = next((one.value for one in (*seen.versions.loaded, *seen.versions.user)), seen.smi.driver_version)
    kept = ("--want", f"driver=={numbers.branch(driver)}") if driver and re.match(r"\d{3}\.", driver) else ()
    older = person("older-cuda-build", "bringup", "recommend", *kept, "--want", "torch")
    return Plan(steps=(older, person("newer-driver", "bringup", "apply")), verify=proof("torch"))
