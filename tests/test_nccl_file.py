"""nccl.conf: every line as we say that NCCL reads it, and as a real libnccl does; what we write is what it reads."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steps.compat import interfaces, nccl_file
from steps.compat.nccl_file import Fault
from steps.model.hardware import Network
from steps.model.machine import Machine

CASES: tuple[tuple[str, str, dict[str, str], tuple[Fault, ...], dict[str, str]], ...] = (
    # name, text, what NCCL takes, the first faulty line's faults, what is written once the line is mended
    ("plain", "NCCL_DEBUG=WARN\n", {"NCCL_DEBUG": "WARN"}, (), {}),
    ("no end", "NCCL_DEBUG=WARN", {"NCCL_DEBUG": "WARN"}, (), {}),
    ("empty", "", {}, (), {}),
    ("empty value", "NCCL_DEBUG=\n", {"NCCL_DEBUG": ""}, (), {}),
    ("exact interface", "NCCL_SOCKET_IFNAME==eth0\n", {"NCCL_SOCKET_IFNAME": "=eth0"}, (), {}),
    ("first wins", "NCCL_DEBUG=WARN\nNCCL_DEBUG=INFO\n", {"NCCL_DEBUG": "WARN"}, ("again",), {}),
    ("comment", "# NCCL_DEBUG=INFO\nNCCL_DEBUG=WARN\n", {"NCCL_DEBUG": "WARN"}, (), {}),
    (
        "the article's own example",
        "NCCL_SOCKET_IFNAME=eth0  # the interface\nNCCL_IB_DISABLE=0\n",
        {"NCCL_SOCKET_IFNAME": "eth0  # the interface", "NCCL_IB_DISABLE": "0"},
        ("comment",),
        {"NCCL_SOCKET_IFNAME": "eth0"},
    ),
    ("blank before =", "NCCL_DEBUG =WARN\n", {"NCCL_DEBUG ": "WARN"}, ("blanks",), {"NCCL_DEBUG": "WARN"}),
    ("blank after =", "NCCL_DEBUG= WARN\n", {"NCCL_DEBUG": " WARN"}, ("blanks",), {"NCCL_DEBUG": "WARN"}),
    ("blanks around =", "NCCL_DEBUG = WARN\n", {"NCCL_DEBUG ": " WARN"}, ("blanks",), {"NCCL_DEBUG": "WARN"}),
    ("indented", "  NCCL_DEBUG=WARN\n", {"  NCCL_DEBUG": "WARN"}, ("blanks",), {"NCCL_DEBUG": "WARN"}),
    ("trailing blank", "NCCL_DEBUG=WARN \n", {"NCCL_DEBUG": "WARN "}, ("blank-end",), {"NCCL_DEBUG": "WARN"}),
    ("trailing tab", "NCCL_DEBUG=WARN\t\n", {"NCCL_DEBUG": "WARN\t"}, ("blank-end",), {"NCCL_DEBUG": "WARN"}),
    ("quotes", 'NCCL_DEBUG="WARN"\n', {"NCCL_DEBUG": '"WARN"'}, ("quotes",), {"NCCL_DEBUG": "WARN"}),
    ("quotes and comment", "NCCL_DEBUG='WARN' # x\n", {"NCCL_DEBUG": "'WARN' # x"}, ("comment", "quotes"), {"NCCL_DEBUG": "WARN"}),
    ("export", "export NCCL_DEBUG=WARN\n", {"export NCCL_DEBUG": "WARN"}, ("export",), {"NCCL_DEBUG": "WARN"}),
    ("export and a tab", "export\tNCCL_DEBUG=WARN\n", {"export\tNCCL_DEBUG": "WARN"}, ("export",), {"NCCL_DEBUG": "WARN"}),
    ("set", "set NCCL_DEBUG=WARN\n", {"set NCCL_DEBUG": "WARN"}, ("blanks",), {"NCCL_DEBUG": "WARN"}),
    ("byte order mark", "\ufeffNCCL_DEBUG=WARN\n", {"\ufeffNCCL_DEBUG": "WARN"}, ("control",), {"NCCL_DEBUG": "WARN"}),
    ("no =", "NCCL_DEBUG\n", {}, ("no-equals",), {}),
    ("colon", "NCCL_DEBUG: WARN\n", {}, ("no-equals",), {}),
    ("blank line", "\n\nNCCL_DEBUG=WARN\n", {"NCCL_DEBUG": "WARN"}, (), {}),
    ("value with =", "NCCL_IB_HCA==mlx5_0:1\n", {"NCCL_IB_HCA": "=mlx5_0:1"}, (), {}),
    ("list", "NCCL_SOCKET_IFNAME=^docker,lo\n", {"NCCL_SOCKET_IFNAME": "^docker,lo"}, (), {}),
    (
        "list with blanks",
        "NCCL_SOCKET_IFNAME=eth0, eth1\n",
        {"NCCL_SOCKET_IFNAME": "eth0, eth1"},
        ("blanks",),
        {"NCCL_SOCKET_IFNAME": "eth0,eth1"},
    ),
    ("blanks on purpose", "NCCL_DEBUG_TIMESTAMP_FORMAT=[%F, %T] \n", {"NCCL_DEBUG_TIMESTAMP_FORMAT": "[%F, %T] "}, (), {}),
)
"""What every library reads alike; carriage returns and comments in the first column differ by release and are tried below."""


@pytest.mark.parametrize(("text", "taken", "faults", "mended"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_line_is_read_as_nccl_reads_it_and_mended_as_it_was_meant(
    text: str, taken: dict[str, str], faults: tuple[Fault, ...], mended: dict[str, str]
) -> None:
    found = nccl_file.lines(text)
    assert nccl_file.taken(found) == taken
    assert next((line.faults for line in found if line.faults), ()) == faults
    assert {line.meant: line.wanted for line in found if line.misread} == mended
    assert [line for line in nccl_file.lines(nccl_file.merged(text, mended)) if line.misread] == []


def test_a_carriage_return_and_an_indented_comment_are_named() -> None:
    (line,) = nccl_file.lines("NCCL_DEBUG=WARN\r\n")
    assert (line.faults, line.wanted) == (("carriage-return",), "WARN")
    (line,) = nccl_file.lines("  # a comment that is none\n")
    assert (line.faults, line.misread, line.name) == (("indented",), False, None)


def test_what_stands_in_the_file_stays_byte_for_byte_but_for_the_names_that_were_asked_for() -> None:
    text = "# ours\n\nNCCL_DEBUG = INFO # loud\nOMPI_X=1\r\nNCCL_ALGO=Ring\nNCCL_ALGO=Tree\n  # odd\n"
    assert nccl_file.merged(text, {"NCCL_ALGO": "^Tree", "NCCL_IB_DISABLE": "1"}, without={"NCCL_DEBUG"}) == (
        "# ours\n\nOMPI_X=1\r\nNCCL_ALGO=^Tree\n  # odd\nNCCL_IB_DISABLE=1\n"
    )


NAMES = st.from_regex(r"\ANCCL_[A-Z]{1,12}\Z")
VALUES = st.from_regex(r"\A[\^=]?[A-Za-z0-9_:,./-]{1,24}\Z")


@settings(max_examples=60)
@given(st.text(max_size=80), st.dictionaries(NAMES, VALUES, max_size=4))
def test_whatever_stands_there_what_we_write_is_what_nccl_takes(text: str, said: dict[str, str]) -> None:
    merged = nccl_file.merged(text.replace("\r", ""), said)
    taken = nccl_file.taken(nccl_file.lines(merged))
    assert {name: taken.get(name) for name in said} == said
    assert nccl_file.merged(merged, said) == merged


# --- the real library -------------------------------------------------------------------------------

VERSIONS = ("2.22.3", "2.30.7")
"""Both ends of what differs: before 2.23 without NCCL_CONF_FILE, from 2.26 with comments, from 2.30 without carriage returns."""
MORE = ("2.18.3", "2.25.1", "2.27.7", "2.32.3")
READ = """
import ctypes, json, sys
library = ctypes.CDLL(sys.argv[1])
library.ncclGetUniqueId(ctypes.create_string_buffer(128))  # fails without an interface or a GPU, after it has read the files
environ = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
found = {}
for at in range(100000):
    if not environ[at]:
        break
    name, _, value = environ[at].decode("utf-8", "surrogateescape").partition("=")
    found[name] = value
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a real libnccl of one version, as PyPI has it."""
    version: str = request.param
    if sys.platform != "linux" or os.uname().machine != "x86_64" or os.geteuid() or shutil.which("unshare") is None:
        pytest.skip("needs root and unshare on x86_64 Linux")
    at = tmp_path_factory.mktemp("nccl")
    uv = Path(sys.executable).parent / "uv"
    install = (str(uv), "pip", "install", "--target", str(at), "--python", sys.executable, "--no-deps", f"nvidia-nccl-cu12=={version}")
    made = subprocess.run(
        install, check=False, capture_output=True, text=True, env={**os.environ, "UV_NATIVE_TLS": "1", "UV_LINK_MODE": "symlink"}
    )
    if made.returncode:
        pytest.skip(f"nvidia-nccl-cu12 {version} cannot be had here: {made.stderr.strip().splitlines()[-1:]}")
    return next(at.glob("nvidia/nccl/lib/libnccl.so.*"))


def read(library: Path, text: str, folder: Path, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what a real libnccl takes from `text` as a person's file; their home comes from the account (up to 2.29) or from HOME."""
    (folder / ".nccl.conf").write_bytes(text.encode("utf-8", "surrogateescape"))
    accounts = folder / "passwd"
    accounts.write_text(f"root:x:0:0::{folder}:/bin/sh\n")
    argv = (
        "unshare",
        "-m",
        "sh",
        "-c",
        'mount --bind "$0" /etc/passwd && exec "$@"',
        str(accounts),
        sys.executable,
        "-I",
        "-c",
        READ,
        str(library),
    )
    kept = {"PATH": os.environ["PATH"], "HOME": str(folder), **(environ or {})}
    done = subprocess.run(argv, check=True, capture_output=True, text=True, env=kept, timeout=60)
    # What the library itself logs stands beside it.
    after = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    return {name: value for name, value in after.items() if name not in kept and name not in ("LC_CTYPE", "PWD", "SHLVL", "_", "OLDPWD")}


REAL = [*VERSIONS, *(pytest.param(version, marks=pytest.mark.long) for version in MORE)]


@pytest.mark.net
@pytest.mark.parametrize("library", REAL, indirect=True)
def test_a_real_nccl_takes_from_every_case_what_we_say(library: Path, tmp_path: Path) -> None:
    for name, text, taken, _, _ in CASES:
        found = read(library, text, tmp_path)
        # Before 2.26 a comment with "=" in it is a variable that nobody reads.
        assert {key: value for key, value in found.items() if not key.startswith("#")} == taken, name


@pytest.mark.net
@pytest.mark.parametrize("library", REAL, indirect=True)
def test_a_real_nccl_reads_what_we_write_and_a_carriage_return_as_the_table_says(library: Path, tmp_path: Path) -> None:
    said = {"NCCL_SOCKET_IFNAME": "=eno1", "NCCL_IB_DISABLE": "1", "NCCL_DEBUG": "WARN"}
    there = "# site\nNCCL_ALGO=Ring\nNCCL_IB_DISABLE = 0 # off\n"
    written = nccl_file.merged(there, said)
    assert {name: value for name, value in read(library, written, tmp_path).items() if not name.startswith("#")} == {
        **said,
        "NCCL_ALGO": "Ring",
    }
    returned = read(library, "NCCL_ALGO=Ring\r\n", tmp_path)["NCCL_ALGO"]
    version = _version(library)
    assert returned == ("Ring" if version >= (2, 30) else "Ring\r")


def _version(library: Path) -> tuple[int, ...]:
    """Return the version that the package beside a library says."""
    (found,) = library.parents[3].glob("nvidia_nccl_cu12-*.dist-info")
    return tuple(int(part) for part in found.name.split("-")[1].removesuffix(".dist").split(".")[:2])


# --- the interface that a real library takes ---------------------------------------------------------

USE = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).ncclGetUniqueId(ctypes.create_string_buffer(128))"
WIRED = """
ip link set lo up
ip link add eth1 type veth peer name far1 && ip addr add 10.1.0.5/24 dev eth1 && ip link set eth1 up
ip link add eth0 type veth peer name far0 && ip link set far0 up && ip addr add 10.0.0.5/24 dev eth0 && ip link set eth0 up
"""
"""eth1 has an address and no cable, and comes first; eth0 has both."""
FABRIC = "ip link add ib0 type veth peer name far2 && ip link set far2 up && ip addr add 10.9.0.5/24 dev ib0 && ip link set ib0 up\n"
ETH1 = Network(name="eth1", kind="ethernet", up=False, addresses=("10.1.0.5/24",))
ETH0 = Network(name="eth0", kind="ethernet", up=True, addresses=("10.0.0.5/24",))
IB0 = Network(name="ib0", kind="infiniband", up=True, addresses=("10.9.0.5/24",))


@pytest.mark.net
@pytest.mark.parametrize("library", REAL, indirect=True)
@pytest.mark.parametrize(
    ("wires", "networks"), [(WIRED, (ETH1, ETH0)), (WIRED + FABRIC, (ETH1, ETH0, IB0))], ids=["ethernet", "infiniband"]
)
def test_a_real_nccl_takes_by_itself_the_interface_that_we_say(library: Path, wires: str, networks: tuple[Network, ...]) -> None:
    script = wires + 'sleep 0.3\nexec "$@"'
    argv = ("unshare", "-n", "sh", "-c", script, "sh", sys.executable, "-I", "-c", USE, str(library))
    kept = {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "HOME": "/nonexistent", "NCCL_DEBUG": "INFO"}
    done = subprocess.run(argv, check=True, capture_output=True, text=True, env=kept, timeout=60)
    used = re.search(r"Bootstrap ?: Using (\w+):", done.stdout + done.stderr)
    assert used is not None, done.stdout + done.stderr
    release = ".".join(map(str, _version(library)))
    assert interfaces.picked(Machine(networks=networks), release)[0].name == used[1]
