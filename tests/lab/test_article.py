"""The article's own way, its commands one after the other, against our plan for the same result: repositories, packages, environment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.lab import lab as laboratory
from tests.lab import vm
from tests.lab.lab import Lab, LabMachine
from tests.test_training import fetching

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.net]

MOST = 0.6
"""What our plan may take of the time of the article's commands."""
CAPTURE = Path(__file__).resolve().parents[1] / "machines" / "rtx4090x4-epyc.json"
WHEELS, PLACE = "/srv/wheels", "/opt/envs/dl"
FRAMEWORKS = {"torch": "2.13.0", "variant": "cpu", "transformers": None, "matplotlib": None, "pandas": None}
PROFILE = f"""\
schema = 1
[driver]
branch = "570"
flavor = "open"
source = "nvidia-repo"
[toolkit]
cuda = "12.8"
cudnn = "9.8"
nccl = "2.26"
[nccl]
interface = "eno1np0"
[environment]
manager = "uv"
path = "{PLACE}"
python = "3.11"
[frameworks]
"""
KEYRING = "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/cuda-keyring_1.1-1_all.deb"
ARTICLE = f"""\
set -e
export DEBIAN_FRONTEND=noninteractive
python3 -c "import urllib.request as web; web.urlretrieve('{KEYRING}', '/tmp/keyring.deb')"
dpkg -i /tmp/keyring.deb
apt-get update
apt-get -y install nvidia-open
apt-get -y install cuda-toolkit-12-8
apt-get -y install libcudnn9-cuda-12
apt-get -y install libnccl2 libnccl-dev
printf 'NCCL_SOCKET_IFNAME=eno1np0\\n' >/etc/nccl.conf
python3 -m venv {PLACE}
{PLACE}/bin/pip install --no-input REQUIREMENTS
"""
PROMISED = {"nvidia-open", "cuda-toolkit-12-8", "libcudnn9-cuda-12", "libnccl2"}
"""What both have to end with."""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with every wheel that the environment needs, uv among them: both ways read it, neither the network."""
    here, folder = fetching(), tmp_path_factory.mktemp("wheels")
    interpreter = here.pythons.get("3.11")
    if interpreter is None or not here.find_links:
        pytest.skip("needs Python 3.11 and a folder with PyTorch's wheel for the processor")
    links = [word for link in here.find_links for word in ("--find-links", link)]
    argv = (interpreter, "-m", "pip", "download", "-q", "-d", str(folder), *links, "--only-binary", ":all:", *requirements(), "uv")
    got = subprocess.run(argv, capture_output=True, text=True, check=False)
    if got.returncode:
        pytest.skip(f"the wheels cannot be had here: {got.stderr.strip().splitlines()[-1:]}")
    return folder


@pytest.fixture(scope="module")
def lab_with_python(lab: Lab, wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Return a lab whose root has Debian's Python and the wheels."""
    root = Path(tmp_path_factory.mktemp("article")) / "root"
    subprocess.run(("cp", "-a", "--", str(lab.root), str(root)), check=True)
    # From the archive of the machine that tests, as the root itself was made; the root's own sources stay as they are.
    apart = ("-o", "Dir::Etc::SourceList=/tmp/list", "-o", "Dir::Etc::SourceParts=/dev/null", "-o", "Dir::State::Lists=/tmp/lists")
    (root / "tmp/lists/partial").mkdir(parents=True)
    (root / "tmp/list").write_text(f"deb {vm.archive()} bookworm main\n")
    for name in ("hosts", "resolv.conf"):
        shutil.copy(root / "etc" / name, root / "tmp" / name)
        shutil.copy(Path("/etc") / name, root / "etc" / name)
    try:
        for words in (("update",), ("-y", "--no-install-recommends", "install", "python3-venv")):
            argv = ("chroot", str(root), "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", *apart, *words)
            subprocess.run(argv, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    finally:
        for name in ("hosts", "resolv.conf"):
            shutil.move(root / "tmp" / name, root / "etc" / name)
    shutil.rmtree(root / "tmp/lists")
    shutil.copytree(wheels, root / WHEELS.lstrip("/"))
    (root / "etc/pip.conf").write_text(f"[global]\nno-index = true\nfind-links = {WHEELS}\n")
    return Lab(root=root, repositories=lab.repositories)


def requirements() -> tuple[str, ...]:
    """Return what pip is asked for."""
    return tuple(name if version is None else f"{name}=={version}" for name, version in FRAMEWORKS.items() if name != "variant")


def ended_with(machine: LabMachine) -> tuple[set[str], set[str]]:
    """Return the promised packages that are installed, and the distributions of the environment but for its tools."""
    listed = machine.run("dpkg-query", "-W", "-f", "${db:Status-Abbrev} ${Package}\n").stdout.splitlines()
    installed = {line.split()[1] for line in listed if line.startswith("ii ")}
    folders = machine.path(PLACE).glob("lib/python3*/site-packages/*.dist-info")
    return installed & PROMISED, {path.name for path in folders if not path.name.startswith(("pip-", "setuptools-"))}


def by_the_article(lab: Lab) -> tuple[float, tuple[set[str], set[str]]]:
    """Return the seconds that the article's commands take on a fresh machine, and what they end with."""
    with laboratory.machine(lab) as machine:
        began = time.monotonic()
        done = machine.run("sh", "-c", ARTICLE.replace("REQUIREMENTS", " ".join(requirements())), timeout=1200)
        took = time.monotonic() - began
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return took, ended_with(machine)


def by_our_plan(lab: Lab, profile: Path) -> tuple[float, tuple[set[str], set[str]]]:
    """Return the seconds from our command to its end, planning and checks included, and what it ends with."""
    # Nothing of this machine's own settings for pip and uv, whose folders are not in the root.
    bare = ("env", "-i", f"PATH={os.environ['PATH']}", "HOME=/root", "LANG=C.UTF-8")
    with laboratory.machine(lab) as machine:
        words = ("--root", machine.root, "--machine", str(CAPTURE), "--profile", str(profile), "--yes", "--json")
        began = time.monotonic()
        done = machine.run(*bare, *(sys.executable, "-I", "-m", "tui", "apply", *words), inside=False, timeout=1200)
        took = time.monotonic() - began
        assert done.returncode in (0, 10, 20), done.stdout[-3000:] + done.stderr[-3000:]
        assert json.loads(done.stdout)["state"] == "done"
        return took, ended_with(machine)


def test_our_plan_takes_at_most_six_tenths_of_the_time_of_the_articles_commands(lab_with_python: Lab, tmp_path: Path) -> None:
    wheels = (path.name.split("-") for path in (lab_with_python.root / WHEELS.lstrip("/")).iterdir())
    found = {name.lower(): version for name, version, *_ in wheels}
    exact = {name: version or found[name] for name, version in FRAMEWORKS.items()}
    profile = tmp_path / "profile.toml"
    profile.write_text(PROFILE + "".join(f'{name} = "{version}"\n' for name, version in exact.items()))
    rounds = [(by_the_article(lab_with_python), by_our_plan(lab_with_python, profile)) for _ in range(2)]
    ratios = []
    for (theirs, article), (ours, plan) in rounds:
        assert article == plan
        assert plan[0] == PROMISED
        ratios.append(ours / theirs)
        print(f"article {theirs:.1f} s, our plan {ours:.1f} s: {ours / theirs:.2f}; {len(plan[1])} distributions")
    assert min(ratios) <= MOST
