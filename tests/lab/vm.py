"""A whole Debian in QEMU, in software: systemd is process 1, logind looks after sessions, and it can really be rebooted.

Made from Debian's packages (tests/lab/packages-long.txt); about a minute once, then some fifteen seconds a boot.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import platform
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect

CHECKOUT = Path(__file__).resolve().parents[2]
HOME = "/opt/bringup"
"""Where our program lies in it."""
PYTHON = f"{HOME}/bin/python3"
_PACKAGES = "systemd-sysv,dbus,libpam-systemd,linux-image-cloud-amd64,python3,kmod,procps,login,passwd,sudo"
_OWN = ("steps", "tui", "assets")
_NEEDED = ("msgspec", "pexpect", "ptyprocess", "packaging", "distro", "pynvml", "tomli_w", "pyte", "wcwidth")
_PROMPT = "vm-ready# "


def missing() -> str | None:
    """Return why there can be no machine here, or `None`."""
    if os.geteuid() != 0:
        return "needs root"
    if platform.python_version_tuple()[:2] != ("3", "11"):
        return "needs Python 3.11, the one of Debian 12"
    absent = [program for program in ("qemu-system-x86_64", "mmdebstrap", "mke2fs") if shutil.which(program) is None]
    return f"needs {', '.join(absent)} (see tests/lab/packages-long.txt)" if absent else None


def archive() -> str:
    """Return the address of the Debian archive that this machine's own apt uses."""
    told = subprocess.run(("apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)"), capture_output=True, text=True, check=True)
    mirrors = [line.split()[1].rstrip("/") for line in told.stdout.splitlines() if line.startswith("Debian ") and "security" not in line]
    return mirrors[0]


Fit = Callable[[Path], None]
"""Changes a machine's root before it becomes a disk."""


def _as_it_is(root: Path) -> None:
    """Change nothing below `root`."""


def image(folder: Path, files: dict[str, str], fit: Fit) -> tuple[Path, Path, Path]:
    """Return a new disk in `folder` with our program, `files` and what `fit` does in it, its kernel, and its initramfs."""
    root = folder / "root"
    root.mkdir()
    subprocess.run(("tar", "-C", str(root), "--numeric-owner", "-xpf", str(system(_PACKAGES))), check=True)
    _with_our_program(root)
    _with_two_people(root)
    for name, text in files.items():
        target = root / name.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    fit(root)
    kernel, initrd = (next((root / "boot").glob(f"{name}-*")) for name in ("vmlinuz", "initrd.img"))
    disk = folder / "disk.img"
    subprocess.run(("mke2fs", "-q", "-t", "ext4", "-d", str(root), str(disk), "2G"), check=True)
    for path in (kernel, initrd):
        shutil.copy(path, folder / path.name)
    shutil.rmtree(root)
    return disk, folder / kernel.name, folder / initrd.name


def system(packages: str) -> Path:
    """Return the archive of a bare Debian with these packages, made when it is not in the cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bringup-lab"
    made = cache / f"vm-{hashlib.sha256(packages.encode()).hexdigest()[:12]}.tar"
    if not made.exists():
        cache.mkdir(parents=True, exist_ok=True)
        half = made.with_suffix(f".{os.getpid()}.tar")
        command = ("mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", f"--include={packages}", "bookworm", str(half), archive())
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
        half.rename(made)
    return made


def _with_our_program(root: Path) -> None:
    """Put our program and what it needs into an environment of the system's own Python."""
    subprocess.run(("chroot", str(root), "/usr/bin/python3", "-m", "venv", "--without-pip", HOME), check=True)
    site = root / HOME.lstrip("/") / "lib/python3.11/site-packages"
    for name in _OWN:
        shutil.copytree(CHECKOUT / name, site / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in _NEEDED:
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None:
            raise RuntimeError(f"{name} is not installed here")
        origin = Path(found.origin)
        if origin.name == "__init__.py":
            shutil.copytree(origin.parent, site / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(origin, site)


def _with_two_people(root: Path) -> None:
    """Let root log in by himself on the serial line; ana may use sudo."""
    subprocess.run(("chroot", str(root), "useradd", "--create-home", "--shell", "/bin/bash", "ana"), check=True)
    (root / "etc/sudoers.d/ana").write_text("ana ALL=(ALL) NOPASSWD: ALL\n")
    (root / "etc/hostname").write_text("vm\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost vm\n")
    (root / "etc/fstab").write_text("/dev/vda / ext4 defaults 0 1\n")
    settings = ("bind 'set enable-bracketed-paste off'", "stty -echo cols 200", "export SYSTEMD_PAGER=cat")
    (root / "root/.bashrc").write_text("\n".join((f"PS1='{_PROMPT}'", *settings, "")))
    units = root / "etc/systemd/system"
    (units / "serial-getty@ttyS0.service.d").mkdir(parents=True)
    start = "ExecStart=-/sbin/agetty --autologin root --keep-baud 115200 %I vt220"
    (units / "serial-getty@ttyS0.service.d/login.conf").write_text(f"[Service]\nExecStart=\n{start}\n")
    (units / "getty.target.wants").mkdir(parents=True, exist_ok=True)
    (units / "getty.target.wants/serial-getty@ttyS0.service").symlink_to("/lib/systemd/system/serial-getty@.service")


class Vm:
    """A machine that runs; root's line takes commands."""

    def __init__(self, options: list[str]) -> None:
        self._options = options
        self._child = self._on()

    def _on(self) -> pexpect.spawn[str]:
        return pexpect.spawn("qemu-system-x86_64", self._options, encoding="utf-8", codec_errors="replace", timeout=600)

    def off(self) -> None:
        """Take its power away: what its system has not written to the disk yet is lost."""
        self._child.close(force=True)

    def cut_power(self) -> None:
        """Take its power away in the middle of whatever it does, start it again, and return when root's shell is there."""
        self.off()
        self._child = self._on()
        self.await_login()

    def await_login(self, patience: float = 600.0) -> None:
        """Wait until root's shell is there."""
        self._child.expect_exact(_PROMPT, timeout=patience)

    def run(self, command: str, patience: float = 180.0) -> str:
        """Return what a command of root's prints."""
        mark = secrets.token_hex(6)
        self._child.sendline(f"{{ {command} ; }} 2>&1; echo {mark[:6]}''{mark[6:]}")
        self._child.expect_exact(mark, timeout=patience)
        said = str(self._child.before)
        self._child.expect_exact(_PROMPT, timeout=patience)
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", said).replace("\r\n", "\n").replace(_PROMPT, "").strip()

    def reboot(self) -> None:
        """Reboot it, as a person would, and return once it starts again."""
        self._child.sendline("systemctl reboot")
        self._child.expect_exact("Welcome to ", timeout=600)

    def as_ana(self, script: str) -> None:
        """Run a script in a login session of ana's own; when it ends, the session does."""
        # From a service, which is in no session, su opens one.
        self.run(f"systemd-run --quiet --unit=ana-session su --login ana --command '/bin/sh {script}'")

    def until(self, command: str, true: str, patience: float = 400.0) -> str:
        """Return what a command prints once that holds `true`."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            said = self.run(command)
            if true in said:
                return said
            time.sleep(1.0)
        raise AssertionError(f"{command}: never {true!r}; last:\n{self.run(command)}")


@contextlib.contextmanager
def started(folder: Path, files: dict[str, str], fit: Fit = _as_it_is) -> Iterator[Vm]:
    """Start a machine with `files`; it ends with the block."""
    disk, kernel, initrd = image(folder, files, fit)
    # One processor: with two, the kernel's start hangs now and then when the machine below is busy.
    options = ["-accel", "tcg", "-smp", "1", "-m", "1024", "-display", "none", "-monitor", "none", "-nic", "none"]
    options += ["-kernel", str(kernel), "-initrd", str(initrd), "-append", "root=/dev/vda rw console=ttyS0 loglevel=4"]
    options += ["-drive", f"file={disk},format=raw,if=virtio,cache=unsafe"]
    options += ["-serial", "stdio"]
    machine = Vm(options)
    try:
        machine.await_login()
        yield machine
    finally:
        machine.off()
