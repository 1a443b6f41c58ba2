"""The wheel, installed as people install tools, outside the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests import fresh

pytestmark = pytest.mark.net


def by_launcher(script: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run shell lines with the launcher's functions: they make environments where pip works, by uv or by venv."""
    begin = f"bringup_sourced={fresh.CHECKOUT}; . {fresh.CHECKOUT / 'bringup'}; settle; base={arguments[0]}; "
    programs: dict[str, str | Path] = {"python3": fresh.BASE_PYTHON}
    if (uv := fresh.uv()) is not None:
        programs["uv"] = uv
    path = fresh.make_path(Path(arguments[0]) / "path", programs)
    return fresh.run(["sh", "-c", begin + script, "sh", *arguments], {**os.environ, "PATH": path})


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean environment into which the checkout was installed as a tool, not editable."""
    folder = tmp_path_factory.mktemp("package")
    checkout = fresh.copy_checkout(folder / "checkout")
    done = by_launcher('make_environment "$1/env" "$1/log" "$1/checkout"', folder)
    assert done.returncode == 0, done.stderr
    checkout.rename(folder / "gone")
    return folder / "env"


@pytest.fixture
def elsewhere(tmp_path: Path) -> dict[str, str]:
    """The environment of a person whose PYTHONPATH holds another `rich` and another `steps`."""
    for name in ("rich.py", "steps.py"):
        (tmp_path / name).write_text("raise SystemExit('the wrong one')\n", encoding="ascii")
    return {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)}


def test_the_installed_command_answers_without_the_checkout(installed: Path, tmp_path: Path) -> None:
    done = fresh.run([installed / "bin" / "bringup", "--version"], {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "bringup 0.1.0\n"), done.stderr


def test_a_foreign_pythonpath_does_not_decide_what_is_imported(installed: Path, elsewhere: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "steps.py").unlink()
    done = fresh.run([installed / "bin" / "bringup", "--version"], elsewhere, cwd=tmp_path)
    assert done.stdout == "bringup 0.1.0\n", done.stderr
    isolated = fresh.run([installed / "bin" / "python", "-I", "-m", "tui", "--version"], elsewhere, cwd=tmp_path)
    assert isolated.stdout == "bringup 0.1.0\n", isolated.stderr


def test_nothing_of_a_foreign_pythonpath_runs_before_the_installed_command(installed: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    (tmp_path / "evil" / "tui").mkdir(parents=True)
    for name in ("sitecustomize.py", "usercustomize.py", "tui/__init__.py"):
        (tmp_path / "evil" / name).write_text(f"open({str(ran)!r}, 'w')\n", encoding="ascii")
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path / "evil")}
    (tmp_path / "link").symlink_to(installed / "bin" / "bringup")
    done = fresh.run([tmp_path / "link", "--version"], environment, cwd=tmp_path)
    assert (done.returncode, done.stdout, ran.exists()) == (0, "bringup 0.1.0\n", False), done.stderr


def test_the_installed_package_detects_this_machine_and_finds_its_words(installed: Path, tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LC_ALL": "C"}
    done = fresh.run([installed / "bin" / "bringup", "detect", "--json"], environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert '"schema":"bringup/detect"' in done.stdout.replace(" ", "")
    code = "from steps import resources, text; print(resources.names('i18n', 'en') == resources.names('i18n', 'zh_CN') != ())"
    assert fresh.run([installed / "bin" / "python", "-I", "-c", code], environment).stdout == "True\n"


def test_the_wheel_holds_two_packages_with_their_assets_and_no_tests(tmp_path: Path) -> None:
    checkout = fresh.copy_checkout(tmp_path / "checkout")
    builder = 'make_environment "$1/env" "$1/log" hatchling && cd "$1/checkout" && "$1/env/bin/hatchling" build -t wheel -d "$1/dist"'
    done = by_launcher(builder, tmp_path)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    tops = {name.split("/")[0] for name in names}
    assert tops == {"tui", "steps", "bringup-0.1.0.dist-info", "bringup-0.1.0.data"}
    assert {name for name in names if ".data/" in name} == {"bringup-0.1.0.data/scripts/bringup"}
    source = {path.relative_to(checkout).as_posix() for folder in ("tui", "steps") for path in (checkout / folder).rglob("*.py")}
    assets = {
        f"steps/_assets/{path.relative_to(checkout / 'assets').as_posix()}" for path in (checkout / "assets").rglob("*") if path.is_file()
    }
    assert source | assets <= names
    assert {name for name in names if "licenses/LICENSE" in name}


@pytest.mark.skipif(fresh.uv() is None, reason="no uv here")
def test_uv_installs_it_as_a_tool(tmp_path: Path) -> None:
    checkout = fresh.copy_checkout(tmp_path / "checkout")
    script = 'teach_uv; "$2" tool install --python "$3" "$1/checkout" && "$1/bin/bringup" --version'
    tools = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    begin = f"bringup_sourced={fresh.CHECKOUT}; . {fresh.CHECKOUT / 'bringup'}; "
    done = fresh.run(["sh", "-c", begin + script, "sh", tmp_path, str(fresh.uv()), sys.executable], {**os.environ, **tools})
    assert checkout.exists()
    assert (done.returncode, done.stdout) == (0, "bringup 0.1.0\n"), done.stderr
