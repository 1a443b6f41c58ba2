"""Locks: an environment written down with the hash of every file, removed, and rebuilt to the identical set from a local index."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from steps.errors import PreflightError
from steps.managers import python
from steps.managers.makers import Interpreter, Place, activation
from steps.managers.python_scripts import FROM_REPORT
from steps.model.action import AnyAction, Command, Run, Succeeds, Write
from steps.model.machine import Machine
from steps.model.plan import Installer, Target
from steps.model.profile import EnvironmentAnswers, EnvironmentManager, NetworkAnswers, Profile
from tests.index_server import Index, serving
from tests.test_conda import LINE, UV

Filler = Literal["uv", "venv"]
pytestmark = pytest.mark.skipif(UV is None, reason="uv is not installed here")


@pytest.fixture
def index() -> Iterator[Index]:
    held = Index()
    for file in ("small-1.0-py3-none-any.whl", "small-2.0-py3-none-any.whl", "other-3.1-py3-none-any.whl"):
        held.add(file)
    with serving(held):
        yield held


def planned(
    folder: Path, index: Index, *wanted: str, manager: Filler = "uv", lock: str | None = None, links: str | None = None
) -> list[Run]:
    profile = Profile(
        environment=EnvironmentAnswers(manager=manager, path=str(folder / "envs/dl"), python=LINE, lock=lock),
        network=NetworkAnswers(pypi=f"{index.address}/simple", find_links=links),
    )
    fetch = Installer(uv=UV, pythons={LINE: sys.executable}, home=str(folder))
    actions = python.environment(Machine(), profile, wanted, Target(installer=fetch))
    return [action for action in actions if isinstance(action, Run)]


def performed(folder: Path, argv: tuple[str, ...], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    # No configuration of the person's, and no cache of another test: one file name means one file.
    bare = {"PATH": os.environ["PATH"], "HOME": str(folder), "PIP_CONFIG_FILE": "/dev/null", "UV_CACHE_DIR": str(folder / "cache")}
    return subprocess.run(argv, env={**bare, **env}, capture_output=True, text=True, check=False, timeout=120)


def carried_out(folder: Path, actions: list[Run]) -> None:
    folder.mkdir(exist_ok=True)
    for action in actions:
        ended = performed(folder, action.argv, dict(action.env))
        assert ended.returncode == 0, f"{action.id}: {ended.stdout}{ended.stderr}"


def done(action: Run) -> bool:
    return all(
        isinstance(one, Succeeds) and subprocess.run(one.argv, capture_output=True, check=False).returncode == 0 for one in action.done_when
    )


def held(folder: Path) -> set[str]:
    return {
        path.name
        for path in (folder / "envs/dl").glob("lib/python*/site-packages/*.dist-info")
        if not path.name.startswith(("pip-", "setup"))
    }


@pytest.mark.parametrize("manager", ["uv", pytest.param("venv", marks=pytest.mark.long)])
def test_an_environment_is_rebuilt_from_its_lock_to_the_identical_set(tmp_path: Path, index: Index, manager: Filler) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    carried_out(first, planned(first, index, "small==1.0", "other==3.1", manager=manager))
    lock = first / "envs/dl" / python.LOCK_FILE
    assert all(
        one["hashes"]["sha256"] in lock.read_text()
        for name in ("small", "other")
        for one in index.projects[name]
        if "2.0" not in one["url"]
    )
    again = planned(second, index, lock=str(lock), manager=manager)
    install = next(action for action in again if action.id == "environment.install")
    carried_out(second, again)
    assert done(install)
    assert held(second) == held(first) == {"small-1.0.dist-info", "other-3.1.dist-info"}


def test_a_file_that_is_not_what_the_lock_says_is_refused_and_nothing_of_it_installed(tmp_path: Path, index: Index) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    carried_out(first, planned(first, index, "small==1.0"))
    lock = first / "envs/dl" / python.LOCK_FILE
    index.replace("small-1.0-py3-none-any.whl", padding=100)
    again = planned(second, index, lock=str(lock))
    at = next(place for place, action in enumerate(again) if action.id == "environment.install")
    carried_out(second, again[:at])
    ended = performed(second, again[at].argv, dict(again[at].env))
    assert ended.returncode != 0
    assert "ash mismatch" in ended.stderr
    assert held(second) == set()
    assert not done(again[at])


def test_a_folder_of_wheels_without_a_network_is_locked_with_the_hashes_of_its_files(tmp_path: Path, index: Index) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / "local_one-1.0+cpu-py3-none-any.whl").write_bytes(index.made("local_one-1.0+cpu-py3-none-any.whl"))
    carried_out(tmp_path, planned(tmp_path, index, "local-one==1.0+cpu", "small==2.0", links=str(wheels)))
    text = (tmp_path / "envs/dl" / python.LOCK_FILE).read_text()
    parts = dict(part.split("==", 1) for part in ("\n" + text).replace("\n    ", " ").split("\n") if "==" in part)
    assert {name: "--hash=sha256:" in rest for name, rest in parts.items()} == {"local-one": True, "small": True}


@pytest.mark.parametrize("missing", [False, True])
def test_a_lock_of_pips_report_holds_the_hash_of_a_local_file_and_says_what_it_lacks(tmp_path: Path, missing: bool) -> None:
    wheel = tmp_path / "local one-1.0+cpu-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    found = [
        {
            "metadata": {"name": "Known", "version": "2.0"},
            "download_info": {"url": "https://x/k.whl", "archive_info": {"hashes": {"sha256": "ab"}}},
        },
        {"metadata": {"name": "local-one", "version": "1.0+cpu"}, "download_info": {"url": wheel.as_uri(), "archive_info": {}}},
    ]
    # As pip 23.0 says it of a file of this machine.
    old = {"url": "file:///wheels/old-1-py3-none-any.whl", "archive_info": {"hash": "sha256=cd"}}
    found.append({"metadata": {"name": "old", "version": "1"}, "download_info": old})
    if missing:
        found.append({"metadata": {"name": "odd", "version": "3"}, "download_info": {"url": "https://x/odd.tar.gz", "archive_info": {}}})
    report, lock = tmp_path / "report.json", tmp_path / "lock.txt"
    report.write_text(json.dumps({"install": found}))
    done = subprocess.run((sys.executable, "-I", "-c", FROM_REPORT, report, lock), capture_output=True, text=True, check=True)
    own = hashlib.sha256(b"wheel").hexdigest()
    mark = "  #" if missing else ""
    rows = [f"known==2.0{mark} --hash=sha256:ab", f"local-one==1.0+cpu{mark} --hash=sha256:{own}", f"old==1{mark} --hash=sha256:cd"]
    assert lock.read_text().splitlines() == (["# not complete, without a hash: odd==3", *sorted([*rows, "odd==3"])] if missing else rows)
    assert done.stdout == ("Without a hash, so the lock is not complete: odd==3\n" if missing else "")


def test_a_password_of_an_index_in_the_environment_does_not_stand_in_the_lock(tmp_path: Path, index: Index) -> None:
    index.login = "ada:secret"
    fetch = Installer(uv=UV, pythons={LINE: sys.executable}, home=str(tmp_path), index_hidden=True, find_links=(str(tmp_path),))
    profile = Profile(environment=EnvironmentAnswers(path=str(tmp_path / "envs/dl"), python=LINE))
    actions = python.environment(Machine(), profile, ("small==1.0",), Target(installer=fetch))
    hidden = {"UV_DEFAULT_INDEX": f"{index.address}/simple".replace("//", "//ada:secret@")}
    carried_out(tmp_path, [msgspec.structs.replace(one, env={**one.env, **hidden}) for one in actions if isinstance(one, Run)])
    text = (tmp_path / "envs/dl" / python.LOCK_FILE).read_text()
    assert "small==1.0" in text
    assert f"--find-links {tmp_path}\n" in text
    assert "--hash=sha256:" in text
    assert "secret" not in text


def test_undo_of_a_rebuild_puts_back_what_was_there(tmp_path: Path, index: Index) -> None:
    carried_out(tmp_path, planned(tmp_path, index, "small==1.0"))
    lock = tmp_path / "kept.txt"
    lock.write_text((tmp_path / "envs/dl" / python.LOCK_FILE).read_text())
    (tmp_path / "envs/dl" / python.BEFORE_FILE).unlink()
    newer = [action for action in planned(tmp_path, index, "small==2.0") if action.id in ("environment.before", "environment.install")]
    carried_out(tmp_path, newer)
    assert held(tmp_path) == {"small-2.0.dist-info"}
    (back,) = newer[1].undo
    assert isinstance(back, Command)
    assert performed(tmp_path, back.argv, dict(newer[1].env)).returncode == 0
    assert held(tmp_path) == {"small-1.0.dist-info"}


def test_a_lock_is_a_whole_path(tmp_path: Path, index: Index) -> None:
    with pytest.raises(PreflightError) as caught:
        planned(tmp_path, index, lock="lock.txt")
    assert caught.value.code == "environment-lock"


SHELLS = ("bash", "zsh", "fish")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment with its start lines, in a folder whose name has to be quoted."""
    folder = tmp_path_factory.mktemp("a lab's")
    profile = Profile(environment=EnvironmentAnswers(path=str(folder / "dl"), python=LINE))
    fetch = Installer(uv=UV, pythons={LINE: sys.executable}, home=str(folder))
    (create,) = (one for one in python.environment(Machine(), profile, (), Target(installer=fetch)) if one.id == "environment.create")
    assert isinstance(create, Run)
    carried_out(folder, [create])
    return folder / "dl"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_start_line_of_each_shell_makes_the_environment_the_one_in_use(made: Path, shell: str) -> None:
    program = shutil.which(shell) or pytest.skip(f"{shell} is not installed here")
    place = Place(manager="uv", path=str(made), interpreter=Interpreter(line=LINE))
    line = activation(place)[shell == "fish"]
    ended = subprocess.run((program, "-c", f"{line}\nwhich python\necho $VIRTUAL_ENV"), capture_output=True, text=True, check=False)
    assert ended.stdout.split("\n")[:2] == [f"{made}/bin/python", str(made)], ended.stderr


@pytest.mark.parametrize("manager", ["conda", "mamba", "micromamba", "pixi"])
def test_conda_and_its_kin_start_by_their_own_hook_in_every_shell(manager: EnvironmentManager) -> None:
    place = Place(manager=manager, path="/srv/my envs/dl", interpreter=Interpreter(line="3.12"), tool=f"/opt/c/bin/{manager}")
    shells, fish = activation(place)
    assert f"/opt/c/bin/{manager} " in shells
    assert "| source" in fish
    assert all("'/srv/my envs/dl" in line for line in (shells, fish))


def whole(folder: Path, **environment: object) -> tuple[AnyAction, ...]:
    answers = msgspec.convert({"manager": "uv", "name": "dl", "python": "3.12", **environment}, EnvironmentAnswers)
    fetch = Installer(
        uv=f"{folder}/.local/bin/uv", pythons={"3.12": "/usr/bin/python3.12"}, home=str(folder), environments=f"{folder}/envs"
    )
    return python.environment(Machine(), Profile(environment=answers), ("six==1.17.0", "ipykernel==7.4.0"), Target(installer=fetch))


def test_a_kernel_is_the_persons_own_file_which_undo_takes_away_or_puts_back(tmp_path: Path) -> None:
    kernel = next(action for action in whole(tmp_path) if action.id == "environment.kernel")
    assert isinstance(kernel, Write)
    assert kernel.path == f"{tmp_path}/.local/share/jupyter/kernels/dl/kernel.json"
    assert json.loads(kernel.text or "")["argv"] == [
        f"{tmp_path}/envs/dl/bin/python",
        "-m",
        "ipykernel_launcher",
        "-f",
        "{connection_file}",
    ]
    assert kernel.by == "user"


def test_a_shared_environment_is_roots_lies_in_opt_and_stands_on_nothing_in_a_home(tmp_path: Path) -> None:
    actions = whole(tmp_path, shared=True)
    assert {action.by for action in actions} == {"root"}
    spelt = [word for action in actions if isinstance(action, Run) for word in (*action.argv, *action.env.values())]
    assert not any(str(tmp_path) in word for word in spelt)
    assert "/opt/bringup/envs/dl" in spelt
    kernel = next(action for action in actions if isinstance(action, Write) and action.id == "environment.kernel")
    assert kernel.path == "/usr/local/share/jupyter/kernels/dl/kernel.json"


@pytest.mark.parametrize(("group", "others"), [(None, 0o5), (str(os.getgid()), 0)])
def test_a_shared_environment_can_be_read_by_all_or_by_its_group_alone(tmp_path: Path, group: str | None, others: int) -> None:
    folder = tmp_path / "dl"
    (folder / "bin").mkdir(parents=True, mode=0o700)
    (folder / "notes.txt").touch(mode=0o600)
    actions = [
        one for one in whole(tmp_path, group=group, shared=True, path=str(folder)) if one.id in ("environment.group", "environment.rights")
    ]
    carried_out(tmp_path, [one for one in actions if isinstance(one, Run)])
    modes = [path.stat().st_mode & 0o777 for path in (folder, folder / "bin", folder / "notes.txt")]
    assert modes == [0o750 | others, 0o750 | others, 0o640 | (4 if others else 0)]
