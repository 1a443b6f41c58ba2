"""The programs of assets/training in a real environment: PyTorch for the processor, made by uv, and what the proof says of it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from steps import proof, resources, verify
from steps.detect.machine import detect
from steps.host.local import LocalHost
from steps.managers import installer
from steps.model.machine import Machine
from steps.model.plan import Installer, Target
from steps.model.profile import EnvironmentAnswers, Profile
from steps.text import say
from tests import namespaces

TORCH = "torch==2.13.0+cpu"
INDEX = "https://download.pytorch.org/whl/cpu"
pytestmark = pytest.mark.net


def fetching() -> Installer:
    """Return how packages are fetched here; the uv beside the tests' own Python counts too."""
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"}
    return installer.settings(LocalHost(), environ, home=str(Path.home()), user=None, uid=os.getuid())


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment with PyTorch for the processor; skips where neither its wheel nor its index can be had."""
    here = fetching()
    interpreter = here.pythons.get("3.11")
    if here.uv is None or interpreter is None:
        pytest.skip("needs uv and Python 3.11")
    place = tmp_path_factory.mktemp("environments") / "cpu-torch"
    links = [option for link in here.find_links for option in ("--find-links", link)]
    index = [] if links else ["--extra-index-url", INDEX]
    environ = {**os.environ, "UV_NATIVE_TLS": "1", "UV_NO_PROGRESS": "1"}
    subprocess.run((here.uv, "venv", "--no-project", "--python", interpreter, place), check=True, capture_output=True, env=environ)
    install = (here.uv, "pip", "install", "--python", f"{place}/bin/python", *links, *index, TORCH)
    made = subprocess.run(install, check=False, capture_output=True, text=True, env=environ)
    if made.returncode:
        pytest.skip(f"{TORCH} cannot be had here: {made.stderr.strip().splitlines()[-1:]}")
    return place


def lines(environment: Path, *argv: str, program: str = "verify_torch.py") -> dict[str, dict[str, Any]]:
    """Return what one of the proof's programs says, by rung; it is run as the ladder runs it, from its text."""
    text = proof.program_text(program)
    done = subprocess.run((environment / "bin/python", "-I", "-c", text, *argv), capture_output=True, text=True, check=True, timeout=200)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line["rung"]: line for line in found}


def test_the_ladder_proves_training_in_two_processes_in_an_environment_of_the_processor(environment: Path) -> None:
    profile = Profile(
        environment=EnvironmentAnswers(path=str(environment), python="3.11"), frameworks={"torch": "2.13.0", "variant": "cpu"}
    )
    host = LocalHost()
    rungs = {rung.id: rung for rung in verify.prove(host, Machine(), profile, Target(installer=fetching()))}
    states = {name: rungs[name].state for name in proof.TORCH_RUNGS}
    assert states == {
        "environment": "passed",
        "torch": "passed",
        "gpu": "skipped",
        "amp": "passed",
        "accumulation": "passed",
        "ddp": "passed",
        "cudnn-conv": "skipped",
        "speed": "passed",
        "peers": "skipped",
        "bandwidth": "skipped",
    }
    assert rungs["torch"].detail == "2.13.0+cpu"
    assert "2 ranks over gloo" in say("en", rungs["ddp"].because)
    accumulation, ddp = rungs["accumulation"], rungs["ddp"]
    assert accumulation.value is not None
    assert accumulation.value <= 1e-6
    assert ddp.value is not None
    assert ddp.expected is not None
    assert ddp.value < ddp.expected


def test_a_number_of_ranks_that_does_not_divide_the_batch_is_no_fault_of_the_machine(environment: Path) -> None:
    ddp = lines(environment, "--only", "ddp", "--ranks", "3")["ddp"]
    assert (ddp["state"], ddp["params"]["ranks"]) == ("passed", 3)
    assert float(ddp["params"]["off"]) <= 1e-6


def test_a_rank_that_hangs_is_ended_in_time_and_named(environment: Path) -> None:
    found = lines(environment, "--only", "ddp", "--hang", "1", "--limit", "8")
    assert (found["ddp"]["state"], found["ddp"]["code"]) == ("failed", "hung")
    assert found["ddp"]["params"]["rank"] == 1
    assert found["ddp"]["params"]["where"].endswith("in one_rank")
    ranks = subprocess.run(("pgrep", "-f", str(environment)), capture_output=True, text=True, check=False).stdout.split()
    assert ranks == []


def test_what_is_measured_between_ranks_and_under_load_is_measured_on_the_processor_too(environment: Path, tmp_path: Path) -> None:
    watch = tmp_path / "nvidia-smi"
    watch.write_text(
        # More than a pipe holds comes before what is to be seen.
        "#!/bin/sh\ncase $* in *-lms*) ;; *) exit 0 ;; esac\nyes '1, 60, 1500, 300.1, 0x4' | head -n 8000\n"
        "while :; do echo '0, 83, 1500, 300.1, 0x0000000000000040'; echo '1, 61, 1500, 300.1, 0x4'; sleep 0.2; done\n"
    )
    log = tmp_path / "dmesg"
    log.write_text("#!/bin/sh\necho '[ 1.0] NVRM: loading'\n")
    watch.chmod(0o755)
    log.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        found = lines(environment, "--processor", "2", program="verify_speed.py")
        found |= lines(environment, "--processor", "2", "--seconds", "1", program="verify_burn.py")
    assert found["bandwidth"]["params"]["backend"] == "gloo"
    assert found["bandwidth"]["value"] > 0
    assert found["speed"]["unit"] == "×"
    assert (found["burn"]["code"], found["burn"]["params"]) == ("burn-slowed", {"seconds": 1, "hottest": 83, "clock": 1500, "gpus": "0"})
    assert found["peers"]["state"] == found["cudnn-conv"]["state"] == "skipped"


def test_the_sample_trains_with_two_processes_to_a_low_loss(environment: Path) -> None:
    sample = resources.path_of("training", "ddp_amp.py")
    start = (environment / "bin/python", "-I", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", sample)
    done = subprocess.run(start, capture_output=True, text=True, check=True, timeout=200, env={**os.environ, "OMP_NUM_THREADS": "1"})
    losses = [float(line.split()[-1]) for line in done.stdout.splitlines() if line.startswith("step")]
    assert losses[0] > 0.3
    assert losses[-1] < 0.06


def ranks(environment: Path, count: int, port: int, *argv: str, nodes: tuple[str, ...] = ()) -> str:
    """Return what the first rank of a sample prints; they are started as torchrun does, each in a node of its own if there are.

    gloo's own thread now and then aborts a rank whose peer has left first; whether its work was done, what it printed tells.
    """
    found = []
    for rank in range(count):
        address = "10.77.0.1" if nodes else "127.0.0.1"
        told = {"RANK": str(rank), "LOCAL_RANK": "0" if nodes else str(rank), "WORLD_SIZE": str(count)}
        told |= {"MASTER_ADDR": address, "MASTER_PORT": str(port), **({"GLOO_SOCKET_IFNAME": "eno1"} if nodes else {})}
        environ = {**os.environ, **told, "OMP_NUM_THREADS": "1"}
        program: tuple[str, ...] = (f"{environment}/bin/python", "-I", str(resources.path_of("training", argv[0])), *argv[1:])
        if nodes:
            program = ("ip", "netns", "exec", nodes[rank], *program)
        found.append(subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ))
    printed = [process.communicate(timeout=120) for process in found]
    unharmed = (0, -signal.SIGABRT) if count > 1 else (0,)
    assert all(process.returncode in unharmed for process in found), [complaints[-2000:] for _, complaints in printed]
    return printed[0][0]


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port


def test_a_run_that_goes_on_from_a_checkpoint_ends_with_the_same_weights(environment: Path, tmp_path: Path) -> None:
    steps = ("--steps", "20", "--every", "5")
    whole = ranks(environment, 2, free_port(), "checkpoint_resume.py", "--folder", str(tmp_path / "whole"), *steps)
    broken = ranks(environment, 2, free_port(), "checkpoint_resume.py", "--folder", str(tmp_path / "run"), *steps, "--stop-after", "13")
    assert "done" not in broken
    resumed = ranks(environment, 2, free_port(), "checkpoint_resume.py", "--folder", str(tmp_path / "run"), *steps)
    assert resumed.splitlines() == ["going on at step 10", whole.splitlines()[-1]]


def test_the_sample_trains_with_one_process_too(environment: Path) -> None:
    printed = ranks(environment, 1, free_port(), "ddp_amp.py")
    losses = [float(line.split()[-1]) for line in printed.splitlines() if line.startswith("step")]
    assert losses[0] > 0.3
    assert losses[-1] < 0.06


@pytest.mark.parametrize("sample", ["ddp_amp.py", "checkpoint_resume.py"])
def test_a_sample_that_is_started_by_itself_says_the_line_to_type(environment: Path, sample: str, tmp_path: Path) -> None:
    path = str(resources.path_of("training", sample))
    alone = {name: value for name, value in os.environ.items() if name != "RANK"}
    done = subprocess.run(
        (f"{environment}/bin/python", path), capture_output=True, text=True, check=False, timeout=200, env=alone, cwd=tmp_path
    )
    said = done.stderr.strip().splitlines()
    assert (done.returncode, said[-1]) == (1, f"start me with: {environment}/bin/torchrun --standalone --nproc-per-node 1 {path}")
    assert "Traceback" not in done.stderr


@namespaces.as_root
def test_ranks_on_two_machines_train_over_the_interface_that_was_chosen(environment: Path) -> None:
    with namespaces.cabled() as nodes:
        printed = ranks(environment, 2, 29500, "ddp_amp.py", "--steps", "12", nodes=nodes)
    losses = [float(line.split()[-1]) for line in printed.splitlines() if line.startswith("step")]
    assert losses[-1] < losses[0]


def made(folder: Path, *requirements: str) -> Path:
    """Return an environment with these packages of the index; skips where they cannot be had."""
    here = fetching()
    interpreter = here.pythons.get("3.11")
    if here.uv is None or interpreter is None:
        pytest.skip("needs uv and Python 3.11")
    environ = {**os.environ, "UV_NATIVE_TLS": "1", "UV_NO_PROGRESS": "1"}
    subprocess.run((here.uv, "venv", "--no-project", "--python", interpreter, folder), check=True, capture_output=True, env=environ)
    install = (here.uv, "pip", "install", "--python", f"{folder}/bin/python", *requirements)
    done = subprocess.run(install, check=False, capture_output=True, text=True, env=environ)
    if done.returncode:
        pytest.skip(f"{requirements} cannot be had here: {done.stderr.strip().splitlines()[-1:]}")
    return folder


def losses(environment: Path, program: str, *options: str, **environ: str) -> list[float]:
    """Return the losses that a sample prints."""
    argv = (f"{environment}/bin/python", "-I", str(resources.path_of("training", program)), *options)
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=300, env={**os.environ, **environ})
    return [float(line.split("loss")[1].split()[0]) for line in done.stdout.splitlines() if "loss" in line]


def test_the_jax_sample_learns_on_one_device_and_on_three(tmp_path: Path) -> None:
    jax = made(tmp_path / "jax", "jax[cpu]")
    for count in (1, 3):
        found = losses(jax, "jax_train.py", XLA_FLAGS=f"--xla_force_host_platform_device_count={count}")
        assert found[0] > 0.5
        assert found[-1] < 0.1


@pytest.mark.long
def test_the_tensorflow_sample_learns_on_one_device_and_on_two(tmp_path: Path) -> None:
    tensorflow = made(tmp_path / "tf", "tensorflow-cpu")
    for count in (1, 2):
        found = losses(tensorflow, "tensorflow_train.py", "--processors", str(count))
        assert found[-1] < 0.5 * found[0]


def test_the_samples_are_written_for_todays_pytorch() -> None:
    for name in ("ddp_amp.py", "verify_torch.py"):
        text = resources.read_text("training", name)
        assert "torch.cuda.amp" not in text
        assert "torch.autocast(" in text


def test_this_machine_is_looked_at_without_a_fault_by_the_whole_ladder() -> None:
    host = LocalHost()
    rungs = verify.prove(host, detect(host), Profile(), Target())
    assert all(rung.state != "failed" for rung in rungs)
