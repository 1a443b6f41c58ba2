"""An SSH server of its own on the loopback, from Debian's package unpacked into a folder: nothing is installed on this machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from steps.engine.waiting import descendants_of
from tests.ui.screen import Terminal

PACKAGES = ("openssh-server", "libwrap0")
_NEEDED = ("apt-get", "dpkg-deb", "ssh", "ssh-keygen", "unshare")
_CONFIG = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/person.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
PrintMotd no
PrintLastLog no
"""
_START = """
set -e
mount --bind {folder}/passwd /etc/passwd
mount -t tmpfs none /run
mkdir /run/sshd
exec env LD_LIBRARY_PATH={libraries} {server} -D -e -f {folder}/config
"""
"""In mounts of its own: the server wants a user of its name, and an empty folder."""


def missing() -> str | None:
    """Return why there can be no server here, or `None`."""
    if os.geteuid() != 0:
        return "needs root"
    absent = [program for program in _NEEDED if shutil.which(program) is None]
    return f"needs {', '.join(absent)} (see tests/lab/packages.txt)" if absent else None


def unpacked(folder: Path) -> str | None:
    """Unpack the server's packages into `folder`; return why that was not possible, or `None`."""
    for package in PACKAGES:
        fetched = subprocess.run(("apt-get", "-qq", "download", package), cwd=folder, capture_output=True, text=True)
        if fetched.returncode:
            return fetched.stderr.strip()
    for file in folder.glob("*.deb"):
        subprocess.run(("dpkg-deb", "-x", str(file), str(folder / "x")), check=True)
    return None


class Server:
    """The running server."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        for key in ("host", "person"):
            subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)), check=True)
        users = Path("/etc/passwd").read_text()
        (folder / "passwd").write_text(users if "\nsshd:" in users else f"{users}sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n")
        (folder / "config").write_text(_CONFIG.format(folder=folder, port=self._port))
        libraries = ":".join(sorted({str(file.parent) for file in (folder / "x").rglob("*.so*")}))
        script = _START.format(folder=folder, server=folder / "x/usr/sbin/sshd", libraries=libraries)
        argv = ("unshare", "--mount", "--propagation", "private", "--", "sh", "-c", script)
        self._process = subprocess.Popen(argv, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", self._port)):
                return
            time.sleep(0.05)
        assert self._process.stderr is not None
        raise AssertionError(self._process.stderr.read())

    def login(self, command: str, environ: Mapping[str, str]) -> Terminal:
        """Return a terminal in which a person logged in and started `command`."""
        options = ("-F", "none", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR")
        where = ("-p", str(self._port), "-i", str(self._folder / "person"), "root@127.0.0.1")
        return Terminal((shutil.which("ssh") or "ssh", "-tt", *options, *where, command), environ)

    def sessions(self) -> set[int]:
        """Return the processes of all connections, what was started through them included."""
        return set(descendants_of(self._process.pid))

    def drop(self) -> set[int]:
        """Kill the server's side of every connection, as a network that is gone for good ends it; return what ran in them."""
        there = self.sessions()
        servers = [pid for pid in there if Path(f"/proc/{pid}/comm").read_text().strip() == "sshd"]
        for pid in servers:
            os.kill(pid, signal.SIGKILL)
        return there

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextlib.contextmanager
def server(folder: Path) -> Iterator[Server]:
    """Run a server."""
    running = Server(folder)
    try:
        yield running
    finally:
        running.close()
