"""The ladder on machines that are made up of a few files and answers; the real training is in test_training.py."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path

import msgspec
import pytest

from steps import lines, verify
from steps.detect import summary
from steps.headless import runs
from steps.headless.console import Asked, Console
from steps.host.base import Result
from steps.model.hardware import Accelerator, Link
from steps.model.machine import Machine
from steps.model.plan import Installer, Target
from steps.model.profile import DriverAnswers, EnvironmentAnswers, NcclAnswers, Profile, ToolkitAnswers
from steps.model.software import Driver, Library, Os, Package
from steps.model.verdict import Rung, reach
from steps.text import Language, lookup, say

CARD = Accelerator(vendor="nvidia", address="0000:01:00.0", name="NVIDIA GeForce RTX 4090", architecture="ada")
GPUS = Machine(
    os=Os(kernel="6.8.0-51-generic"),
    accelerators=(CARD, msgspec.structs.replace(CARD, address="0000:41:00.0")),
    driver=Driver(
        state="working",
        kernel_version="580.95.05",
        library_version="580.95.05",
        packages=(Package(name="nvidia-open", version="580.95.05-1"),),
    ),
    cudnn=(Library(version="9.8.0.87-1", source="apt"),),
    nccl=(Library(version="2.26.2-1+cuda12.8", source="apt"),),
)
STACK = Profile(
    driver=DriverAnswers(branch="580", flavor="open"),
    toolkit=ToolkitAnswers(cuda="12.8", cudnn="9.8", nccl="2.26"),
    nccl=NcclAnswers(debug="WARN"),
)
ENVIRONMENT = Profile(environment=EnvironmentAnswers(path="/srv/dl", python="3.11"), frameworks={"torch": "2.13.0", "variant": "cpu"})
HERE = Target(installer=Installer(pythons={"3.11": "/usr/bin/python3.11"}, own_python="/usr/bin/python3.11"))
NVCC = "Cuda compilation tools, release 12.8, V12.8.93\n"
Line = Mapping[str, object]
GOOD: tuple[Line, ...] = (
    {"rung": "import", "state": "passed", "detail": "2.13.0+cpu"},
    {"rung": "gpu", "state": "skipped", "code": "cpu-build", "params": {"version": "2.13.0+cpu"}},
    {"rung": "amp", "state": "passed", "value": 0.06, "unit": "loss"},
    {"rung": "accumulation", "state": "passed"},
    {"rung": "ddp", "state": "passed", "detail": "2 ranks"},
    {"rung": "cudnn-conv", "state": "skipped", "code": "no-gpu"},
    {"rung": "speed", "state": "passed", "value": 1.4, "unit": "×"},
    {"rung": "peers", "state": "skipped", "code": "no-gpu"},
    {"rung": "bandwidth", "state": "skipped", "code": "no-gpu"},
    {"rung": "cuda", "state": "passed", "detail": "2 × RTX 4090", "value": 2, "unit": "GPUs"},
)


class FakeHost:
    """A machine of a few files and answers; a program that is not told of is not installed."""

    name = "fake"

    def __init__(self, files: dict[str, str] | None = None, answers: dict[str, Result] | None = None, *, rehearsal: bool = False) -> None:
        self.files = files or {}
        self.answers = answers or {}
        self.rehearsal = rehearsal
        self.root = "/"
        self.asked: list[tuple[str, ...]] = []

    def read(self, path: str) -> str | None:
        return self.files.get(path)

    def read_bytes(self, path: str) -> bytes | None:
        return self.files[path].encode() if path in self.files else None

    def exists(self, path: str) -> bool | None:
        return any(name == path or name.startswith(f"{path}/") for name in self.files)

    def listdir(self, path: str) -> tuple[str, ...] | None:
        return None

    def readlink(self, path: str) -> str | None:
        return None

    def glob(self, pattern: str) -> tuple[str, ...]:
        return tuple(sorted(name for name in self.files if fnmatch(name, pattern) and name.count("/") == pattern.count("/")))

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        self.asked.append(argv)
        for part, result in self.answers.items():
            if any(part in word for word in argv):
                return result
        return Result(status=127)

    def recorded(self) -> tuple[tuple[str, ...], ...]:
        return ()

    def command(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        return argv

    def free_bytes(self, path: str) -> int | None:
        return None


FILES = {
    "/dev/nvidia0": "",
    "/dev/nvidia1": "",
    "/dev/nvidiactl": "",
    "/lib/modules/6.8.0-51-generic/updates/dkms/nvidia.ko": "",
    "/etc/nccl.conf": "NCCL_DEBUG=WARN\n",
}
CUDA = Result(stdout='{"rung": "cuda", "state": "passed", "detail": "2 GPUs"}\n', status=0)
SAMPLE = Result(stdout='{"rung": "nvcc-sample", "state": "passed", "code": "nvcc-sample"}\n', status=0)
WHOLE = "bash\tamd64\t5.2\tii \ncuda-nvcc-12-8\tamd64\t12.8.93-1\tii \nold\tamd64\t1\trc \n"
ANSWERS = {
    "dpkg-query": Result(stdout=WHOLE, status=0),
    "cuLaunchKernel": CUDA,
    "cudaMallocManaged": SAMPLE,
    "/usr/local/cuda-12.8/bin/nvcc": Result(stdout=NVCC, status=0),
}


def proven(
    host: FakeHost, machine: Machine = GPUS, answers: Profile = STACK, target: Target = HERE, planned: int | None = None
) -> dict[str, Rung]:
    return {rung.id: rung for rung in verify.prove(host, machine, answers, target, planned=planned)}


def environment(*lines: Line, version: str = "3.11.9") -> FakeHost:
    """Return a machine whose programs all say these lines."""
    said = "".join(json.dumps(line) + "\n" for line in lines)
    return FakeHost(
        FILES,
        answers={
            "platform": Result(stdout=f"{version}\n", status=0),
            "verify": Result(stdout=f"noise\n{said}", status=0),
            "imported": Result(status=0),
        },
    )


def test_a_stack_as_planned_passes_every_rung_of_the_system() -> None:
    rungs = proven(FakeHost(FILES, ANSWERS))
    assert {name: rung.state for name, rung in rungs.items()} == {
        "device-nodes": "passed",
        "module": "passed",
        "cuda": "passed",
        "packages": "passed",
        "driver": "passed",
        "module-file": "passed",
        "nvcc": "passed",
        "nvcc-sample": "passed",
        "cudnn": "passed",
        "nccl": "passed",
        "nccl-conf": "passed",
        "environment": "skipped",
    }
    assert (rungs["nvcc"].detail, rungs["driver"].detail, rungs["cudnn"].detail, rungs["nccl"].detail) == (
        "12.8",
        "580.95.05",
        "9.8.0.87",
        "2.26.2",
    )


@pytest.mark.parametrize(
    ("rung", "files", "machine", "sentence"),
    [
        ("device-nodes", {"/dev/nvidia1": None}, GPUS, "1 of 2 device nodes are there. The driver did not take every GPU."),
        (
            "module",
            {},
            msgspec.structs.replace(GPUS, driver=Driver(state="mismatch", kernel_version="570.1", library_version="580.95.05")),
            "Module 570.1 is loaded, the libraries are 580.95.05. A reboot, or loading the module again, makes them equal.",
        ),
        (
            "module",
            {},
            msgspec.structs.replace(GPUS, driver=Driver(state="not-loaded")),
            "The driver is installed and not loaded. A reboot loads it.",
        ),
        ("driver", {}, msgspec.structs.replace(GPUS, driver=Driver(state="working")), "No package of driver 580 is installed."),
        (
            "module-file",
            {"/lib/modules/6.8.0-51-generic/updates/dkms/nvidia.ko": None, "/lib/modules/6.8.0-51-generic/modules.dep": ""},
            GPUS,
            "There is no nvidia module for kernel 6.8.0-51-generic. The next boot has no driver.",
        ),
        ("cudnn", {}, msgspec.structs.replace(GPUS, cudnn=()), "Version 9.8 was asked for and is not installed."),
        ("nccl", {}, msgspec.structs.replace(GPUS, nccl=(Library(version="2.27.7-1"),)), "Found 2.27.7-1, asked for 2.26."),
        ("nccl-conf", {"/etc/nccl.conf": "NCCL_DEBUG=INFO\n"}, GPUS, "/etc/nccl.conf says something else than was asked for."),
        ("nccl-conf", {"/etc/nccl.conf": None}, GPUS, "/etc/nccl.conf is not there."),
    ],
)
def test_a_broken_rung_says_what_was_seen(rung: str, files: dict[str, str | None], machine: Machine, sentence: str) -> None:
    host = FakeHost({name: text for name, text in {**FILES, **files}.items() if text is not None}, ANSWERS)
    found = proven(host, machine)[rung]
    assert (found.state, say("en", found.because)) == ("failed", sentence)


@pytest.mark.parametrize(
    ("package", "rungs"),
    [
        ("cuda-nvcc-12-8", {"packages", "nvcc"}),
        ("libcudnn9-cuda-12", {"packages", "cudnn"}),
        ("libnccl2", {"packages", "nccl"}),
        ("openssh-server", {"packages"}),
    ],
)
@pytest.mark.parametrize("status", ["iF ", "iU ", "iHR"])
def test_a_package_that_is_not_configured_breaks_the_rungs_that_rest_on_it(package: str, rungs: set[str], status: str) -> None:
    listed = "".join(line for line in WHOLE.splitlines(keepends=True) if not line.startswith(package))
    told = Result(stdout=f"{listed}{package}\tamd64\t1\t{status}\n", status=0)
    found = proven(FakeHost(FILES, {**ANSWERS, "dpkg-query": told}))
    assert {name for name, rung in found.items() if rung.state == "failed"} == rungs
    assert {say("en", found[name].because) for name in rungs} == {f"Not configured: {package}."}


def test_where_there_is_no_dpkg_its_rung_is_skipped() -> None:
    host = FakeHost(FILES, {name: told for name, told in ANSWERS.items() if name != "dpkg-query"})
    assert proven(host)["packages"].state == "skipped"
    assert proven(host)["nvcc"].state == "passed"


def test_how_far_a_proof_reaches() -> None:
    good, bad, left = Rung(id="nvcc", state="passed"), Rung(id="ddp", state="failed"), Rung(id="cuda", state="skipped")
    mounted = Rung(id="module", state="skipped", because=verify.because("mounted"))
    base = Rung(id="packages", state="passed")
    assert reach((good, bad, mounted)) == "failed"
    assert reach((base, left)) == reach((left,)) == reach((base, mounted)) == "nothing"
    assert reach((good, mounted)) == "mounted"
    assert reach((base, good, left)) == "proven"


def test_what_is_left_out_of_the_list_is_counted_and_what_was_left_out_of_the_run_is_named() -> None:
    rungs = proven(FakeHost(FILES, ANSWERS), target=msgspec.structs.replace(HERE, root="/mnt")).values()
    *rows, verdict = lines.verdict(rungs, "en", tried=True)
    assert verdict.startswith("Installed; proven as far as a mounted system can be: 7 passed, 5 have to wait")
    assert len(rows) == 7
    assert "Left out: CUDA 12.8, nvcc path." in list(lines.verdict(rungs, "en", without=("CUDA 12.8", "nvcc path")))


def test_what_stands_on_a_broken_rung_is_not_tried() -> None:
    mismatch = msgspec.structs.replace(GPUS, driver=Driver(state="mismatch", kernel_version="570.1", library_version="580.95.05"))
    host = environment(*GOOD)
    rungs = proven(host, mismatch, msgspec.structs.replace(ENVIRONMENT, frameworks={"torch": "2.13.0", "variant": "cu130"}))
    assert rungs["module"].state == "failed"
    later = {name: rungs[name].state for name in ("cuda", "torch", "gpu", "ddp", "bandwidth")}
    assert set(later.values()) == {"skipped"}
    assert say("en", rungs["ddp"].because) == "It rests on the rung module, which failed."
    assert not any("torch.distributed" in word for argv in host.asked for word in argv)


def test_a_device_node_that_this_account_may_not_open_breaks_the_first_rung() -> None:
    host = FakeHost(FILES, {**ANSWERS, "/dev/nvidia1": Result(status=1)})
    rung = proven(host)["device-nodes"]
    assert (rung.state, say("en", rung.because)) == (
        "failed",
        "/dev/nvidia1 may not be opened by this account. Its group or its mode keeps others out.",
    )


H100 = msgspec.structs.replace(CARD, name="NVIDIA H100 80GB HBM3", architecture="hopper")
H200, H200_NVL = (msgspec.structs.replace(H100, name=name) for name in ("NVIDIA H200", "NVIDIA H200 NVL"))
A100_PCIE = msgspec.structs.replace(CARD, name="NVIDIA A100 80GB PCIe", architecture="ampere")
BRIDGE = (Link(a=0, b=1, kind="NV12"), Link(a=0, b=2, kind="SYS"))


@pytest.mark.parametrize(
    ("card", "count", "links", "rate", "state", "expected"),
    [
        (H100, 8, (), 471.0, "passed", 460.0),
        (H100, 8, (), 88.0, "failed", 460.0),
        (H100, 4, (), 88.0, "passed", None),
        (H200, 8, (), 88.0, "failed", 431.0),
        # Four of these are joined by a bridge, never eight.
        (H200_NVL, 8, (), 88.0, "passed", None),
        (A100_PCIE, 4, BRIDGE, 19.0, "failed", 25.0),
        (A100_PCIE, 4, (), 19.0, "passed", None),
        (CARD, 8, (), 9.0, "passed", None),
    ],
)
def test_an_all_reduce_is_judged_only_where_a_source_says_what_such_a_machine_reaches(
    card: Accelerator, count: int, links: tuple[Link, ...], rate: float, state: str, expected: float | None
) -> None:
    measured: Line = {"rung": "bandwidth", "state": "passed", "value": rate, "unit": "GB/s"}
    files = {f"/dev/nvidia{at}": "" for at in range(count)}
    counting: Line = {"rung": "cuda", "state": "passed", "value": count, "unit": "GPUs"}
    said = {"bandwidth": measured, "cuda": counting}
    host = environment(*(said.get(str(line["rung"]), line) for line in GOOD))
    host.files = {**FILES, **files}
    machine = msgspec.structs.replace(GPUS, accelerators=(card,) * count, links=links)
    with_cuda = msgspec.structs.replace(ENVIRONMENT, frameworks={"torch": "2.13.0"})
    rung = proven(host, machine, with_cuda)["bandwidth"]
    assert (rung.state, rung.expected) == (state, expected)


def test_a_compiler_of_another_release_or_without_an_answer_fails() -> None:
    other = FakeHost(FILES, {**ANSWERS, "/usr/local/cuda-12.8/bin/nvcc": Result(stdout=NVCC.replace("12.8", "12.6"), status=0)})
    assert say("en", proven(other)["nvcc"].because) == "Found 12.6, asked for 12.8."
    assert proven(FakeHost(FILES))["nvcc"].state == "failed"


def test_a_line_is_not_its_longer_neighbour() -> None:
    machine = msgspec.structs.replace(GPUS, cudnn=(Library(version="9.80.1"),))
    assert proven(FakeHost(FILES, ANSWERS), machine)["cudnn"].state == "failed"


def test_a_mounted_target_has_no_running_driver_and_its_files_are_still_proven() -> None:
    rungs = proven(FakeHost(FILES, ANSWERS), target=msgspec.structs.replace(HERE, root="/mnt"))
    assert [name for name, rung in rungs.items() if rung.state == "skipped"] == [
        "device-nodes",
        "module",
        "cuda",
        "nvcc-sample",
        "environment",
    ]
    assert say("en", rungs["module"].because) == "The target is mounted, not running; its module is loaded at its own boot."
    assert rungs["nvcc"].state == "passed"


def test_without_a_gpu_and_without_a_plan_everything_is_skipped_and_nothing_passes() -> None:
    rungs = proven(FakeHost(), Machine(), Profile())
    assert {rung.state for rung in rungs.values()} == {"skipped"}
    assert say("en", rungs["module"].because) == "There is no GPU in this target."


def test_a_stack_that_was_planned_for_no_gpu_is_skipped_where_it_is_not_and_proven_where_it_is() -> None:
    bare = msgspec.structs.replace(GPUS, accelerators=(), driver=Driver(state="absent"))
    host = FakeHost({"/lib/modules/6.8.0-51-generic/modules.dep": ""})
    assert {rung.state for rung in proven(host, bare, planned=0).values() if rung.id not in ("cudnn", "nccl")} == {"skipped"}
    assert proven(FakeHost(FILES), msgspec.structs.replace(GPUS, accelerators=()), planned=0)["driver"].state == "passed"


@pytest.mark.parametrize(("cards", "planned"), [(0, None), (0, 2), (1, 2)])
def test_a_card_that_is_gone_from_the_bus_breaks_the_first_rung_and_all_that_computes(cards: int, planned: int | None) -> None:
    variant = {"torch": "2.13.0", "variant": "cu130"}
    answers = msgspec.structs.replace(STACK, environment=ENVIRONMENT.environment, frameworks=variant)
    rungs = proven(environment(*GOOD), msgspec.structs.replace(GPUS, accelerators=GPUS.accelerators[:cards]), answers, planned=planned)
    said = say("en", rungs["device-nodes"].because)
    assert rungs["device-nodes"].state == "failed"
    assert said == "1 of 2 GPUs are seen." if cards else said.startswith("No GPU is seen")
    assert rungs["nvcc"].state == "failed"  # nothing is excused
    assert {rungs[name].state for name in ("cuda", "torch", "amp", "ddp", "speed")} == {"skipped"}


def test_a_card_is_missed_only_where_driver_and_cuda_were_asked_for() -> None:
    bare = msgspec.structs.replace(GPUS, accelerators=(), driver=Driver(state="absent"))
    driver = Profile(driver=DriverAnswers(branch="580", flavor="open"))
    mounted = msgspec.structs.replace(HERE, root="/mnt")
    assert proven(FakeHost(), bare, driver)["device-nodes"].state == "skipped"
    assert proven(FakeHost(), bare, driver, planned=1)["device-nodes"].state == "failed"
    assert proven(environment(*GOOD), bare, ENVIRONMENT, planned=2)["device-nodes"].state == "skipped"
    assert proven(FakeHost(FILES, ANSWERS), bare, STACK, mounted, planned=2)["device-nodes"].state == "skipped"


@pytest.mark.parametrize(
    ("told", "count"),
    [
        ("4× RTX 4090 · Ubuntu 24.04.1", 4),
        ("RTX 5090 + 2× RTX 3090 Ti · Debian 12", 3),
        ("Ubuntu 24.04.1", 0),
        ("Debian 12", None),
        ("RTX 4090", None),
        ("", None),
    ],
)
def test_a_headline_says_how_many_cards_a_plan_was_made_for(told: str, count: int | None) -> None:
    here = Machine(os=Os(name="Ubuntu 24.04.1 LTS"))
    assert summary.cards_of(told, here) == count


def speeds(seen: Line) -> FakeHost:
    """Return a machine whose measuring program counts as `seen` says; the others see two GPUs."""
    host = counted("gpu", 2)
    whole = host.answers["verify"].stdout
    host.answers = {"MOST_BYTES": Result(stdout=f"{json.dumps(seen)}\n{whole}", status=0), **host.answers}
    return host


@pytest.mark.parametrize(
    ("seen", "sentence"),
    [
        ({"rung": "seen", "state": "passed", "value": 1}, "1 of 2 GPUs are seen."),
        ({"rung": "seen", "state": "passed", "value": 0}, "0 of 2 GPUs are seen."),
        (
            {"rung": "seen", "state": "failed", "code": "killed", "params": {"rank": 0, "signal": 11}},
            "Rank 0 was ended by signal 11.",
        ),
    ],
)
def test_a_card_that_is_lost_after_pytorch_saw_it_fails_what_is_measured(seen: Line, sentence: str) -> None:
    with_cuda = msgspec.structs.replace(ENVIRONMENT, frameworks={"torch": "2.13.0", "variant": "cu130"})
    rungs = proven(speeds(seen), GPUS, with_cuda)
    assert rungs["gpu"].state == "passed"
    assert (rungs["cudnn-conv"].state, say("en", rungs["cudnn-conv"].because)) == ("failed", sentence)
    assert {rungs[name].state for name in ("speed", "peers", "bandwidth")} == {"skipped"}
    whole = proven(speeds({"rung": "seen", "state": "passed", "value": 2}), GPUS, with_cuda)
    assert whole["speed"].state == "passed"
    none: Line = {"rung": "seen", "state": "passed", "value": 0}
    assert proven(speeds(none), Machine(), ENVIRONMENT)["speed"].state == "passed"


def test_nothing_is_tried_on_a_recording() -> None:
    host = FakeHost(FILES, ANSWERS, rehearsal=True)
    assert {rung.state for rung in proven(host).values()} == {"skipped"}
    assert host.asked == []


def test_an_environment_passes_with_the_lines_of_its_own_python() -> None:
    rungs = proven(environment(*GOOD), Machine(), ENVIRONMENT)
    states = {name: rungs[name].state for name in ("environment", "torch", "gpu", "amp", "accumulation", "ddp")}
    assert states == {
        "environment": "passed",
        "torch": "passed",
        "gpu": "skipped",
        "amp": "passed",
        "accumulation": "passed",
        "ddp": "passed",
    }
    assert (rungs["environment"].detail, rungs["torch"].detail) == ("Python 3.11.9", "2.13.0+cpu")
    assert (rungs["amp"].value, rungs["amp"].unit) == (0.06, "loss")


def test_the_programs_are_run_isolated_by_the_environments_own_python() -> None:
    host = environment(*GOOD)
    proven(host, Machine(), ENVIRONMENT)
    assert [argv[:3] for argv in host.asked[-1:]] == [("/srv/dl/bin/python", "-I", "-c")]


def test_an_environment_that_is_not_there_or_of_another_python_fails() -> None:
    missing = proven(FakeHost(), Machine(), ENVIRONMENT)["environment"]
    assert (missing.state, say("en", missing.because)) == ("failed", "There is no environment in /srv/dl.")
    other = proven(environment(*GOOD, version="3.12.1"), Machine(), ENVIRONMENT)["environment"]
    assert (other.state, say("en", other.because)) == ("failed", "Found 3.12.1, asked for 3.11.")


def test_another_version_of_torch_than_planned_fails() -> None:
    first: Line = {"rung": "import", "state": "passed", "detail": "2.12.0+cpu"}
    rung = proven(environment(first, *GOOD[1:]), Machine(), ENVIRONMENT)["torch"]
    assert (rung.state, say("en", rung.because)) == ("failed", "Found 2.12.0+cpu, asked for 2.13.0.")


def test_a_program_that_dies_takes_only_the_rungs_it_did_not_reach() -> None:
    host = environment(*GOOD[:2])
    host.answers["verify"] = Result(stdout=host.answers["verify"].stdout, stderr="Illegal instruction\n", status=132)
    rungs = proven(host, Machine(), ENVIRONMENT)
    assert rungs["torch"].state == "passed"
    assert (rungs["ddp"].state, say("en", rungs["ddp"].because)) == ("failed", "It ended with status 132: Illegal instruction")


def test_a_gpu_that_torch_does_not_see_fails_where_there_is_one_and_is_skipped_where_there_is_none() -> None:
    blind: tuple[Line, ...] = ({"rung": "gpu", "state": "failed", "text": "RuntimeError: Found no NVIDIA driver on your system."},)
    with_cuda = msgspec.structs.replace(ENVIRONMENT, frameworks={"torch": "2.13.0", "variant": "cu130"})
    lines = (GOOD[0], *blind, *GOOD[2:])
    seen = proven(environment(*lines), GPUS, with_cuda)["gpu"]
    assert (seen.state, say("en", seen.because)) == ("failed", "RuntimeError: Found no NVIDIA driver on your system.")
    assert proven(environment(*lines), Machine(), with_cuda)["gpu"].state == "skipped"


def counted(rung: str, seen: int, hiding: Result | None = None) -> FakeHost:
    """Return a machine whose programs see so many GPUs."""
    said: dict[str, Line] = {
        "cuda": {"rung": "cuda", "state": "passed", "value": seen, "unit": "GPUs"},
        "gpu": {"rung": "gpu", "state": "passed", "value": seen, "unit": "GPUs"},
        "jax": {"rung": "jax", "state": "passed", "detail": "0.12.0", "devices": seen},
    }
    host = environment(*(line for line in GOOD if line["rung"] != rung), said[rung])
    told = Result(stdout=json.dumps(said["jax"]) + "\n", status=0)
    host.answers = {"printenv": hiding or Result(status=1), "importlib.metadata": told, **host.answers}
    return host


@pytest.mark.parametrize("rung", ["cuda", "gpu", "jax"])
@pytest.mark.parametrize(
    ("seen", "hiding", "state", "sentence"),
    [
        (2, None, "passed", ""),
        (1, None, "failed", "1 of 2 GPUs are seen."),
        (1, Result(stdout="0\n", status=0), "failed", "1 of 2 GPUs are seen: CUDA_VISIBLE_DEVICES=0 hides the others."),
    ],
)
def test_programs_that_see_fewer_gpus_than_there_are_break_their_rung(
    rung: str, seen: int, hiding: Result | None, state: str, sentence: str
) -> None:
    host = counted(rung, seen, hiding)
    with_cuda = msgspec.structs.replace(ENVIRONMENT, frameworks={"torch": "2.13.0", "variant": "cu130", "jax": "0.12.0"})
    found = proven(host, GPUS, with_cuda)[rung]
    assert found.state == state
    assert not sentence or say("en", found.because) == sentence


def test_cards_that_the_answers_leave_out_or_that_are_partitioned_are_not_asked_for() -> None:
    with_cuda = msgspec.structs.replace(ENVIRONMENT, frameworks={"torch": "2.13.0", "variant": "cu130"})
    one = msgspec.structs.replace(with_cuda, driver=DriverAnswers(ignore=("0000:41:00.0",)))
    assert proven(counted("gpu", 1), GPUS, one)["gpu"].state == "passed"
    sliced = tuple(msgspec.structs.replace(card, mig=True) for card in GPUS.accelerators)
    assert proven(counted("gpu", 1), msgspec.structs.replace(GPUS, accelerators=sliced), with_cuda)["gpu"].state == "passed"


def test_a_build_for_the_processor_fails_where_a_gpu_build_was_planned() -> None:
    with_cuda = msgspec.structs.replace(ENVIRONMENT, frameworks={"torch": "2.13.0", "variant": "cu130"})
    assert proven(environment(*GOOD), GPUS, with_cuda)["gpu"].state == "failed"
    assert proven(environment(*GOOD), GPUS, ENVIRONMENT)["gpu"].state == "skipped"


def test_a_rank_that_hangs_is_named_with_the_place_it_stood_at() -> None:
    hung: Line = {"rung": "ddp", "state": "failed", "code": "hung", "params": {"rank": 1, "seconds": 60, "where": "x.py:3 in f"}}
    rung = proven(environment(*GOOD[:4], hung), Machine(), ENVIRONMENT)["ddp"]
    assert say("en", rung.because) == "Rank 1 did not answer within 60 s and was ended. It stood at x.py:3 in f."


def test_other_frameworks_are_imported_too() -> None:
    host = environment(*GOOD)
    host.answers = {
        "importlib.metadata": Result(
            stdout=json.dumps({"rung": "jax", "state": "passed", "detail": "0.12.0", "devices": 0}) + "\n", status=0
        ),
        **host.answers,
    }
    profile = msgspec.structs.replace(ENVIRONMENT, frameworks={"jax": "0.12.0"})
    assert proven(host, Machine(), profile)["jax"].state == "passed"
    assert say("en", proven(host, GPUS, profile)["jax"].because) == "0 of 2 GPUs are seen."


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_every_reason_has_its_words(language: Language) -> None:
    hosts = (FakeHost(FILES, ANSWERS), FakeHost(), environment(*GOOD))
    for host in hosts:
        for rung in (*proven(host).values(), *proven(host, Machine(), ENVIRONMENT).values()):
            assert lookup(language, f"verify.rung.{rung.id}")
            words = say(language, rung.because)
            assert "verify." not in words
            assert "{" not in words


def test_where_only_the_package_database_was_looked_at_it_is_not_said_that_nothing_was() -> None:
    rungs = (Rung(id="packages", state="passed"), Rung(id="nvcc", state="skipped"))
    assert list(lines.verdict(rungs, "en"))[-1] == "Nothing but the package database could be looked at here: 1 skipped."
    assert list(lines.verdict(rungs, "zh_CN"))[-1].startswith("这里只能检查软件包数据库")


def test_a_verb_that_could_try_nothing_says_so() -> None:
    capture = str(Path(__file__).parent / "machines" / "rtx4090x4-epyc.json")
    said: list[str] = []
    console = Console(Asked(machine=capture, offline=True), said.append, said.append)
    assert runs.verify(console, {}) == 0
    assert said[-1].startswith("Nothing could be tried here: ")
