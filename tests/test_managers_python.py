"""Python environments: how packages are fetched here, what is planned, and real environments from a real index."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from steps.errors import PreflightError
from steps.host.local import LocalHost
from steps.managers import installer, python
from steps.managers.fetching import fetching
from steps.managers.python_scripts import HAS_ALL
from steps.model.action import AnyAction, Command, RemovePath, Run, Succeeds
from steps.model.machine import Machine
from steps.model.plan import Installer, Target
from steps.model.profile import EnvironmentAnswers, NetworkAnswers, Profile, answered

LINE = f"{sys.version_info.major}.{sys.version_info.minor}"
HOME = "/home/ada"


class Files(LocalHost):
    """A machine with just these files; what is on the disk of the test's machine does not exist on it."""

    def __init__(self, files: Mapping[str, str]) -> None:
        super().__init__()
        self.files = files

    def read(self, path: str) -> str | None:
        return self.files.get(path)

    def exists(self, path: str) -> bool | None:
        return path in self.files

    def glob(self, pattern: str) -> tuple[str, ...]:
        return ()


def settings(environ: Mapping[str, str] | None = None, files: Mapping[str, str] | None = None) -> Installer:
    return installer.settings(Files(files or {}), environ or {}, home=HOME, user="ada", uid=1000)


def planned(profile: Profile, fetch: Installer, *requirements: str, room: bool = False) -> tuple[Run, ...]:
    """Return what is run; the look at the folder before it only when it is asked for."""
    actions = python.environment(Machine(), profile, requirements, Target(installer=fetch))
    return tuple(action for action in actions if isinstance(action, Run) and (room or action.id != "environment.room"))


# --- how packages are fetched ---------------------------------------------------------------------


def test_pips_configuration_is_read_later_files_over_earlier_ones() -> None:
    files = {
        "/etc/xdg/pip/pip.conf": "[global]\nindex-url = https://far.example/simple\ncert = /etc/ca.pem\n",
        "/etc/pip.conf": "[global]\nfind_links = /srv/wheels\n    /srv/more\n",
        f"{HOME}/.config/pip/pip.conf": "[install]\nindex-url = https://near.example/simple\n",
    }
    found = settings(files=files)
    assert (found.index_url, found.find_links, found.certificates) == (
        "https://near.example/simple",
        ("/srv/wheels", "/srv/more"),
        "/etc/ca.pem",
    )


def test_the_environment_wins_over_files_and_uvs_variables_over_pips() -> None:
    environ = {
        "PIP_INDEX_URL": "https://pip.example/simple",
        "UV_DEFAULT_INDEX": "https://uv.example/simple",
        "PIP_EXTRA_INDEX_URL": "https://one.example/simple https://two.example/simple",
        "UV_FIND_LINKS": "/a,/b",
        "PIP_FIND_LINKS": "/b /c",
        "https_proxy": "http://proxy.example:3128",
    }
    found = settings(environ, {"/etc/pip.conf": "[global]\nindex-url = https://file.example/simple\n"})
    assert found.index_url == "https://uv.example/simple"
    assert found.extra_index_urls == ("https://one.example/simple", "https://two.example/simple")
    assert found.find_links == ("/a", "/b", "/c")
    assert found.proxy == "http://proxy.example:3128"


@pytest.mark.parametrize("name", ["PIP_INDEX_URL", "UV_INDEX", "PIP_EXTRA_INDEX_URL"])
def test_an_index_with_a_password_is_not_kept_and_its_being_there_is(name: str) -> None:
    found = settings({name: "https://ada:secret@lab.example/simple"})
    assert (found.index_url, found.extra_index_urls, found.index_hidden) == (None, (), True)
    assert b"secret" not in msgspec.json.encode(found)
    assert not settings({name: "https://lab.example/simple"}).index_hidden


@pytest.mark.parametrize(
    ("environ", "config", "without"),
    [
        ({}, "no-index = true\n", True),
        ({}, "no_index = yes\n", True),
        ({"PIP_NO_INDEX": "1"}, "", True),
        ({"PIP_NO_INDEX": "0"}, "no-index = true\n", False),
        ({}, "no-index = false\n", False),
        ({}, "", False),
    ],
)
def test_a_machine_without_an_index_asks_none_and_takes_its_wheels_from_its_folder(
    environ: dict[str, str], config: str, *, without: bool
) -> None:
    found = settings(
        environ, {"/etc/pip.conf": f"[global]\nfind-links = /srv/wheels\nextra-index-url = https://more.example/simple\n{config}"}
    )
    assert found.no_index is without
    options = fetching(Profile(), found, ("https://wheels.example/whl/cpu",)).options
    assert ("--no-index" in options) is without
    assert ("--extra-index-url" in options) is not without
    assert options[-2:] == ("--find-links", "/srv/wheels")


def test_an_index_that_the_profile_names_is_asked_whatever_pip_is_told() -> None:
    found = settings({"PIP_NO_INDEX": "1"})
    options = fetching(answered(Profile(), {"network.pypi": "https://lab.example/simple"}), found, ()).options
    assert options == ("--index-url", "https://lab.example/simple")


def test_a_named_index_of_uv_is_taken_by_its_address() -> None:
    assert settings({"UV_INDEX": "lab=https://lab.example/simple?a=b"}).extra_index_urls == ("https://lab.example/simple?a=b",)


def test_a_broken_pip_configuration_adds_nothing() -> None:
    assert settings(files={"/etc/pip.conf": "no section\n"}).index_url is None


def test_environments_of_a_plain_root_login_go_to_opt_and_others_home() -> None:
    host = Files({})
    assert installer.settings(host, {}, home="/root", user=None, uid=0).environments == "/opt/bringup/envs"
    assert installer.settings(host, {}, home=HOME, user="ada", uid=0).environments == f"{HOME}/envs"


# --- what is planned ------------------------------------------------------------------------------


def test_a_line_that_is_not_installed_is_fetched_by_uv_and_never_another() -> None:
    profile = Profile(environment=EnvironmentAnswers(python="3.12"))
    create = planned(profile, Installer(uv="/u/uv", pythons={"3.11": "/usr/bin/python3.11"}))[0]
    assert create.argv[create.argv.index("--python") + 1 :][:2] == ("3.12", "--managed-python")


def test_venv_cannot_fetch_a_python_and_says_so() -> None:
    profile = Profile(environment=EnvironmentAnswers(manager="venv", python="3.12"))
    with pytest.raises(PreflightError) as refusal:
        planned(profile, Installer(pythons={"3.11": "/usr/bin/python3.11"}))
    assert (refusal.value.code, refusal.value.params) == ("python-not-found", {"line": "3.12"})


def test_uv_is_brought_along_where_it_is_missing() -> None:
    actions = planned(Profile(), Installer(pythons={"3.11": "/usr/bin/python3.11"}, home=HOME, environments=f"{HOME}/envs"), "six==1.17.0")
    assert [action.id for action in actions][:2] == ["environment.uv-folder", "environment.uv"]
    assert actions[2].argv[0] == f"{HOME}/.local/share/bringup/uv/bin/uv"
    assert actions[0].undo == (RemovePath(path=f"{HOME}/.local/share/bringup/uv"),)


def test_the_profiles_mirror_and_certificates_win_over_the_persons() -> None:
    profile = Profile(
        environment=EnvironmentAnswers(python="3.11"), network=NetworkAnswers(pypi="https://mirror.example/simple", ca_file="/srv/ca.pem")
    )
    fetch = Installer(uv="/u/uv", pythons={"3.11": "/p"}, index_url="https://own.example/simple", certificates="/etc/ca.pem")
    install = next(action for action in planned(profile, fetch, "six==1.17.0") if action.id == "environment.install")
    assert install.argv[install.argv.index("--index-url") + 1] == "https://mirror.example/simple"
    assert install.env["SSL_CERT_FILE"] == "/srv/ca.pem"


def test_a_home_folder_in_the_profile_is_the_persons() -> None:
    profile = Profile(environment=EnvironmentAnswers(path="~/mine", python="3.11"))
    assert python.place(profile, Target(installer=Installer(home=HOME, pythons={"3.11": "/p"}))).path == f"{HOME}/mine"


# --- real environments ----------------------------------------------------------------------------


def holds(action: AnyAction) -> bool:
    """Return whether every probe of the action says that it is done."""
    probes = [probe for probe in action.done_when if isinstance(probe, Succeeds)]
    return bool(probes) and all(
        subprocess.run(probe.argv, capture_output=True, check=False).returncode == 0 for probe in probes if Path(probe.argv[0]).exists()
    )


def perform(action: Run) -> str:
    """Run the action with its own variables and nothing of the caller's but PATH and HOME."""
    environ = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **action.env}
    result = subprocess.run(action.argv, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, f"{action.argv}\n{result.stdout}{result.stderr}"
    return result.stdout


def here(tmp_path: Path, uv: str) -> Installer:
    found = installer.settings(LocalHost(), os.environ, home=os.environ["HOME"], user="root", uid=os.geteuid())
    changes = {"uv": uv, "pythons": {LINE: sys.executable}, "environments": str(tmp_path / "envs"), "home": str(tmp_path)}
    return Installer(**{name: getattr(found, name) for name in found.__struct_fields__} | changes)


@pytest.fixture
def uv() -> str:
    """Return the path of uv: beside the interpreter of these tests, else on the PATH."""
    found = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    return found or pytest.skip("uv is not installed here")


@pytest.mark.net
@pytest.mark.parametrize("manager", ["uv", "venv"])
def test_an_environment_is_made_filled_and_written_down(tmp_path: Path, manager: str, uv: str) -> None:
    profile = Profile(environment=EnvironmentAnswers(manager="uv" if manager == "uv" else "venv", name="small", python=LINE))
    actions = planned(profile, here(tmp_path, uv), "six==1.17.0", "idna==3.10")
    assert not any(holds(action) for action in actions if (tmp_path / "envs").exists())
    for action in actions:
        perform(action)
    folder = tmp_path / "envs" / "small"
    said = (folder / python.VERSIONS_FILE).read_text(encoding="utf-8").splitlines()
    assert [one for one in said if not one.startswith("setuptools==")] == ["idna==3.10", "six==1.17.0"]
    locked = (folder / python.LOCK_FILE).read_text(encoding="utf-8")
    assert [len(one.split("--hash=sha256:")) > 1 for one in locked.split("==")[1:]] == [True] * len(said)
    create, install = actions[0], actions[2]
    assert holds(create)
    assert holds(install)
    # A file that a cut-off installation lost is seen, which pip's own check does not.
    next(folder.glob("lib/python*/site-packages/six.py")).unlink()
    assert not holds(install)
    perform(install)
    assert holds(install)


@pytest.mark.net
@pytest.mark.parametrize("manager", ["uv", "venv"])
def test_undo_puts_the_packages_of_an_environment_back_that_was_there_before(tmp_path: Path, manager: str, uv: str) -> None:
    profile = Profile(environment=EnvironmentAnswers(manager="uv" if manager == "uv" else "venv", name="small", python=LINE))
    for action in planned(profile, here(tmp_path, uv), "idna==3.9"):
        perform(action)
    folder = tmp_path / "envs" / "small"
    (folder / python.BEFORE_FILE).unlink()
    _, before, install, *_ = planned(profile, here(tmp_path, uv), "idna==3.10")
    perform(before)
    perform(install)
    (back,) = install.undo
    assert isinstance(back, Command)
    subprocess.run(back.argv, env={**os.environ, **install.env}, check=True, capture_output=True)
    assert list(folder.glob("lib/python*/site-packages/idna-3.9.dist-info"))
    assert not list(folder.glob("lib/python*/site-packages/idna-3.10.dist-info"))


@pytest.mark.net
def test_a_version_that_does_not_exist_fails_and_leaves_the_environment(tmp_path: Path, uv: str) -> None:
    profile = Profile(environment=EnvironmentAnswers(name="small", python=LINE))
    create, _, install, *_ = planned(profile, here(tmp_path, uv), "six==0.0.99")
    perform(create)
    result = subprocess.run(install.argv, env={**os.environ, **install.env}, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "six==0.0.99" in result.stderr
    assert holds(create)


def has_all(folder: Path, *wanted: str) -> bool:
    """Return what the probe of an installed environment says about distributions that lie in `folder`."""
    script = f"import sys; sys.path.insert(0, {str(folder)!r})\n{HAS_ALL}"
    return subprocess.run((sys.executable, "-I", "-c", script, *wanted), check=False).returncode == 0


def distribution(folder: Path, name: str, version: str, *requires: str) -> None:
    """Write the metadata of an installed distribution."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {one}" for one in requires)]
    (info / "METADATA").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("wanted", "there"),
    [
        ("made-up-torch==2.14.1+cpu", True),
        ("made-up-torch==2.14.1", True),
        ("made-up-torch===2.14.1", False),
        ("made-up-torch===2.14.1+cpu", True),
        ("made-up-torch==2.14.0", False),
        ("made-up-torch<3", True),
        ("made-up-jax[cuda12]==0.10", False),
        ("made-up-jax[cpu]==0.10", True),
        ("made-up-jax==0.10", True),
        ("made-up-absent", False),
    ],
)
def test_an_environment_is_done_only_with_the_build_and_the_extras_that_are_wanted(tmp_path: Path, wanted: str, there: bool) -> None:
    distribution(tmp_path, "made-up-torch", "2.14.1+cpu")
    distribution(tmp_path, "made-up-jax", "0.10", 'made-up-plugin==0.10; extra == "cuda12"', "made-up-torch>=2; extra == 'cpu'")
    assert has_all(tmp_path, wanted) is there


@pytest.mark.parametrize("address", ["https://ada:secret@index.example/simple", "https://token@index.example/simple"])
def test_credentials_of_the_environment_stay_there_and_those_of_a_file_are_refused(address: str) -> None:
    carried = settings({"PIP_INDEX_URL": address, "https_proxy": address, "PIP_EXTRA_INDEX_URL": f"https://other.example/simple {address}"})
    assert (carried.index_url, carried.proxy, carried.extra_index_urls) == (None, None, ("https://other.example/simple",))
    with pytest.raises(PreflightError) as caught:
        settings(files={"/etc/pip.conf": f"[global]\nindex-url = {address}\n"})
    assert caught.value.code == "secret-in-address"
    assert "secret" not in str(caught.value.params)


@pytest.mark.parametrize("path", ["/", "rel/env", "/newtop", "/etc/../opt/x", HOME, "/opt"])
def test_a_folder_that_undo_could_not_take_away_is_refused(path: str) -> None:
    with pytest.raises(PreflightError) as caught:
        planned(
            Profile(environment=EnvironmentAnswers(path=path)),
            Installer(pythons={"3.12": "/usr/bin/python3.12"}, own_python="/usr/bin/python3", home=HOME),
            "six==1.17.0",
        )
    assert (caught.value.code, caught.value.params["path"]) == ("environment-path", path)


@pytest.mark.parametrize("name", ["../../etc", "..", "a/b"])
def test_a_name_is_no_path(name: str) -> None:
    with pytest.raises(PreflightError) as caught:
        planned(
            Profile(environment=EnvironmentAnswers(name=name)),
            Installer(pythons={"3.12": "/usr/bin/python3.12"}, own_python="/usr/bin/python3", home=HOME),
            "six==1.17.0",
        )
    assert caught.value.code == "environment-name"


@pytest.mark.parametrize(("files", "free"), [((), True), (("notes.txt",), False), (("pyvenv.cfg", "notes.txt"), True)])
def test_an_ordinary_folder_is_not_turned_into_an_environment(tmp_path: Path, files: tuple[str, ...], free: bool) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    for name in files:
        (folder / name).write_text("mine\n")
    profile = Profile(environment=EnvironmentAnswers(path=str(folder)))
    look = planned(profile, Installer(pythons={LINE: sys.executable}, home=HOME), room=True)[0]
    ended = subprocess.run(look.argv, capture_output=True, text=True, check=False)
    assert (ended.returncode == 0) is free
    assert (str(folder) in ended.stderr) is not free


def looked(path: str, *, line: str = LINE, needs: int | None = None, nobody: bool = False, before: tuple[str, ...] = ()) -> tuple[int, str]:
    """Return how the look at a folder ends, for an owner of nothing when `nobody` looks; `before` is what runs it."""
    profile = Profile(environment=EnvironmentAnswers(path=path, python=line))
    fetch = Installer(uv="/u/uv", pythons={line: sys.executable}, home=HOME, own_python="/usr/bin/python3")
    look = python.environment(Machine(), profile, ("six==1.17.0",), Target(installer=fetch), disk_bytes=needs)[0]
    assert isinstance(look, Run)
    user = 65534 if nobody and os.geteuid() == 0 else None
    ended = subprocess.run((*before, *look.argv), capture_output=True, text=True, check=False, user=user, cwd="/")
    return ended.returncode, ended.stderr


@pytest.mark.parametrize(("option", "says"), [("noexec", "no library could be loaded from it"), ("ro", "mounted read-only")])
def test_a_disk_that_no_library_can_be_loaded_from_or_written_to_is_named_before_anything_is_fetched(
    tmp_path: Path, option: str, says: str
) -> None:
    if os.geteuid() or shutil.which("unshare") is None:
        pytest.skip("needs root and unshare")
    mounted = ("unshare", "-m", "sh", "-c", f'mount -t tmpfs -o {option} tmpfs "$0" && exec "$@"', str(tmp_path))
    code, said = looked(str(tmp_path / "dl"), before=mounted)
    assert (code, says in said) == (1, True), said
    assert looked(str(tmp_path / "dl"))[0] == 0


def test_a_folder_below_a_link_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").symlink_to(tmp_path / "gone")
    code, said = looked(str(tmp_path / "data" / "dl"))
    assert (code, f"{tmp_path}/data is a link that leads nowhere" in said) == (1, True), said


@pytest.mark.parametrize("marker", [("pyvenv.cfg", "version = 3.9.2\n"), ("conda-meta/python-3.9.18-h0_0_cpython.json", "{}")])
def test_an_environment_of_another_python_is_refused_and_not_overwritten(tmp_path: Path, marker: tuple[str, str]) -> None:
    file = tmp_path / "dl" / marker[0]
    file.parent.mkdir(parents=True)
    file.write_text(marker[1])
    code, said = looked(str(tmp_path / "dl"))
    assert (code, "Python 3.9, not" in said) == (1, True)
    assert looked(str(tmp_path / "dl"), line="3.9")[0] == 0


@pytest.mark.parametrize(
    ("path", "needs", "nobody", "says"),
    [
        ("/tmp/bringup-new/dl", 10**15, False, "1000000.0 GB are needed"),
        ("/root/made-up/dl", None, True, "not yours to write"),
        ("/nonexistent/envs/dl", None, True, "/ is not yours to write"),
        ("/etc/ssl/openssl.cnf", None, False, "is a file"),
    ],
    ids=["full disk", "unwritable", "no home folder", "a file"],
)
def test_what_stands_in_the_way_is_said_before_anything_is_made(path: str, needs: int | None, nobody: bool, says: str) -> None:
    if nobody and os.geteuid() != 0:
        pytest.skip("only root can look as somebody else")
    code, said = looked(path, needs=needs, nobody=nobody)
    assert (code, says in said) == (1, True), said


def test_without_a_home_folder_nothing_is_kept_in_a_cache() -> None:
    class Homeless(Files):
        def exists(self, path: str) -> bool | None:
            return False

    found = installer.settings(Homeless({}), {}, home="/nonexistent", user="svc", uid=999)
    assert found.homeless
    profile = Profile(environment=EnvironmentAnswers(path="/srv/env/dl", python="3.12"))
    actions = planned(profile, msgspec.structs.replace(found, uv="/u/uv"), "six==1.17.0")
    install = next(one for one in actions if one.id == "environment.install")
    assert install.env["UV_NO_CACHE"] == "1"
