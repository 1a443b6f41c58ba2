"""The dnf manager against a real dnf and rpm: the engine installs, replaces and removes, and takes it back with the repository gone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from steps.compat import driver_plan
from steps.compat.case import Case
from steps.engine import client
from steps.errors import PreflightError
from steps.host.local import LocalHost
from steps.managers import preflight
from steps.managers.base import Snapshot, manager
from steps.model.action import installing
from steps.model.base import Phrase
from steps.model.plan import Target
from tests.engine_kit import ended, output, plan_of
from tests.lab.lab import LabMachine
from tests.test_compat_cases import machine as machine_of
from tests.test_compat_cases import profile
from tests.test_steps_stack import with_packages

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(
        any(shutil.which(program) is None for program in ("dnf", "rpmbuild", "createrepo_c")), reason="needs dnf, rpm, createrepo-c"
    ),
]
_LOCKING = Path("/usr/lib/python3/dist-packages/dnf-plugins/versionlock.py")
LONG = "lab-package-with-a-name-that-is-too-long-for-its-column"
_SPEC = """\
Name: {name}
{epoch}Version: {version}
Release: 1
Summary: lab
License: none
BuildArch: noarch
{relations}
%description
lab
"""
_FILE = """\
%install
mkdir -p %{{buildroot}}/opt/lab
echo "{name} {version}" >%{{buildroot}}/opt/lab/{name}
%files
/opt/lab/{name}
"""


def with_file(name: str, version: str, relations: str = "") -> str:
    """Return the spec of a package that brings a file, which tells its version."""
    return f"{_SPEC}{_FILE}".format(name=name, version=version, relations=relations, epoch="")


def of_nvidia(name: str, version: str, relations: str) -> str:
    """Return the spec of a package in the epoch of NVIDIA's, without a file."""
    return f"{_SPEC}%files\n".format(name=name, version=version, relations=relations, epoch="Epoch: 3\n")


# --- what happens in the machine's namespaces, on a copy of this system's /etc, /opt, /root and /var/lib -----------


def stage() -> Path:
    """Return the folder of a repository that dnf knows, with the old packages installed."""
    lab = Path("/tmp/bringup-lab")
    for part in ("upper", "work"):
        (lab / "etc" / part).mkdir(parents=True)
    options = f"lowerdir=/etc,upperdir={lab}/etc/upper,workdir={lab}/etc/work"
    subprocess.run(("mount", "-t", "overlay", "-o", options, "lab", "/etc"), check=True)
    for folder in ("/var/cache", "/var/log"):
        subprocess.run(("mount", "-t", "tmpfs", "lab", folder), check=True)
    Path("/etc/yum.repos.d").mkdir(exist_ok=True)
    Path("/var/lib/dnf").mkdir(exist_ok=True)
    packages = lab / "rpms"
    for name, version, relations in (
        ("lab-driver", "1.0", ""),
        ("lab-driver", "2.0", "Requires: lab-data\nConflicts: lab-rival"),
        ("lab-data", "1.0", ""),
        ("lab-rival", "1.0", ""),
        (LONG, "1.0", ""),
        ("lab-twice", "1.0", ""),
        ("lab-twice", "2.0", ""),
    ):
        build(packages, f"{name}-{version}", with_file(name, version, relations))
    subprocess.run(("createrepo_c", "-q", str(packages)), check=True)
    Path("/etc/yum.repos.d/lab.repo").write_text(f"[lab]\nname=lab\nbaseurl=file://{packages}\ngpgcheck=0\n")
    # Debian's plugins come with one that keeps what was installed as a repository of its own, and wants keys for it.
    Path("/etc/dnf/plugins").mkdir(parents=True, exist_ok=True)
    Path("/etc/dnf/plugins/local.conf").write_text("[main]\nenabled = false\n")
    subprocess.run(("dnf", "-y", "-q", "install", "lab-driver-1.0", "lab-rival"), check=True, capture_output=True)
    return packages


def build(packages: Path, title: str, spec: str) -> None:
    """Build one package into the repository's folder."""
    path = packages.parent / f"{title}.spec"
    path.write_text(spec)
    defines = ("--define", f"_topdir {packages.parent}/build", "--define", f"_rpmdir {packages}")
    subprocess.run(("rpmbuild", "--quiet", "-bb", *defines, str(path)), check=True, capture_output=True)


def snapshot() -> Snapshot:
    found = manager("dnf").snapshot(LocalHost())
    assert found is not None
    return found


def refused() -> None:
    tool, host = manager("dnf"), LocalHost()
    for package, words in (("lab-driver=2.0", "conflicts with lab-rival"), ("lab-nothing", "lab-nothing")):
        problem = tool.simulate(installing("dnf", "a", "t", (package,)), host).problem
        assert isinstance(problem, Phrase)
        assert words in str(problem.params["text"]), problem
    allowed = installing("dnf", "a", "t", ("lab-driver=2.0",), may_remove=("lab-other",))
    with pytest.raises(PreflightError) as refusal:
        preflight.check(allowed, tool.simulate(allowed, host), host)
    assert (refusal.value.code, refusal.value.params["packages"]) == ("removal-refused", "lab-rival")


TWICE = frozenset(("lab-twice",))


def cut_off(packages: Path) -> None:
    """Let an upgrade end where the new release is there and the old one not yet gone."""
    tool, host = manager("dnf"), LocalHost()
    assert tool.repair(host, TWICE) == ()
    subprocess.run(("dnf", "-y", "-q", "install", "lab-twice-1.0"), check=True, capture_output=True)
    (new,) = packages.rglob("lab-twice-2.0-*.rpm")
    subprocess.run(("rpm", "-i", "--force", str(new)), check=True, capture_output=True)
    assert {name for name in snapshot().packages if name.startswith("lab-twice")} == {"lab-twice", "lab-twice-2.0-1"}
    commands = tool.repair(host, TWICE)
    assert commands, "a package that is there twice was not seen"
    for argv in commands:
        subprocess.run(argv, check=True, capture_output=True)
    assert (snapshot().packages["lab-twice"].version, tool.repair(host, TWICE)) == ("2.0-1", ())
    assert Path("/opt/lab/lab-twice").read_text() == "lab-twice 2.0\n"
    subprocess.run(("dnf", "-y", "-q", "remove", "lab-twice"), check=True, capture_output=True)


def there_and_back(packages: Path) -> None:
    before = snapshot()
    action = installing("dnf", "a.install", "t", ("lab-driver=2.0-1", LONG), may_remove=("lab-rival",))
    handle = client.start(plan_of(action), sudo=None)
    assert ended(handle, 240).status == "done", output(handle, "a.install")
    assert "[bringup: 2 new, 1 replaced, 1 removed, removes lab-rival" in output(handle, "a.install")
    versions = {name: package.version for name, package in snapshot().packages.items()}
    assert versions == {"lab-driver": "2.0-1", "lab-data": "1.0-1", LONG: "1.0-1"}
    assert Path("/opt/lab/lab-driver").read_text() == "lab-driver 2.0\n"
    # The repository is gone, as it may be on the day of the undo.
    Path("/etc/yum.repos.d/lab.repo").unlink()
    shutil.rmtree(packages)
    handle.undo()
    assert ended(handle, 240).status == "undone", (handle.state(), output(handle, "a.install")[-3000:])
    assert snapshot().packages == before.packages
    assert Path("/opt/lab/lab-driver").read_text() == "lab-driver 1.0\n"
    assert sorted(path.name for path in Path("/opt/lab").iterdir()) == ["lab-driver", "lab-rival"]


def branches(packages: Path) -> None:
    """The driver is taken back from branch 590 to 580 and kept there, as it is planned; undo goes forward again, with the old lock."""
    for version in ("570.1", "580.1", "580.2", "590.1"):
        for name, relations in (
            ("nvidia-open", "Requires: nvidia-driver-cuda, kmod-nvidia-open-dkms"),
            ("nvidia-driver-cuda", f"Requires: nvidia-driver-cuda-libs = 3:{version}"),
            ("nvidia-driver-cuda-libs", ""),
            ("kmod-nvidia-open-dkms", ""),
        ):
            build(packages, f"{name}-{version}", of_nvidia(name, version, relations))
    build(packages, "nvidia-container-toolkit-1.17", with_file("nvidia-container-toolkit", "1.17"))
    subprocess.run(("createrepo_c", "-q", str(packages)), check=True)
    subprocess.run(("dnf", "-y", "-q", "--refresh", "install", "nvidia-open-590.1"), check=True, capture_output=True)
    locks = Path("/etc/dnf/plugins/versionlock.list")
    locks.write_text("nvidia-open-3:590.1-1.*\nlab-data-0:1.0-1.*\n")
    before, written = snapshot(), locks.read_text()
    here = with_packages(machine_of("4090", system="rocky 10.0", kernel="6.12.0-55.el10.x86_64"), nvidia_open="3:590.1-1")
    answers = profile(driver_branch="580", driver_flavor="open", driver_source="nvidia-repo")
    wanted = ("repository.lock-kept", "repository.unlock", "repository.lock", "driver.install", "driver.branch-seen")
    planned = [action for action in driver_plan.plan(Case(here, answers), Target()) if action.id in wanted]
    assert tuple(action.id for action in planned) == wanted
    # No module is built in a lab's noarch package.
    actions = [
        msgspec.structs.replace(action, done_when=action.done_when[:1]) if action.id == "driver.install" else action for action in planned
    ]
    handle = client.start(plan_of(*actions), sudo=None)
    assert ended(handle, 240).status == "done", [output(handle, action.id)[-1500:] for action in actions]
    names = ("nvidia-open", "nvidia-driver-cuda", "nvidia-driver-cuda-libs", "kmod-nvidia-open-dkms")
    assert {snapshot().packages[name].version for name in names} == {"3:580.2-1"}
    subprocess.run(("dnf", "-y", "-q", "upgrade"), check=True, capture_output=True)
    subprocess.run(("dnf", "-y", "-q", "install", "nvidia-container-toolkit"), check=True, capture_output=True)
    assert {snapshot().packages[name].version for name in names} == {"3:580.2-1"}
    subprocess.run(("dnf", "-y", "-q", "history", "undo", "last"), check=True, capture_output=True)
    handle.undo()
    assert ended(handle, 240).status == "undone", (handle.state(), output(handle, "driver.install")[-3000:])
    assert snapshot().packages == before.packages
    assert locks.read_text() == written


# --- what pytest sees --------------------------------------------------------------------------------


def run(machine: LabMachine, scene: str) -> None:
    ran = machine.run(sys.executable, "-m", "tests.lab.test_dnf", scene, inside=False, env={"SUDO_UID": ""}, timeout=400)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_engine_changes_packages_with_a_real_dnf_and_takes_them_back(machine: LabMachine) -> None:
    run(machine, "packages")


@pytest.mark.skipif(not _LOCKING.exists(), reason="needs dnf-plugins-core")
def test_a_branch_is_taken_back_and_locked_with_a_real_dnf(machine: LabMachine) -> None:
    run(machine, "branches")


if __name__ == "__main__":
    os.environ.pop("BRINGUP_STATE", None)
    rpms = stage()
    if sys.argv[1] == "branches":
        branches(rpms)
    else:
        refused()
        cut_off(rpms)
        there_and_back(rpms)
