"""What can go wrong: each trouble strikes a machine at work and is healed again."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from steps.engine import client

if TYPE_CHECKING:
    from tests.lab.faults.run import World

Heal = Callable[[], None]
Trouble = Callable[["World", Random], Heal]

SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
VICTIMS = ("viewer", "runner", "apt", "dpkg", "script", "drain")
_PATIENCE = 3.0


def nothing() -> None:
    """Heal what needs no healing."""


# --- processes ------------------------------------------------------------------------------------------


_ASKS = (" -s ", "--print-uris", "--print-architecture", "--print-foreign", "--audit", " --assert")
"""What only looks: killed once in a while, but the one that changes something is the better victim."""


def victims(world: World, name: str, *, only_changing: bool = False) -> list[int]:
    """Return the processes that are meant by a name and alive now."""
    return [pid for pid in _named(world, name) if not (only_changing and any(word in world.processes().get(pid, "") for word in _ASKS))]


def _named(world: World, name: str) -> list[int]:
    found = world.processes()
    match name:
        case "viewer":
            return [world.viewer.pid] if world.viewer is not None else []
        case "runner":
            return [pid for pid, words in found.items() if "steps.engine.runner" in words and "--launch" not in words]
        case "apt":
            return [pid for pid, words in found.items() if words.startswith("apt-get ")]
        case "dpkg":
            return [pid for pid, words in found.items() if words.startswith("/usr/bin/dpkg ")]
        case "script":
            return [pid for pid, words in found.items() if ".postinst" in words or ".preinst" in words or ".prerm" in words]
        case "drain":
            return [pid for pid, words in found.items() if words.startswith("tee ")]
        case _:
            return list(found)


def killing(victim: str, number: signal.Signals) -> Trouble:
    """Return the sending of a signal to one of the run's processes, waited for when there is none at the moment."""

    def strike(world: World, rng: Random) -> Heal:
        deadline = time.monotonic() + _PATIENCE
        only_changing = rng.random() < 0.8
        while not (pids := victims(world, victim, only_changing=only_changing)) and time.monotonic() < deadline and world.at_work():
            time.sleep(0.003)
        world.note("hit" if pids else "missed", ", ".join(world.processes().get(pid, "?")[:60] for pid in pids))
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return nothing

    return strike


def power_cut(world: World, rng: Random) -> Heal:
    """Kill everything at once, nobody being told; what was not synced stays, which only a real disk would lose."""
    for _ in range(5):
        for pid in victims(world, "all"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    return nothing


# --- the disk -------------------------------------------------------------------------------------------


def full(place: str) -> Trouble:
    """Return a disk that is full at once: where packages are downloaded, unpacked, or where the run is kept."""

    def strike(world: World, rng: Random) -> Heal:
        filler = world.places[place] / ".filler"
        descriptor = os.open(filler, os.O_RDWR | os.O_CREAT, 0o600)
        with contextlib.suppress(OSError):
            for block in (1 << 24, 1 << 20, 1 << 16, 4096):
                with contextlib.suppress(OSError):
                    while True:
                        os.posix_fallocate(descriptor, os.fstat(descriptor).st_size, block)
        os.close(descriptor)

        def heal() -> None:
            filler.unlink(missing_ok=True)

        return heal

    return strike


_BUSY = 5.0
"""So long is tried to make a folder read-only; seconds. Where that never comes about, nothing is wrong with the run."""


def read_only(folder: str) -> Trouble:
    """Return a folder of the system that can no longer be written in, as after an error of the disk."""

    def strike(world: World, rng: Random) -> Heal:
        at = f"{world.root}{folder}"
        subprocess.run(("mount", "--bind", at, at), check=True)
        # While a file below is open for writing, as dpkg's often is, the kernel says that it is busy.
        until = time.monotonic() + _BUSY
        while subprocess.run(("mount", "-o", "remount,bind,ro", at), check=False).returncode and time.monotonic() < until:
            time.sleep(0.02)
        return lambda: void(subprocess.run(("umount", "-l", at), check=True))

    return strike


def void(_: object) -> None:
    """Return nothing of something."""


# --- the network ----------------------------------------------------------------------------------------


def network(word: str, part: str) -> Trouble:
    """Return a server that does wrong for the addresses with `part` in them."""

    def strike(world: World, rng: Random) -> Heal:
        file = Path("/run/lab/network")
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{word} {part}\n")
        if word == "refuse":
            # Lists that were fetched are not asked for again; a package that was fetched is taken from the cache.
            with contextlib.suppress(OSError):
                for cached in (world.places["download"]).glob("*.deb"):
                    cached.unlink()
        return lambda: file.unlink(missing_ok=True)

    return strike


# --- the manager ----------------------------------------------------------------------------------------


def locked(path: str) -> Trouble:
    """Return another program that holds one of the manager's locks."""

    def strike(world: World, rng: Random) -> Heal:
        descriptor = os.open(f"{world.root}{path}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                time.sleep(0.01)
                continue
            break
        return lambda: os.close(descriptor)

    return strike


def failing(package: str, how: str) -> Trouble:
    """Return a maintainer script that fails, or dies."""

    def strike(world: World, rng: Random) -> Heal:
        file = world.control("behave")
        file.write_text(f"{package} {how}\n")
        return lambda: file.unlink(missing_ok=True)

    return strike


# --- the clock ------------------------------------------------------------------------------------------


def clock(seconds: int) -> Trouble:
    """Return a wall clock that jumps, for the runner and for every program of the root."""

    def strike(world: World, rng: Random) -> Heal:
        files = [Path("/run/lab/clock"), world.root / "run/lab/clock"]
        for file in files:
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"{seconds}\n")

        def heal() -> None:
            for file in files:
                file.unlink(missing_ok=True)

        return heal

    return strike


# --- what a program says --------------------------------------------------------------------------------

NOISE = {
    "escapes": b"".join(b"\x1b[%d;%dH\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b[2J\x1b[?25l\r" % (row, row) for row in range(1, 200))
    + b"\x1bc\n",
    "nothing": bytes(100_000) + b"\n",
    "invalid": bytes(range(128, 256)) * 800 + b"\xed\xa0\x80\xf8\x88\n",
    "long": b"x" * (10 << 20) + b"\n",
    "unfinished": "[y/N] 界".encode()[:-1],
}


def noise(kind: str) -> Trouble:
    """Return a script that says something odd; every byte of it has to be in the output."""

    def strike(world: World, rng: Random) -> Heal:
        world.control("noise").write_bytes(NOISE[kind])
        world.noise = NOISE[kind]
        return nothing

    return strike


# --- what the run wrote down ----------------------------------------------------------------------------


def damaged(what: str) -> Trouble:
    """Return a killed runner whose folder is found damaged; nothing may be done on such a folder."""

    def strike(world: World, rng: Random) -> Heal:
        killing("runner", signal.SIGKILL)(world, rng)
        handle = world.handle
        if handle is None:
            return nothing
        deadline = time.monotonic() + _PATIENCE
        while handle.alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        file = Path(handle.folder, "plan.json" if what == "plan" else "journal.jsonl")
        whole = file.read_bytes()
        # Nothing of the manager's must go on writing while we look: the runner alone writes here.
        match what:
            case "torn":
                file.write_bytes(whole + b'{"seq":999,"at":1.0,"kind":"action-fin')
                return nothing
            case "plan":
                file.write_bytes(whole.replace(b"setting = new", b"setting = bad", 1))
            case _:
                at = rng.randrange(len(whole) - 2)
                file.write_bytes(whole[:at] + b"\x00" + whole[at + 1 :])
        world.must_refuse(handle)

        def heal() -> None:
            file.write_bytes(whole)
            world.handle = client.find(handle.id)

        return heal

    return strike


# --- all of them ----------------------------------------------------------------------------------------

LISTS, DEBS = "Release", ".deb"


def catalogue(*, with_clock: bool) -> dict[str, Trouble]:
    """Return every trouble by its name."""
    found: dict[str, Trouble] = {"power-cut": power_cut}
    for victim in VICTIMS:
        found |= {f"{number.name}-{victim}": killing(victim, number) for number in SIGNALS}
    found |= {f"full-{place}": full(place) for place in ("download", "unpack", "journal")}
    found |= {f"read-only{folder.replace('/', '-')}": read_only(folder) for folder in ("/usr", "/var/lib/dpkg", "/etc")}
    found |= {f"{word}-debs": network(word, DEBS) for word in ("cut", "stall", "hash", "missing", "refuse")}
    found |= {f"{word}-lists": network(word, LISTS) for word in ("cut", "stall", "expired", "foreign", "weak", "unsigned", "refuse")}
    # The version that is there now can be fetched no more: it has to be built again from its files.
    found["missing-old"] = network("missing", "lab-driver_1.0")
    found["certificate"] = network("certificate", "")
    locks = {"frontend": "/var/lib/dpkg/lock-frontend", "dpkg": "/var/lib/dpkg/lock", "lists": "/var/lib/apt/lists/lock"}
    found |= {f"lock-{name}": locked(path) for name, path in {**locks, "archives": "/var/cache/apt/archives/lock"}.items()}
    found |= {f"failing-{package}": failing(package, "fail 10") for package in ("lab-driver", "lab-tools", "lab-extra")}
    found["dying-script"] = failing("lab-driver", "kill 9")
    found |= {f"noise-{kind}": noise(kind) for kind in NOISE}
    found |= {f"damaged-{what}": damaged(what) for what in ("torn", "plan", "journal")}
    if with_clock:
        found |= {f"clock-{name}": clock(seconds) for name, seconds in (("back", -90_000), ("ahead", 90_000), ("years", 400_000_000))}
    return found


def strikes_early(name: str, rng: Random) -> bool:
    """Return whether a trouble strikes before the run begins: what would come too late at most moments, or is said by a script."""
    if name.startswith(("noise", "failing", "dying", "missing-old")):
        return True
    return (name.endswith("-lists") or name == "certificate") and rng.random() < 0.8


LASTING = ("failing", "dying", "hash", "missing", "expired", "foreign", "weak", "unsigned", "certificate", "refuse", "read-only", "full")
"""What may stay until somebody mends it: the run has to end by itself and say so. All else is over after a while."""


def is_lasting(name: str) -> bool:
    """Return whether a trouble lasts until the run has ended."""
    return name.startswith(LASTING)


def names(rng: Random, *, with_clock: bool) -> Iterator[str]:
    """Yield names of troubles for ever, each as often as any other in the long run."""
    all_names = sorted(catalogue(with_clock=with_clock))
    while True:
        rng.shuffle(all_names)
        yield from all_names
