"""Repairs that only a running system can prove: what the kernel shows after the reboot, and what an environment's own Python imports."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.lab.lab import LabMachine
from tests.lab.test_reboot_pending import bringup, cause_of, inhabit, load, states
from tests.lab.test_whole_path import packages, settings

pytestmark = [pytest.mark.lab, pytest.mark.long]

_VERSION = "570.124.06"


def _paste(machine: LabMachine, text: str) -> str:
    """Return the path of a log that a person pasted, which lies outside of what is compared."""
    machine.path("/run/pasted.log").write_text(text)
    return "/run/pasted.log"


def _looks(machine: LabMachine) -> tuple[str, Mapping[str, str]]:
    return packages(machine), settings(machine)


# --- what the kernel shows after a reboot -----------------------------------------------------------


def _boot(machine: LabMachine) -> None:
    """Start the machine anew: the module tells what its options made of it, and the tools answer."""
    told = machine.run("sh", "-c", "modprobe -c | grep -c '^options nvidia .*NVreg_RestrictProfilingToAdminUsers=0'")
    load(machine, _VERSION)
    machine.path("/proc/driver/nvidia/params").write_text(f"RmProfilingAdminOnly: {int(told.stdout.strip() == '0')}\n")


def test_counters_are_for_all_once_the_module_that_was_loaded_anew_says_so(machine: LabMachine) -> None:
    inhabit(machine)
    _boot(machine)
    log = _paste(machine, "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters\n")
    before = _looks(machine)
    assert cause_of(machine, "--log", log)["id"] == "operation-needs-admin-rights"

    asked = bringup(machine, "doctor", "--fix", "--yes", "--json", "--log", log)
    assert asked.returncode == 10, asked.stdout + asked.stderr
    _boot(machine)
    done = bringup(machine, "resume", "--yes", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert states(done)["repair.proof"] == "done"
    assert "RmProfilingAdminOnly: 0" in machine.path("/proc/driver/nvidia/params").read_text()

    undone = bringup(machine, "undo", "--yes", "--json")
    assert undone.returncode == 0, undone.stdout + undone.stderr
    assert _looks(machine) == before
    _boot(machine)
    assert "RmProfilingAdminOnly: 1" in machine.path("/proc/driver/nvidia/params").read_text()


def test_counters_that_the_next_boot_leaves_as_they_were_are_no_proof(machine: LabMachine) -> None:
    inhabit(machine)
    _boot(machine)
    log = _paste(machine, "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters\n")
    assert bringup(machine, "doctor", "--fix", "--yes", "--json", "--log", log).returncode == 10
    # Another file, which modprobe reads later, says otherwise.
    _boot(machine)
    machine.path("/proc/driver/nvidia/params").write_text("RmProfilingAdminOnly: 1\n")
    done = bringup(machine, "resume", "--yes", "--json")
    assert done.returncode == 20, done.stdout + done.stderr
    assert states(done)["repair.proof"] == "failed"


# --- what an environment's own Python imports -------------------------------------------------------

_ENV, _TOOLKIT, _PROFILE = "/opt/lab-env", "/usr/local/cuda/lib64", "/etc/profile.d/cuda.sh"
_NAME = "libcublasLt.so.12"
_SETS = f"export PATH=/usr/local/cuda/bin:$PATH\nexport LD_LIBRARY_PATH={_TOOLKIT}\n"


def _built(folder: Path, source: str, out: str, *words: str) -> None:
    """Build a shared library that needs no other."""
    path = folder / out
    path.parent.mkdir(parents=True, exist_ok=True)
    (folder / "source.c").write_text(source)
    argv = ("gcc", "-shared", "-fPIC", "-nostdlib", "-o", str(path), str(folder / "source.c"), *words)
    subprocess.run(argv, check=True, capture_output=True)


def _libraries(folder: Path) -> None:
    """Build PyTorch's library and the one that it needs as wheels bring them, and an older one of the same name as a toolkit has it."""
    (folder / "versions").write_text(f"{_NAME} {{ global: *; }};\n")
    soname = (f"-Wl,-soname,{_NAME}", f"-Wl,--version-script,{folder}/versions")
    wheel = f"site/nvidia/cublas/lib/{_NAME}"
    _built(folder, "int cublasLtGetVersion(void) { return 120805; }", wheel, *soname)
    _built(folder, "int cublasLtCreate(void) { return 0; }", f"toolkit/{_NAME}", *soname)
    _built(
        folder,
        "extern int cublasLtGetVersion(void); int start(void) { return cublasLtGetVersion(); }",
        "site/torch/lib/libtorch_cuda.so",
        str(folder / wheel),
        "-Wl,--enable-new-dtags,-rpath,$ORIGIN/../../nvidia/cublas/lib",
    )
    torch = "import ctypes, os\nctypes.CDLL(os.path.join(os.path.dirname(__file__), 'lib/libtorch_cuda.so'), os.RTLD_NOW)\n"
    (folder / "site/torch/__init__.py").write_text(f"{torch}class version:\n    cuda = '12.8'\n")
    info = folder / "site/torch-2.8.0+cu128.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.8.0+cu128\n")


def _environment(machine: LabMachine, folder: Path) -> None:
    """Make a real environment with these libraries, and a toolkit beside it."""
    _libraries(folder)
    machine.run(sys.executable, "-I", "-m", "venv", "--without-pip", _ENV)
    site = f"{_ENV}/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    for made, place in ((folder / "site", site), (folder / "toolkit", _TOOLKIT)):
        shutil.copytree(made, machine.path(place), dirs_exist_ok=True)


def _import(machine: LabMachine) -> subprocess.CompletedProcess[str]:
    """Import PyTorch as somebody does who logs in."""
    return machine.run("sh", "-lc", f"echo '$ env'; env | grep LD_; {_ENV}/bin/python -c 'import torch'")


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a compiler for libraries that shadow each other")
def test_a_toolkit_before_the_wheels_own_libraries_goes_and_the_environment_itself_proves_it(machine: LabMachine, tmp_path: Path) -> None:
    inhabit(machine)
    _environment(machine, tmp_path)
    assert _import(machine).returncode == 0
    machine.path(_PROFILE).write_text(_SETS)
    told = _import(machine)
    assert f"undefined symbol: cublasLtGetVersion, version {_NAME}" in told.stderr
    log = _paste(machine, told.stdout + told.stderr)
    before = _looks(machine)
    assert cause_of(machine, "--log", log)["id"] == "ld-library-path-shadows-bundled-libs"

    done = bringup(machine, "doctor", "--fix", "--yes", "--json", "--log", log)
    assert done.returncode == 0, done.stdout + done.stderr
    assert states(done)["repair.proof"] == "done"
    assert _import(machine).returncode == 0

    undone = bringup(machine, "undo", "--yes", "--json")
    assert undone.returncode == 0, undone.stdout + undone.stderr
    assert _looks(machine) == before
    assert "undefined symbol" in _import(machine).stderr


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a compiler for libraries that shadow each other")
def test_a_search_path_that_another_file_sets_as_well_is_no_proof(machine: LabMachine, tmp_path: Path) -> None:
    inhabit(machine)
    _environment(machine, tmp_path)
    machine.path(_PROFILE).write_text(_SETS)
    machine.path("/root/.profile").write_text(f"export LD_LIBRARY_PATH={_TOOLKIT}\n")
    told = _import(machine)
    log = _paste(machine, told.stdout + told.stderr)
    done = bringup(machine, "doctor", "--fix", "--yes", "--json", "--log", log)
    assert done.returncode == 20, done.stdout + done.stderr
    assert states(done)["repair.proof"] == "failed"
