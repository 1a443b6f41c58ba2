"""`./bringup` on a fresh machine: it builds, it hands over, or it says what is missing."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import fresh

pytestmark = pytest.mark.net


@pytest.fixture(scope="session")
def machine() -> Iterator[Path]:
    """A folder that every user may enter, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="bringup-launcher-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def checkout(machine: Path) -> Path:
    return fresh.copy_checkout(machine / "checkout")


@pytest.fixture(scope="session")
def person(machine: Path) -> dict[str, str]:
    """The environment of a person who has a Python and, where the tests have one, uv."""
    programs: dict[str, str | Path] = {"python3": fresh.BASE_PYTHON}
    if (uv := fresh.uv()) is not None:
        programs["uv"] = uv
    home = machine / "home"
    home.mkdir()
    return {"HOME": str(home), "PATH": fresh.make_path(machine / "path", programs), **fresh.package_settings()}


@pytest.fixture(scope="session")
def first(checkout: Path, person: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The first start, which builds."""
    return fresh.run([checkout / "bringup", "--version"], person)


def environments(person: dict[str, str]) -> list[Path]:
    return sorted(Path(person["HOME"]).glob(".cache/bringup/*/env-*"))


def test_the_first_start_builds_an_environment_and_hands_over(
    first: subprocess.CompletedProcess[str], checkout: Path, person: dict[str, str]
) -> None:
    assert (first.returncode, first.stdout) == (0, "bringup 0.1.0\n"), first.stderr
    assert first.stderr.count("\n") == 1
    assert "preparing its private environment" in first.stderr
    assert len(environments(person)) == 1
    assert not [path for path in checkout.rglob("*") if path.name in ("build", "bringup.egg-info", ".venv")]


@pytest.mark.usefixtures("first")
def test_the_second_start_says_nothing_and_comes_through_links_and_from_anywhere(
    checkout: Path, person: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "one").symlink_to(checkout / "bringup")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "two").symlink_to("../one")
    again = fresh.run([tmp_path / "bin" / "two", "--version"], person, cwd=tmp_path)
    assert (again.returncode, again.stdout, again.stderr) == (0, "bringup 0.1.0\n", "")
    assert fresh.run([checkout / "bringup", "detect", "--machine", "a b", "--json"], person, cwd=tmp_path).returncode == 2


@pytest.mark.usefixtures("first")
def test_the_second_start_costs_less_than_50_ms_over_the_installed_command(checkout: Path, person: dict[str, str]) -> None:
    def spent() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime

    def best(program: Path) -> float:
        """Seconds of processor, which tests beside this one do not change."""
        took = []
        for _ in range(7):
            before = spent()
            fresh.run([program, "--version"], person)
            took.append(spent() - before)
        return min(took)

    launcher, installed = best(checkout / "bringup"), best(environments(person)[0] / "bin" / "bringup")
    print(f"second start {launcher * 1000:.0f} ms, installed command {installed * 1000:.0f} ms")
    assert launcher - installed < 0.050


@pytest.mark.usefixtures("first")
@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_it_runs_in_any_posix_shell(shell: str, checkout: Path, person: dict[str, str]) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} here")
    argv = [program, "sh"] if shell == "busybox" else [program]
    done = fresh.run([*argv, checkout / "bringup", "--version"], person)
    assert (done.stdout, done.stderr) == ("bringup 0.1.0\n", "")


@pytest.mark.usefixtures("first")
def test_a_changed_pyproject_is_installed_anew_and_the_old_environment_goes(person: dict[str, str], checkout: Path) -> None:
    before = environments(person)
    with (checkout / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    os.utime(checkout / "pyproject.toml", (0, 0))  # an older date is a change too
    done = fresh.run([checkout / "bringup", "--version"], person)
    assert "preparing" in done.stderr
    assert environments(person) != before
    assert len(environments(person)) == 1


def test_an_empty_environment_is_enough(checkout: Path, machine: Path) -> None:
    """No HOME, no PATH: both come from the system; BRINGUP_PYTHON and BRINGUP_CACHE keep the test out of the person's folders."""
    environment = {"BRINGUP_CACHE": str(machine / "empty"), "BRINGUP_PYTHON": fresh.BASE_PYTHON}
    first = fresh.run([checkout / "bringup", "--version"], environment)
    assert (first.returncode, first.stdout) == (0, "bringup 0.1.0\n"), first.stderr
    again = fresh.run([checkout / "bringup", "--version"], environment)
    assert (again.stdout, again.stderr) == ("bringup 0.1.0\n", "")


def test_two_starts_at_once_build_once_and_a_dead_holder_s_lock_is_taken_over(
    checkout: Path, machine: Path, person: dict[str, str]
) -> None:
    environment = {**person, "BRINGUP_CACHE": str(machine / "two")}
    lock = machine / "two" / str(checkout).replace("/", "%") / "lock"
    lock.mkdir(parents=True)
    (lock / "pid").write_text("4194303\n", encoding="ascii")
    both = [
        subprocess.Popen([checkout / "bringup", "--version"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=300) for process in both]
    assert [out for out, _ in said] == ["bringup 0.1.0\n"] * 2, said
    assert sum("preparing its private" in error for _, error in said) == 1
    assert sum("waiting for it" in error for _, error in said) == 1
    assert len(list(lock.parent.glob("env-*"))) == 1
    assert not lock.exists()


def test_a_stopped_build_leaves_nothing_behind(checkout: Path, machine: Path, person: dict[str, str]) -> None:
    sleeper = fresh.stand_in(machine / "slow" / "uv", 'case $1 in --version) echo "uv 1" ;; *) exec sleep 20 ;; esac')
    path = fresh.make_path(machine / "slow-path", {"uv": sleeper, "python3": fresh.BASE_PYTHON})
    environment = {**person, "PATH": path, "BRINGUP_CACHE": str(machine / "stopped")}
    argv = [str(checkout / "bringup"), "--version"]
    with subprocess.Popen(argv, env=environment, stderr=subprocess.PIPE, start_new_session=True) as process:
        assert process.stderr is not None
        assert b"preparing" in process.stderr.readline()
        os.killpg(process.pid, 15)
        assert process.wait(timeout=20) == 143
    (folder,) = (machine / "stopped").iterdir()
    assert [entry.name for entry in folder.iterdir() if entry.name != "build.log"] == []


# --- read-only places ------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, which only root can")
def test_a_checkout_and_a_home_that_cannot_be_written_still_start(checkout: Path, person: dict[str, str]) -> None:
    nobody = 64999
    environment = {
        **{name: value for name, value in person.items() if name not in ("UV_CACHE_DIR", "PIP_CACHE_DIR", "XDG_CONFIG_HOME")},
        "HOME": "/nonexistent",
    }
    environment |= {"PATH": f"{person['PATH']}:/usr/bin:/bin", "BRINGUP_PYTHON": "/usr/bin/python3"}
    if fresh.run(
        ["/usr/bin/python3", "-c", "import sys, ensurepip; sys.exit(sys.version_info < (3, 10))"], environment, user=nobody
    ).returncode:
        pytest.skip("no system Python with venv that every user may run")
    room = Path(f"/var/tmp/bringup-{nobody}")
    try:
        done = fresh.run([checkout / "bringup", "--version"], environment, user=nobody)
        assert (done.returncode, done.stdout) == (0, "bringup 0.1.0\n"), done.stderr
        assert str(room) in done.stderr
        again = fresh.run([checkout / "bringup", "--version"], environment, user=nobody)
        assert (again.stdout, again.stderr) == ("bringup 0.1.0\n", "")
        assert list(room.glob("*/env-*/bytecode/**/*.pyc")), "no bytecode is kept although the checkout takes none"
    finally:
        shutil.rmtree(room, ignore_errors=True)


def test_no_room_at_all_is_said_with_the_variable_that_helps(checkout: Path, person: dict[str, str]) -> None:
    done = fresh.run([checkout / "bringup", "detect", "--json"], {**person, "BRINGUP_CACHE": "/proc/nowhere"})
    assert (done.returncode, done.stdout) == (3, "")
    assert "set BRINGUP_CACHE to a folder that you can write" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk, which only root can")
@pytest.mark.parametrize("size", ["3m", "8m"])  # too small for the packages; too small for the installer's own words
def test_a_full_disk_is_said_and_no_words_of_the_installer(size: str, checkout: Path, machine: Path, person: dict[str, str]) -> None:
    room = machine / size
    room.mkdir()
    script = f'mount -t tmpfs -o size={size} none {room} || exit 77; exec "$0" --version'
    done = fresh.run(["unshare", "-m", "sh", "-c", script, checkout / "bringup"], {**person, "BRINGUP_CACHE": str(room)})
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("no private mounts here")
    assert done.returncode == 3
    assert f"The disk is full below {room}" in done.stderr
    assert "the lines above are the installer's" not in done.stderr


def test_a_checkout_whose_path_holds_a_line_break_is_refused_in_words(checkout: Path, machine: Path, person: dict[str, str]) -> None:
    broken = machine / "line\nbreak"
    shutil.copytree(checkout, broken)
    done = fresh.run([broken / "bringup", "--version"], {**person, "BRINGUP_CACHE": str(machine / "break")})
    assert (done.returncode, done.stdout) == (3, "")
    assert "holds a line break" in done.stderr


# --- how it names itself and mends itself --------------------------------------------------------------


def named(argv: list[str | Path], person: dict[str, str], **more: str) -> str:
    """Return the command that the words of the program name."""
    done = fresh.run([*argv, "undo", "--yes"], {**person, "BRINGUP_STATE": str(Path(person["HOME"]) / "none"), **more})
    assert done.returncode == 2, done.stderr
    return done.stderr.partition("`")[2].partition(" runs`")[0]


@pytest.mark.usefixtures("first")
def test_words_on_the_screen_name_the_launcher_as_it_can_be_typed(checkout: Path, person: dict[str, str], tmp_path: Path) -> None:
    program = checkout / "bringup"
    assert named([program], person) == str(program)
    assert named(["sh", "-c", f'cd {checkout} && ./bringup "$@"', "sh"], person) == str(program)
    assert named(["sh", "-c", f'cd {checkout}/steps && ../bringup "$@"', "sh"], person) == str(program)
    home = Path(person["HOME"])
    (home / "mine").symlink_to(program)
    assert named([home / "mine"], person) == "~/mine"
    (tmp_path / "bringup").symlink_to(program)
    assert named(["sh", "-c", 'bringup "$@"', "sh"], person, PATH=f"{tmp_path}:{person['PATH']}") == "bringup"
    (home / "a b").symlink_to(program)
    assert named([home / "a b"], person) == f"'{home}/a b'"


@pytest.mark.usefixtures("first")
def test_an_environment_that_lost_a_package_is_made_anew(checkout: Path, person: dict[str, str]) -> None:
    for lost in ("lib/python*/site-packages/msgspec", "lib"):
        (found,) = environments(person)[0].glob(lost)
        shutil.rmtree(found)
        done = fresh.run([checkout / "bringup", "--version"], person)
        assert (done.returncode, done.stdout) == (0, "bringup 0.1.0\n"), done.stderr
        assert "preparing its private environment" in done.stderr


# --- what is missing -------------------------------------------------------------------------------

RELEASES = {
    "debian": "ID=debian\nVERSION_ID=12\n",
    "ubuntu": 'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="20.04"\n',
    "rocky": 'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"\n',
    "fedora": "ID=fedora\nVERSION_ID=40\n",
    "leap": 'ID="opensuse-leap"\nID_LIKE="suse opensuse"\n',
    "arch": "ID=arch\n",
    "alpine": "ID=alpine\n",
}


def refused(checkout: Path, tmp_path: Path, distribution: str, *python: str, language: str = "C.UTF-8") -> str:
    """Return what is said where `python3` is the given shell program (or missing) and there is no uv."""
    programs: dict[str, str | Path] = {"python3": fresh.stand_in(tmp_path / "python3", *python)} if python else {}
    release = tmp_path / "os-release"
    release.write_text(RELEASES[distribution], encoding="utf-8")
    environment = {
        "HOME": str(tmp_path),
        "PATH": fresh.make_path(tmp_path / "path", programs),
        "BRINGUP_OS_RELEASE": str(release),
        "LANG": language,
    }
    done = fresh.run([checkout / "bringup", "detect", "--json"], environment)
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    assert not list(tmp_path.glob(".cache/bringup/*/lock"))
    return done.stderr


@pytest.mark.parametrize(
    ("distribution", "remedy"),
    [
        ("debian", "apt install python3 python3-venv"),
        ("ubuntu", "apt install python3 python3-venv"),
        ("rocky", "dnf install python3.11"),
        ("fedora", "dnf install python3"),
        ("leap", "zypper install python311"),
        ("arch", "pacman -S python"),
        ("alpine", "apk add python3"),
    ],
)
def test_no_python_and_no_uv_names_the_command_of_this_distribution(checkout: Path, tmp_path: Path, distribution: str, remedy: str) -> None:
    said = refused(checkout, tmp_path, distribution)
    assert "neither Python 3 nor uv" in said
    assert remedy in said
    assert "https://astral.sh/uv/install.sh" in said


def test_debian_s_split_venv_package_is_named(checkout: Path, tmp_path: Path) -> None:
    said = refused(checkout, tmp_path, "debian", "case $* in *ensurepip*) echo split 3.11 /usr/bin/python3 ;; *) exit 1 ;; esac")
    assert "Python 3.11 is here, but without its venv module" in said
    assert "apt install python3-venv\n" in said


@pytest.mark.parametrize(
    ("distribution", "remedy"), [("ubuntu", "install uv, which brings its own Python"), ("rocky", "dnf install python3.11")]
)
def test_an_old_python_without_uv_is_told_apart(checkout: Path, tmp_path: Path, distribution: str, remedy: str) -> None:
    said = refused(checkout, tmp_path, distribution, "echo Python 3.8.10")
    assert "Python 3.8.10 is here, but bringup needs Python 3.10 or newer" in said
    assert remedy in said


def test_chinese_speakers_are_told_in_chinese(checkout: Path, tmp_path: Path) -> None:
    assert "既没有 Python 3，也没有 uv" in refused(checkout, tmp_path, "debian", language="zh_CN.UTF-8")


# --- the way to the packages -------------------------------------------------------------------------


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_a_closed_proxy_is_named_without_its_password(
    installer: str, checkout: Path, machine: Path, person: dict[str, str], tmp_path: Path
) -> None:
    said = unreachable(
        installer, checkout, machine, person, tmp_path, https_proxy="http://me:secret@127.0.0.1:9", http_proxy="http://127.0.0.1:9"
    )
    assert "The proxy that https_proxy names (http://***@127.0.0.1:9)" in said
    assert "secret" not in said
    assert "correct or unset https_proxy" in said


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_an_index_of_pip_s_configuration_is_used_and_named_when_it_is_away(
    installer: str, checkout: Path, machine: Path, person: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "pip.conf").write_text("[global]\nindex-url = http://127.0.0.1:9/simple\n", encoding="ascii")
    said = unreachable(installer, checkout, machine, person, tmp_path, PIP_CONFIG_FILE=str(tmp_path / "pip.conf"))
    assert "The package index (http://127.0.0.1:9/simple) cannot be reached." in said


def unreachable(installer: str, checkout: Path, machine: Path, person: dict[str, str], tmp_path: Path, **settings: str) -> str:
    """Return what is said when packages cannot be had; retries are off, for time."""
    programs: dict[str, str | Path] = {"python3": fresh.BASE_PYTHON}
    if installer == "uv":
        if (uv := fresh.uv()) is None:
            pytest.skip("no uv here")
        programs["uv"] = uv
    kept = {name: value for name, value in person.items() if not name.lower().endswith("_proxy") and "INDEX" not in name}
    environment = {
        **kept,
        "PATH": fresh.make_path(tmp_path / "path", programs),
        "UV_CACHE_DIR": str(tmp_path / "uv"),
        "PIP_NO_CACHE_DIR": "1",
    }
    environment |= {"UV_HTTP_RETRIES": "0", "PIP_RETRIES": "0", "BRINGUP_CACHE": str(tmp_path / "cache"), "NO_PROXY": "", **settings}
    done = fresh.run([checkout / "bringup", "--version"], environment)
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    assert not list((tmp_path / "cache").glob("*/env-*"))
    return done.stderr


CONFIGURATION = """\
[global]
index_url = https://mirror.example/simple
extra-index-url: https://one.example/simple
    https://two.example/simple
; a remark
find-links = /nowhere
    /usr
[install]
find-links = /usr
[list]
index-url = https://not.this/simple
"""


@pytest.mark.parametrize(
    ("name", "environment", "value"),
    [
        ("index-url", {}, "https://mirror.example/simple"),
        ("extra-index-url", {}, "https://one.example/simple https://two.example/simple"),
        ("find-links", {}, "/usr"),
        ("cert", {}, "what /etc/pip.conf says"),
        ("index-url", {"PIP_INDEX_URL": "https://said.example/simple"}, "https://said.example/simple"),
        ("index-url", {"PIP_CONFIG_FILE": "/dev/null"}, ""),
    ],
)
def test_settings_of_pip_are_read_as_pip_reads_them(name: str, environment: dict[str, str], value: str, tmp_path: Path) -> None:
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "pip.conf").write_text(CONFIGURATION, encoding="ascii")
    script = f"bringup_sourced={fresh.CHECKOUT}; . {fresh.CHECKOUT / 'bringup'}; pip_setting {name}"
    fixed = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
        "XDG_CONFIG_DIRS": "/nowhere",
        **environment,
    }
    if name == "cert":  # the machine's own /etc/pip.conf is read too
        value = fresh.run(["sed", "-n", "s/^cert *= *//p", "/etc/pip.conf"], fixed).stdout.strip()
    assert fresh.run(["sh", "-c", script], fixed).stdout == value


def test_uv_is_given_what_pip_has_and_keeps_what_the_person_set(tmp_path: Path) -> None:
    names = ("UV_SYSTEM_CERTS", "UV_FIND_LINKS", "UV_INDEX", "UV_INDEX_STRATEGY", "SSL_CERT_FILE")
    shown = "|".join(f"${{{name}:-}}" for name in names)
    script = f'bringup_sourced={fresh.CHECKOUT}; . {fresh.CHECKOUT / "bringup"}; teach_uv; echo "{shown}"'
    pip = {"PIP_FIND_LINKS": "/usr /nowhere /etc", "PIP_EXTRA_INDEX_URL": "file:///nowhere https://two.example", "PIP_CERT": "/ca.pem"}
    base = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PIP_CONFIG_FILE": "/dev/null"}
    assert fresh.run(["sh", "-c", script], {**base, **pip}).stdout == "1|/usr,/etc|https://two.example|unsafe-best-match|/ca.pem\n"
    mine = {"UV_FIND_LINKS": "/mine", "UV_INDEX": "https://mine.example", "SSL_CERT_FILE": "/mine.pem"}
    assert fresh.run(["sh", "-c", script], {**base, **pip, **mine}).stdout == "1|/mine|https://mine.example||/mine.pem\n"
