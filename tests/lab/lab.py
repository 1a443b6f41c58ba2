"""The lab: a Debian root and its repositories, made once and cached, and machines that live on copies of them.

`python -m tests.lab.lab COMMAND...` runs a command on a fresh machine, outside its root, with LAB_ROOT set;
`--inside` before it runs the command in the root.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.lab import rebound, repository

HERE = Path(__file__).resolve().parent
_MADE_OF = ("root.sh", "repository.py", "catalogue.py", "modules.py", "shaken.py", "debs.py", "data/nvidia.tsv")
_NEEDED = ("mmdebstrap", "gpg", "openssl", "unshare", "nsenter", "ip", "apt-get")
_KEEP_SECONDS = 7 * 86_400


def missing() -> str | None:
    """Return why there can be no lab here, or `None`."""
    if os.geteuid() != 0:
        return "needs root"
    absent = [program for program in _NEEDED if shutil.which(program) is None]
    if absent:
        return f"needs {', '.join(absent)} (see tests/lab/packages.txt)"
    tried = subprocess.run(("unshare", "--mount", "--pid", "--net", "--fork", "true"), capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else f"no namespaces here: {tried.stderr.strip()}"


@dataclass(frozen=True)
class Lab:
    """What was made: the root that machines are copied from, and the repositories that they are served."""

    root: Path
    repositories: Path


@contextlib.contextmanager
def _cached(files: tuple[str, ...]) -> Iterator[Path]:
    """Yield the folder of what is made of these files, alone with it; what nobody used for a week is gone."""
    digest = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in files)).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bringup-lab"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for old in cache.iterdir():
            if old.is_dir() and old.name != digest and time.time() - old.stat().st_mtime > _KEEP_SECONDS:
                subprocess.run(("rm", "-rf", "--one-file-system", "--", str(old)), check=True)
        (cache / digest).mkdir(exist_ok=True)
        yield cache / digest
        os.utime(cache / digest)


def prepare() -> Lab:
    """Return the lab, made in about half a minute when it is not in the cache yet."""
    with _cached(_MADE_OF) as folder:
        made = Lab(root=folder / "root", repositories=folder / "repositories")
        if not made.repositories.exists():
            repository.build(made.repositories)
        if not made.root.exists():
            subprocess.run(("bash", str(HERE / "root.sh"), str(made.root), str(made.repositories)), check=True, stdin=subprocess.DEVNULL)
    return made


def prepare_real() -> Lab:
    """Return a root with the whole archive of this machine's own Debian, and nothing that stands in for NVIDIA's repository."""
    archive = _archive()
    with _cached(("real_root.sh",)) as folder:
        made = Lab(root=folder / "root", repositories=folder)
        if not made.root.exists():
            subprocess.run(("bash", str(HERE / "real_root.sh"), str(made.root), archive), check=True, stdin=subprocess.DEVNULL)
    return made


def prepare_newer() -> Lab:
    """Return a root of the Debian whose apt verifies with Sequoia, and NVIDIA's repository for it."""
    with _cached(("newer_root.sh", "rebound.py", "repository.py", "debs.py")) as folder:
        made = Lab(root=folder / "root", repositories=folder / "repositories")
        if not made.repositories.exists():
            rebound.build(made.repositories)
        if not made.root.exists():
            argv = ("bash", str(HERE / "newer_root.sh"), str(made.root), str(made.repositories), _archive())
            subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
    return made


def _archive() -> str:
    """Return the address of the archive that this machine's own apt uses."""
    told = subprocess.run(("apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)"), capture_output=True, text=True, check=True)
    lines = (line.split() for line in told.stdout.splitlines())
    return next(uri.rstrip("/") for origin, uri in lines if origin == "Debian" and "security" not in uri)


@dataclass(frozen=True)
class LabMachine:
    """A machine that stays until it is closed: processes started in it by `argv` see the same files, processes and network."""

    process: int
    """The first process of its namespaces, as it is numbered here."""
    root: str
    """Its root folder, as its processes outside the root see it."""

    def argv(self, *command: str) -> tuple[str, ...]:
        """Return how `command` is started beside the root, in this folder, with LAB_ROOT set."""
        enter = ("nsenter", "--target", str(self.process), "--mount", "--pid", "--ipc", "--uts", "--net", "--")
        return (*enter, "env", f"--chdir={Path.cwd()}", f"LAB_ROOT={self.root}", *command)

    def inside(self, *command: str) -> tuple[str, ...]:
        """Return how `command` is started in the root."""
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return self.argv("chroot", self.root, "/usr/bin/env", "-i", "HOME=/root", "LANG=C.UTF-8", path, *command)

    def run(
        self, *command: str, inside: bool = True, env: Mapping[str, str] | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run `command` to its end, in the root unless told otherwise."""
        argv = self.inside(*command) if inside else self.argv(*command)
        variables = {**os.environ, **(env or {})}
        return subprocess.run(argv, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False)

    def path(self, inside: str) -> Path:
        """Return a path of the root as this process can open it."""
        return Path(f"/proc/{self.process}/root{self.root}{inside}")


@contextlib.contextmanager
def machine(lab: Lab, *, size: str = "16G", served: bool = True, online: bool = False) -> Iterator[LabMachine]:
    """Start a machine on a copy of the root in memory; everything in it ends and is gone afterwards.

    One that is `online` has this machine's network, in place of the repositories that are served.
    """
    serve = ("--network",) if online else ("--serve", str(lab.repositories)) if served else ()
    argv = ("bash", str(HERE / "enter.sh"), "--hold", "--size", size, *serve, str(lab.root))
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        try:
            word, _, root = holder.stdout.readline().strip().partition(" ")
            if word != "ready":
                raise RuntimeError(f"the lab machine did not start (exit {holder.wait()})")
            children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text(encoding="ascii").split()
            yield LabMachine(process=int(children[0]), root=root)
        finally:
            # unshare takes process 1 of the namespace with it, and the kernel everything else in there.
            holder.kill()


def main(arguments: list[str]) -> int:
    """Run the command of the command line on a fresh machine and return its exit code."""
    inside = arguments[:1] == ["--inside"]
    command = arguments[1:] if inside else arguments
    lab = prepare()
    where = () if inside else ("--outside",)
    argv = ("bash", str(HERE / "enter.sh"), *where, "--serve", str(lab.repositories), str(lab.root), "--", *command)
    return subprocess.run(argv, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
