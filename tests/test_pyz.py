"""`bringup.pyz`: one file that starts on a machine without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests import fresh

pytestmark = pytest.mark.net
CARRIED = ("3.10", "3.11", "3.12", "3.13", "3.14")


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive, built as CONTRIBUTING says."""
    folder = tmp_path_factory.mktemp("pyz")
    checkout = fresh.copy_checkout(folder / "checkout")
    shutil.copytree(fresh.CHECKOUT / ".ci", checkout / ".ci")
    built = fresh.run([checkout / ".ci" / "pyz", folder / "bringup.pyz"], {**os.environ, "BRINGUP_PYTHON": sys.executable})
    assert built.returncode == 0, built.stderr
    return folder / "bringup.pyz"


def pythons() -> list[str]:
    """The interpreters of this machine, old ones too, that really start."""
    candidates = [shutil.which(f"python3.{minor}") for minor in range(6, 15)]
    candidates += [str(found) for found in Path.home().glob(".pyenv/versions/3.*/bin/python")]
    found: dict[str, str] = {}
    for candidate in filter(None, candidates):
        done = fresh.run([candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], os.environ)
        if done.returncode == 0:
            found.setdefault(done.stdout.strip(), os.path.realpath(candidate) if "shims" not in candidate else candidate)
    return [found[version] for version in sorted(found)]


def offline(*argv: str | Path) -> list[str | Path]:
    """Wrap a command so that it has no network where this user may do that."""
    allowed = subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode == 0
    return [*(["unshare", "-n"] if allowed else []), *argv]


@pytest.mark.parametrize("python", pythons())
def test_every_python_of_this_machine_runs_it_or_is_told_why_not(python: str, archive: Path, tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    done = fresh.run(offline(python, "-I", archive, "--version"), environment)
    version = fresh.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], environment).stdout.strip()
    if version in CARRIED:
        assert (done.returncode, done.stdout) == (0, "bringup 0.1.0\n"), done.stderr
        again = fresh.run(offline(python, "-I", archive, "--version"), environment)
        assert (again.stdout, again.stderr) == ("bringup 0.1.0\n", ""), "it unpacks once"
        return
    assert (done.returncode, done.stdout) == (3, "")
    assert f"this is Python {version}; bringup.pyz needs CPython 3.10 or newer" in done.stderr


def test_without_any_environment_it_finds_its_python_and_names_how_it_was_started(archive: Path) -> None:
    room = Path(f"/var/tmp/bringup-{os.getuid()}")
    there_before = room.exists()
    python = os.path.realpath(sys.executable)
    try:
        done = fresh.run([python, "-I", archive, "detect", "--json"], {"HOME": "/proc/none"})
        assert (done.returncode, done.stdout[:1]) == (0, "{"), done.stderr
        # As `env -i python3` starts it: the shell's default path finds it, and it is told a name without a folder.
        nameless = ["sh", "-c", 'exec -a python3 "$0" "$@"', python, "-I", str(archive), "--version"]
        done = fresh.run(["/bin/bash", *nameless[1:]], {"HOME": "/proc/none"})
        assert (done.returncode, done.stdout) == (0, "bringup 0.1.0\n"), done.stderr
        named = fresh.run([python, "-I", archive, "undo", "--yes"], {"HOME": "/proc/none", "BRINGUP_STATE": "/proc/none"})
        assert f"{Path(python).name} {archive} runs" in named.stderr
    finally:
        if not there_before:
            shutil.rmtree(room, ignore_errors=True)


def test_it_carries_what_five_pythons_on_two_machines_need_and_nothing_twice(archive: Path) -> None:
    with zipfile.ZipFile(archive) as packed:
        names = packed.namelist()
    parts = {name.split("/")[0] for name in names}
    wanted = {f"cp3{minor}-{machine}" for minor in range(10, 15) for machine in ("x86_64", "aarch64")}
    assert parts == {"__main__.py", "common", *wanted}
    assert sum(name.endswith(".so") for name in names) == len(wanted)
    assert len(names) == len(set(names))
    print(f"bringup.pyz: {archive.stat().st_size / 1e6:.1f} MB")
    assert archive.stat().st_size < 12e6


def test_it_starts_the_runner_and_itself_again_from_the_unpacked_tree(archive: Path, tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    runner = fresh.run(offline(sys.executable, "-I", archive, "--runner"), environment)
    assert "No module named" not in runner.stderr
    assert runner.returncode == 2, runner.stderr
    (tree,) = (tmp_path / ".cache" / "bringup").iterdir()
    code = f"import sys; sys.path.insert(0, {str(tree)!r}); from steps import resources; "
    code += "print(resources.self_command()[1:], resources.runner_command()[1:])"
    shown = fresh.run([sys.executable, "-I", "-c", code], environment)
    assert shown.stdout.strip() == f"{('-I', '-B', str(tree))} {('-I', '-B', str(tree), '--runner')}"


def test_it_may_be_started_from_a_hostile_folder(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text("raise SystemExit('wrong steps')\n", encoding="ascii")
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)}
    done = fresh.run([sys.executable, archive, "--version"], environment, cwd=tmp_path)
    assert done.stdout == "bringup 0.1.0\n", done.stderr


def test_without_a_home_it_unpacks_elsewhere_and_without_any_room_it_says_so(archive: Path) -> None:
    room = Path(f"/var/tmp/bringup-{os.getuid()}")
    there_before = room.exists()
    try:
        done = fresh.run([sys.executable, "-I", archive, "--version"], {"HOME": "/proc/none", "PATH": os.environ["PATH"]})
        assert (done.returncode, done.stdout) == (0, "bringup 0.1.0\n"), done.stderr
    finally:
        if not there_before:
            shutil.rmtree(room, ignore_errors=True)


def test_a_folder_that_others_may_write_is_not_used(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    environment = {
        "HOME": str(tmp_path),
        "PATH": os.environ["PATH"],
        "BRINGUP_CACHE": str(tmp_path / "open"),
        "TMPDIR": str(tmp_path / "tmp"),
    }
    done = fresh.run([sys.executable, "-I", archive, "--version"], environment)
    assert done.stdout == "bringup 0.1.0\n", done.stderr
    assert list((tmp_path / "open").iterdir()) == []
