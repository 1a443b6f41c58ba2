"""The machine that this program runs on."""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping

from steps import resources
from steps.host import users
from steps.host.base import Result, WritableHost
from steps.host.files import FileTree, decoded

MOST_OUTPUT = 16 << 20
"""A probe that prints more is stopped: its output is no fact but a flood."""


NVML = ("bringup", "nvml")
"""The name under which our own question to NVML is asked and recorded; it is a program of this package."""
USERS = ("bringup", "gpu-users")
"""The same for the question which processes hold a GPU: answered here, for /proc never keeps anybody waiting."""
BOOT_MENU = ("bringup", "boot-menu")
"""The same for the kernels that the boot loader may start: of its files only this is recorded, for they may hold passwords."""
INITRAMFS = ("bringup", "initramfs")
"""The same for the names in an initramfs, whose path follows."""
NO_ANSWER = "bringup: the probe did not end in time"
"""Stands at the end of what a probe printed that was stopped, so that a recording tells it from one that was never run."""


class LocalHost(FileTree):
    """The machine this program runs on; see `WritableHost` for what each method returns."""

    rehearsal = False

    def __init__(self) -> None:
        super().__init__("/")
        self.name = os.uname().nodename

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        """Return what the probe prints."""
        if argv == USERS:
            return users.holders()
        told = told_by_files(self, argv) or _told_here(argv)
        if told is not None:
            return told
        if argv[0] == "ls":
            argv = self._expanded(argv)
        return run_bounded(resources.module_command("steps.host.nvml") if argv == NVML else argv, timeout)

    def _expanded(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Return `argv` with its patterns filled in as a shell does: one that nothing matches stays."""
        return tuple(path for word in argv for path in ((self.glob(word) or (word,)) if "*" in word else (word,)))

    def recorded(self) -> tuple[tuple[str, ...], ...]:
        """Return nothing: any command can be run."""
        return ()

    def command(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Return `argv` itself."""
        return argv


def pause(seconds: float) -> None:
    """Wait before a machine is looked at again."""
    time.sleep(seconds)


def told_by_files(host: WritableHost, argv: tuple[str, ...]) -> Result | None:
    """Return the answer to a question about the files of a system that is ours to read; `None` for a program's."""
    if argv == BOOT_MENU:
        from steps.host import boot_menu

        return boot_menu.menu(host)
    if argv[:2] == INITRAMFS and len(argv) == 3:
        from steps.host import initramfs

        return initramfs.contents(host, argv[2])
    return None


def _told_here(argv: tuple[str, ...]) -> Result | None:
    """Return what programs would print that only repeat what this process knows of itself; `None` for all others."""
    if argv == ("uname", "-a"):
        told = os.uname()
        return Result(stdout=f"{told.sysname} {told.nodename} {told.release} {told.version} {told.machine} GNU/Linux\n", status=0)
    if argv == ("env",):
        return Result(stdout="".join(f"{key}={value}\n" for key, value in os.environ.items()), status=0)
    if argv == ("ulimit", "-l"):
        most = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
        return Result(stdout="unlimited\n" if most == resource.RLIM_INFINITY else f"{most >> 10}\n", status=0)
    if len(argv) == 2 and argv[0] == "printenv":
        value = probe_environment().get(argv[1])
        return Result(status=1) if value is None else Result(stdout=f"{value}\n", status=0)
    return None


def probe_environment() -> Mapping[str, str]:
    """Return the caller's environment, made English and able to find what lies in sbin."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("LC_") and key not in ("LANG", "LANGUAGE")}
    paths = [*kept.get("PATH", "").split(":"), "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
    return {**kept, "LC_ALL": "C", "PATH": ":".join(dict.fromkeys(path for path in paths if path))}


def run_bounded(argv: tuple[str, ...], timeout: float) -> Result:
    """Run a probe in a process group of its own, with no input, for at most `timeout` seconds and `MOST_OUTPUT` bytes."""
    environment = probe_environment()
    # Looking costs a tenth of starting a process that finds out the same.
    if "/" not in argv[0] and not any(os.access(f"{folder}/{argv[0]}", os.X_OK) for folder in environment["PATH"].split(":")):
        return Result(status=127)
    try:
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, start_new_session=True
        )
    except (FileNotFoundError, NotADirectoryError):
        return Result(status=127)
    except (OSError, ValueError) as error:
        return Result(stderr=str(error), status=126)
    try:
        whole, out, err = _drain(child, time.monotonic() + timeout)
        if whole:
            try:
                child.wait(timeout=max(0.1, timeout))
            except subprocess.TimeoutExpired:
                whole = False
        if not whole:
            _kill(child)
    finally:
        for stream in (child.stdout, child.stderr):
            if stream is not None:
                stream.close()
    if not whole:
        return Result(stdout=decoded(out), stderr=f"{decoded(err)}{NO_ANSWER}\n", status=None)
    return Result(stdout=decoded(out), stderr=decoded(err), status=child.returncode)


def _drain(child: subprocess.Popen[bytes], deadline: float) -> tuple[bool, bytes, bytes]:
    """Return whether both streams ended in time and within bounds, and what came of them."""
    streams: dict[int, list[bytes]] = {}
    size = 0
    with selectors.DefaultSelector() as waiting:
        for stream in (child.stdout, child.stderr):
            if stream is not None:
                streams[stream.fileno()] = []
                waiting.register(stream.fileno(), selectors.EVENT_READ)
        while waiting.get_map() and size <= MOST_OUTPUT:
            left = deadline - time.monotonic()
            ready = waiting.select(left) if left > 0 else []
            if not ready:
                break
            for key, _ in ready:
                block = os.read(key.fd, 65536)
                if not block:
                    waiting.unregister(key.fd)
                size += len(block)
                streams[key.fd].append(block)
        whole = not waiting.get_map()
    out, err = (b"".join(blocks) for blocks in streams.values())
    return whole, out, err


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End the whole group; a child that even this does not end (a wedged device) is left behind, not waited for."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=1)
