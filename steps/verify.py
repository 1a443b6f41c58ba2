"""The proof: a ladder of rungs, each of them tried for real on the target and answered with what was seen."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatch
from typing import TYPE_CHECKING

from steps import boot_proof, checklist, proof, tuning
from steps.compat import nccl_conf as conf
from steps.errors import PreflightError
from steps.managers import apt_state, python
from steps.managers.base import module_files
from steps.model.base import Record, Words, phrase
from steps.model.finding import Finding, StepKey
from steps.model.hardware import Accelerator
from steps.model.machine import Machine, judged
from steps.model.plan import Target
from steps.model.profile import Profile
from steps.model.verdict import PACKAGES, Rung

if TYPE_CHECKING:
    from steps.host.base import Host

KEY: StepKey = "verify"


class Trial(Record):
    """What a rung is tried with."""

    machine: Machine
    answers: Profile
    target: Target
    burn: int = 0
    """Seconds of full load on every GPU; 0 for none."""
    planned: int | None = None
    """How many cards the plan was made for; `None` where nobody said."""

    @property
    def gpus(self) -> tuple[Accelerator, ...]:
        """The NVIDIA cards that the answers do not leave out."""
        left_out = self.answers.driver.ignore or ()
        return tuple(card for card in judged(self.machine) if card.vendor == "nvidia" and card.address not in left_out)

    @property
    def running(self) -> bool:
        """Whether the target is the system that runs here: a mounted one has no loaded module and no device nodes."""
        return self.target.root == "/"

    @property
    def branch(self) -> str | None:
        """The driver branch that was asked for; `None` when the driver was left alone."""
        return self.answers.driver.branch if self.answers.driver.source != "keep" else None

    @property
    def computing(self) -> bool:
        """Whether the answers ask for CUDA: its toolkit, or a framework's build for it."""
        return self.answers.toolkit.cuda not in (None, "none") or str(self.answers.frameworks.get("variant", "")).startswith("cu")

    @property
    def lost(self) -> bool:
        """Whether a card is gone: fewer are here than the plan was made for, or none, and driver and CUDA were asked for.

        A plan for a machine without a card leaves them out, and wants none here.
        """
        count = len(judged(self.machine))
        if not self.running or self.planned == 0:
            return False
        if self.planned is not None:
            return count < self.planned and (self.branch is not None or self.computing)
        return not count and self.branch is not None and self.computing


Try = Callable[["Host", Trial], Rung]


def prove(
    host: Host,
    machine: Machine,
    answers: Profile,
    target: Target,
    *,
    burn: int = 0,
    boot: tuple[Finding, ...] | None = None,
    planned: int | None = None,
) -> tuple[Rung, ...]:
    """Return every rung of the ladder, tried on `host`; on a recording all are skipped, for nothing can be tried there.

    What cannot pass here, such as a GPU's rung without a GPU, is skipped with its reason and never passed; where a rung of the
    driver breaks, what stands on it is skipped. `boot` is what `boot_proof.findings` said of the next boot; without it there is
    no rung for that. `planned` is how many cards the plan was made for, where that is known: one that is gone breaks the first rung.
    """
    trial = Trial(machine=machine, answers=answers, target=target, burn=burn, planned=planned)
    if host.rehearsal:
        reason = phrase("verify.because.rehearsal")
        return tuple(skipped(name, reason) for name in (*_SYSTEM, *proof.TORCH_RUNGS))
    system: list[Rung] = []
    for name, rung in _SYSTEM.items():
        broken = broken_at(system)
        system.append(skipped(name, because("after", rung=broken)) if broken and name in STANDING else _excused(rung(host, trial), trial))
    return (*system, *_next_boot(boot), *_switches(trial), *_environment(host, trial, broken_at(system)))


CARRYING, STANDING = ("device-nodes", "module", "cuda"), ("cuda", "nvcc-sample")
"""The rungs that carry all computing on GPUs, and those of the system that stand on them."""


def broken_at(rungs: list[Rung]) -> str | None:
    """Return the first rung that broke of those that carry the others."""
    return next((rung.id for rung in rungs if rung.state == "failed" and rung.id in CARRYING), None)


def _next_boot(boot: tuple[Finding, ...] | None) -> tuple[Rung, ...]:
    return () if boot is None else (boot_proof.rung(boot),)


def _excused(rung: Rung, trial: Trial) -> Rung:
    """Return a broken rung of NVIDIA's stack as skipped where no card wants it: the plan left it out there."""
    excused = rung.state == "failed" and not trial.gpus and not trial.lost
    return skipped(rung.id, because("no-gpu"), rung.detail) if excused else rung


def passed(name: str, because: Words = "", detail: Words = "") -> Rung:
    """Return a rung that held."""
    return Rung(id=name, state="passed", because=because, detail=detail)


def failed(name: str, because: Words, detail: Words = "") -> Rung:
    """Return a rung that broke."""
    return Rung(id=name, state="failed", because=because, detail=detail)


def skipped(name: str, because: Words, detail: Words = "") -> Rung:
    """Return a rung that was not tried."""
    return Rung(id=name, state="skipped", because=because, detail=detail)


def because(reason: str, **params: str | int) -> Words:
    """Return one reason in words."""
    return phrase(f"verify.because.{reason}", **params)


# --- the system -----------------------------------------------------------------------------------


def device_nodes(host: Host, trial: Trial) -> Rung:
    """One device node for each card, and every card that the plan was made for is there."""
    if trial.lost:
        seen = len(judged(trial.machine))
        return failed("device-nodes", because("fewer-gpus", seen=seen, all=trial.planned or 0) if seen else because("no-gpu-seen"))
    if (reason := _no_driver_here(trial)) is not None:
        return skipped("device-nodes", reason)
    count = len([path for path in host.glob("/dev/nvidia[0-9]*") if path[len("/dev/nvidia") :].isdigit()])
    detail = phrase("verify.detail.of", count=count, all=len(trial.gpus))
    closed = [path for path in host.glob("/dev/nvidia[0-9]*") if host.run(("test", "-r", path, "-a", "-w", path)).status == 1]
    if closed:
        return failed("device-nodes", because("device-nodes-closed", path=closed[0]), detail)
    if count >= len(trial.gpus):
        return passed("device-nodes", because("device-nodes"), detail)
    return failed("device-nodes", because("device-nodes-missing", count=count, all=len(trial.gpus)), detail)


def module_and_library(host: Host, trial: Trial) -> Rung:
    """The loaded module and the user-space libraries are of one version."""
    if (reason := _no_driver_here(trial)) is not None:
        return skipped("module", reason)
    driver = trial.machine.driver
    if driver.state == "working":
        return passed("module", because("module-equal"), driver.kernel_version or driver.library_version or "")
    if driver.state == "mismatch":
        return failed("module", because("module-differs", module=driver.kernel_version or "?", library=driver.library_version or "?"))
    return failed("module", because(f"driver-{driver.state}"))


def computes(host: Host, trial: Trial) -> Rung:
    """Each GPU runs a kernel that the driver itself translates, without any framework."""
    if (reason := _no_driver_here(trial)) is not None:
        return skipped("cuda", reason)
    interpreter = _any_python(trial)
    return proof.cuda(host, interpreter, _expected(trial)) if interpreter else skipped("cuda", because("no-interpreter"))


def _any_python(trial: Trial) -> str | None:
    """Return an interpreter that can run our programs on the target; `None` without one."""
    try:
        return python.any_python(trial.target.installer)
    except PreflightError:
        return None


def package_database(host: Host, trial: Trial) -> Rung:
    """Every package is installed and configured, or not there: a half done one stops all that the package manager is to do next."""
    broken = apt_state.unfinished(host)
    if broken is None:
        return skipped(PACKAGES, because("no-dpkg"))
    if broken:
        return failed(PACKAGES, because("packages-unfinished", names=_few(broken)), str(len(broken)))
    return passed(PACKAGES, because("packages-finished"))


def _few(names: tuple[str, ...]) -> str:
    """Return the first names."""
    return " ".join(names[:4]) + (" …" if len(names) > 4 else "")


def _configured(host: Host, rung: Rung, *patterns: str) -> Rung:
    """Return a rung that held, failed where a package that it rests on is not configured: its files are there, and it is not installed."""
    broken = tuple(name for name in apt_state.unfinished(host) or () if any(fnmatch(name, pattern) for pattern in patterns))
    return failed(rung.id, because("packages-unfinished", names=_few(broken)), rung.detail) if rung.state == "passed" and broken else rung


def driver_packages(host: Host, trial: Trial) -> Rung:
    """The packages of the branch that was asked for are installed."""
    if trial.branch is None:
        return skipped("driver", because("not-asked"))
    found = [package for package in trial.machine.driver.packages if _of_line(package.version, trial.branch)]
    if not found:
        return failed("driver", because("driver-not-installed", branch=trial.branch))
    return passed("driver", because("packages", count=len(found)), _upstream(found[0].version or ""))


def module_file(host: Host, trial: Trial) -> Rung:
    """A module file lies where the kernel of the next boot looks for it: DKMS may report success without one."""
    if trial.branch is None:
        return skipped("module-file", because("not-asked"))
    kernel = trial.target.kernel or trial.machine.os.kernel
    if kernel is None or not host.exists(f"/lib/modules/{kernel}"):
        return skipped("module-file", because("no-kernel"))
    found = module_files(host, "nvidia", kernel)
    if not found:
        return failed("module-file", because("no-module-file", kernel=kernel), kernel)
    return passed("module-file", found[0], kernel)


def compiler(host: Host, trial: Trial) -> Rung:
    """The compiler of the chosen toolkit says its version."""
    wanted = trial.answers.toolkit.cuda
    if wanted in (None, "none"):
        return skipped("nvcc", because("not-asked"))
    path = f"/usr/local/cuda-{wanted}/bin/nvcc"
    result = host.run((path, "--version"), timeout=20.0)
    told = re.search(r"release (\d+\.\d+)", result.text)
    if told is None:
        return failed("nvcc", because("nvcc-silent", path=path))
    if told[1] != wanted:
        return failed("nvcc", because("other-version", found=told[1], wanted=str(wanted)), told[1])
    return _configured(host, passed("nvcc", path, told[1]), f"cuda-*-{wanted.replace('.', '-')}")


def sample(host: Host, trial: Trial) -> Rung:
    """The compiler of the chosen toolkit translates a program, and that computes on a GPU."""
    wanted = trial.answers.toolkit.cuda
    if wanted in (None, "none"):
        return skipped("nvcc-sample", because("not-asked"))
    if (reason := _no_driver_here(trial)) is not None:
        return skipped("nvcc-sample", reason)
    interpreter = _any_python(trial)
    path = f"/usr/local/cuda-{wanted}/bin/nvcc"
    return proof.nvcc_sample(host, interpreter, path) if interpreter else skipped("nvcc-sample", because("no-interpreter"))


def cudnn(host: Host, trial: Trial) -> Rung:
    """The chosen cuDNN is installed."""
    found = _library("cudnn", trial.answers.toolkit.cudnn, tuple(one.version for one in trial.machine.cudnn))
    return _configured(host, found, "libcudnn*", "cudnn*")


def nccl_library(host: Host, trial: Trial) -> Rung:
    """The chosen NCCL is installed."""
    found = _library("nccl", trial.answers.toolkit.nccl, tuple(one.version for one in trial.machine.nccl))
    return _configured(host, found, "libnccl*")


def nccl_conf(host: Host, trial: Trial) -> Rung:
    """A file that NCCL reads says what was asked for: the system's, or the person's own where they had no root."""
    if not conf.variables(trial.machine, trial.answers) or not trial.gpus:
        return skipped("nccl-conf", because("not-asked"))
    paths = (conf.CONF, conf.user_conf(trial.target.installer.home))
    found = {path: text for path in paths if (text := host.read(path)) is not None}
    said = next((path for path, text in found.items() if text == conf.conf_text(trial.machine, trial.answers, path)), None)
    if said is not None:
        return passed("nccl-conf", said)
    return failed("nccl-conf", because("file-differs" if found else "file-missing", path=next(iter(found), conf.CONF)))


def _switches(trial: Trial) -> tuple[Rung, ...]:
    """Return whether what was ticked in the BIOS step is true now, and what was said to be set in the BIOS; empty when nothing was."""
    ticked, said = trial.answers.firmware.linux or (), trial.answers.firmware.acknowledged or ()
    if not ticked and not said:
        return ()
    if not trial.running:
        return (skipped("switches", because("mounted")),)
    missing = tuning.missing(trial.machine, trial.answers)
    if missing:
        return (failed("switches", because("switches-missing", items=", ".join(missing))),)
    wrong = checklist.still_wrong(trial.machine, said)
    if wrong:
        # A person's word about the BIOS is not the plan's work: it is said, and fails nothing.
        return (skipped("switches", because("switches-still", items=", ".join(wrong))),)
    return (passed("switches", because("switches-true", items=", ".join((*ticked, *said)))),)


_SYSTEM: dict[str, Try] = {
    "device-nodes": device_nodes,
    "module": module_and_library,
    "cuda": computes,
    PACKAGES: package_database,
    "driver": driver_packages,
    "module-file": module_file,
    "nvcc": compiler,
    "nvcc-sample": sample,
    "cudnn": cudnn,
    "nccl": nccl_library,
    "nccl-conf": nccl_conf,
}


def _no_driver_here(trial: Trial) -> Words | None:
    """Return why nothing can be said about a loaded driver; `None` when something can."""
    if not trial.gpus:
        return because("no-gpu")
    if not trial.running:
        return because("mounted")
    if trial.branch is None and trial.machine.driver.state == "absent":
        return because("not-asked")
    return None


def _library(name: str, wanted: str | None, found: tuple[str | None, ...]) -> Rung:
    """Return whether a library of the wanted line is among those found."""
    if wanted in (None, "none"):
        return skipped(name, because("not-asked"))
    fitting = next((version for version in found if _of_line(version, str(wanted))), None)
    if fitting is not None:
        return passed(name, because("library-found"), _upstream(fitting))
    others = ", ".join(version for version in found if version)
    return failed(
        name, because("other-version", found=others, wanted=str(wanted)) if others else because("library-missing", wanted=str(wanted))
    )


def _of_line(version: str | None, line: str) -> bool:
    """Whether a package's version is of a line: "580.95.05-0ubuntu1" of "580", and not of "58"."""
    return re.match(rf"(?:\d+:)?{re.escape(line)}(?![\d])", version or "") is not None


def _upstream(version: str) -> str:
    """Return a package's version without epoch, revision and build."""
    return re.split(r"[-+~]", version.partition(":")[2] or version)[0]


# --- the environment ------------------------------------------------------------------------------


def _environment(host: Host, trial: Trial, broken: str | None) -> tuple[Rung, ...]:
    """Return the rungs of the Python environment and of every framework in it; what computes on GPUs is skipped after `broken`."""
    wanted = {name: version for name, version in trial.answers.frameworks.items() if name != "variant"}
    if not wanted and trial.answers.environment.path is None and trial.answers.environment.name is None:
        return (skipped("environment", because("not-asked")),)
    try:
        place = python.place(trial.answers, trial.target)
    except PreflightError:
        return (failed("environment", because("no-python", line=trial.answers.environment.python or "?")),)
    result = host.run((place.python, "-I", "-B", "-c", "import platform; print(platform.python_version())"), timeout=20.0)
    version = result.stdout.strip()
    if result.status != 0:
        return (failed("environment", because("no-environment", path=place.path)),)
    line = trial.answers.environment.python
    if line is not None and not _of_line(version, line):
        return (failed("environment", because("other-version", found=version, wanted=line), version),)
    rungs = [passed("environment", place.path, f"Python {version}")]
    if broken is not None:
        reason = because("after", rung=broken)
        computing = proof.TORCH_RUNGS[1:] if "torch" in wanted else ()
        return (*rungs, *(skipped(name, reason) for name in dict.fromkeys((*computing, *wanted))))
    on_gpus = 0 if trial.answers.frameworks.get("variant") == "cpu" else _expected(trial)
    if "torch" in wanted:
        rungs += proof.torch(host, place.python, wanted["torch"], trial.answers.frameworks.get("variant"), gpus=_expected(trial))
        if rungs[-1].id != "torch":
            bridged = any(one.kind.startswith("NV") for one in trial.machine.links)
            rungs += proof.speed(host, place.python, trial.gpus, gpus=on_gpus, burn=trial.burn, bridged=bridged)
    rungs += proof.imports(host, place.python, {name: one for name, one in wanted.items() if name != "torch"}, gpus=on_gpus)
    return tuple(rungs)


def _expected(trial: Trial) -> int:
    """Return how many GPUs programs should see here at least: none where the system that runs is not the target."""
    if not trial.running:
        return 0
    if any(card.mig for card in trial.gpus):
        # CUDA shows a program one slice of a partitioned card, and none of the others.
        return 1
    return len(trial.gpus) or int(bool(judged(trial.machine)))
