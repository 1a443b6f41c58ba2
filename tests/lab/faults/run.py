"""One fault run, inside a lab machine's namespaces: `python -m tests.lab.faults.run SEED [REFERENCE]` prints what became of it as JSON.

Without a reference nothing is hurt: the run that all others are compared with.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from steps.engine import client, journal
from steps.errors import BringupError
from steps.model.run import RunState
from tests.lab.faults import ground, look, troubles
from tests.lab.faults.plan import plan

PATIENCE = 90.0
_STATE = Path("/var/lib/bringup")
_ARCHIVES = "var/cache/apt/archives"


class Wrong(Exception):
    """Something that must hold does not."""


def insist(condition: object, what: str) -> None:
    """Raise unless the condition holds."""
    if not condition:
        raise Wrong(what)


class World:
    """The machine, the run on it, and what was seen of both."""

    def __init__(self) -> None:
        self.root = Path(os.environ["LAB_ROOT"])
        options = next(line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f" {self.root} " in line)
        self.lower = Path(options.partition("lowerdir=")[2].partition(",")[0])
        self.upper = Path(options.partition("upperdir=")[2].partition(",")[0])
        self.places = {"unpack": self.root.parent, "journal": _STATE, "download": self.root / _ARCHIVES}
        self.handle: client.RunHandle | None = None
        self.viewer: subprocess.Popen[bytes] | None = None
        self.noise: bytes | None = None
        self.heal: troubles.Heal = troubles.nothing
        self.notes: list[str] = []
        self.seen: list[bytes] = []
        self.times: list[float] = []
        self._watching = True

    # --- the stage ---------------------------------------------------------------------------------

    def set_up(self, *, with_clock: bool) -> None:
        """Give downloads and the run's folder a small disk each."""
        _STATE.mkdir(exist_ok=True)
        for place, size in ((_STATE, "24m"), (self.root / _ARCHIVES, "24m")):
            subprocess.run(("mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "lab", str(place)), check=True)
        partial = self.root / _ARCHIVES / "partial"
        partial.mkdir(mode=0o700)
        if with_clock:
            os.environ["LD_PRELOAD"] = f"{self.lower}{ground.CLOCK}"
            (self.root / "etc/ld.so.preload").write_text(f"{ground.CLOCK}\n")

    def control(self, name: str) -> Path:
        """Return a file that the packages' scripts look at."""
        folder = self.root / "etc/lab"
        folder.mkdir(exist_ok=True)
        return folder / name

    def looks(self) -> dict[str, str]:
        """Return what the machine is like now."""
        return look.looks(self.root, self.lower, self.upper)

    def processes(self) -> dict[int, str]:
        """Return who is at work."""
        return {pid: words for pid, words in look.processes().items() if self.viewer is None or pid != self.viewer.pid}

    def note(self, *words: str) -> None:
        """Remember something for the report."""
        self.notes.append(" ".join(words))

    # --- the run -----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start the run and watch its journal."""
        self.handle = client.start(plan(str(self.root)), sudo=None)
        threading.Thread(target=self._watch, args=(Path(self.handle.folder, "journal.jsonl"),), daemon=True).start()

    def _watch(self, file: Path) -> None:
        """Keep every whole line that was ever to be read, in the order of their coming."""
        began = time.monotonic()
        while self._watching:
            data = file.read_bytes() if file.exists() else b""
            lines = data[: data.rfind(b"\n") + 1].splitlines()
            self.times += [round(time.monotonic() - began, 3)] * (len(lines) - len(self.seen))
            self.seen += lines[len(self.seen) :]
            time.sleep(0.002)

    def stop_watching(self) -> None:
        """Let the journal be, for it is about to be damaged."""
        self._watching = False

    def at_work(self) -> bool:
        """Return whether the run may still do something."""
        return self.handle is None or self.handle.alive()

    def state(self) -> RunState:
        """Return the state of the run."""
        insist(self.handle, "there is no run")
        assert self.handle is not None
        return self.handle.state()

    def output(self) -> bytes:
        """Return all that the actions said."""
        assert self.handle is not None
        return b"".join(path.read_bytes() for path in sorted(Path(self.handle.folder, "output").glob("*.log")))

    def quiet(self, patience: float = PATIENCE) -> None:
        """Wait until nobody is at work any more: neither the runner nor what it left behind."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            if self.handle is not None and not self.handle.alive() and not self.processes():
                return
            time.sleep(0.02)
        raise Wrong(f"still at work: {self.processes()}")

    def must_refuse(self, handle: client.RunHandle) -> None:
        """Ask for what must be refused, and let the machine be as it is."""
        self.stop_watching()
        self.quiet()
        before = self.looks()
        try:
            client.find(handle.id).resume()
        except BringupError as error:
            self.note("refused:", error.code)
        else:
            raise Wrong("a damaged run was gone on with")
        self.quiet()
        insist(self.looks() == before, "a refused run changed the machine")

    def lose_the_archive(self) -> None:
        """Let nothing be had from anywhere any more: no server, no lists, no cache."""
        troubles.network("refuse", "")(self, Random(0))
        for pattern in ("var/lib/apt/lists/*Packages*", "var/lib/apt/lists/*Release*", "var/cache/apt/*.bin"):
            for file in self.root.glob(pattern):
                file.unlink()
        self.note("without an archive")

    def watch_as_a_person(self) -> None:
        """Have somebody look on, in a terminal of their own."""
        assert self.handle is not None
        argv = (sys.executable, "-I", "-m", "tui", "attach", self.handle.id, "--plain")
        self.viewer = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )


# --- when -----------------------------------------------------------------------------------------------


def moments(reference: dict[str, Any]) -> list[str]:
    """Return every moment that has a name: after each entry of the journal, and at what the packages say."""
    entries = [f"entry {number}" for number in range(1, len(reference["entries"]) + 1)]
    words = (
        "Get:",
        "Unpacking lab-driver",
        "Unpacking lab-data",
        "Setting up lab-tools",
        "lab-driver: building",
        "Setting up lab-extra",
        "part 3",
    )
    return [*entries, *(f"words {word}" for word in words)]


def wait_for(moment: str, world: World) -> None:
    """Wait for a moment; one that never comes is over with the run."""
    kind, _, what = moment.partition(" ")
    began = time.monotonic()
    while world.at_work() and time.monotonic() - began < PATIENCE:
        if kind == "entry" and len(world.seen) >= int(what):
            return
        if kind == "time" and time.monotonic() - began >= float(what):
            return
        if kind == "words" and what.encode() in world.output():
            return
        time.sleep(0.002)


# --- one run ---------------------------------------------------------------------------------------------


def check_claims(world: World, reference: dict[str, Any], when: str) -> None:
    """Hold what the run says of itself against the machine."""
    if world.handle is None:
        return
    state = world.state()
    if state.status == "done":
        differ = difference(world.looks(), reference["looks"])
        insist(not differ, f"{when}: said to be done, and is not: {differ}")
    if state.status == "undone":
        differ = difference(world.looks(), reference["before"])
        insist(not differ, f"{when}: said to be taken back, and is not: {differ}")
    for id, action in state.actions.items():
        if action.status == "done" and id == "packages.driver" and state.status not in ("undone", "undoing", "undo-failed"):
            insist(world.looks().get("package lab-driver") == "2.0 ii", f"{when}: the driver is said to be there")


def difference(now: dict[str, str], then: dict[str, str]) -> dict[str, tuple[str | None, str | None]]:
    """Return what differs."""
    return {key: (now.get(key), then.get(key)) for key in sorted({*now, *then}) if now.get(key) != then.get(key)}


def check_journal(world: World) -> None:
    """Insist that every line that was ever seen is still there, and that their numbers have no gap."""
    assert world.handle is not None
    lines = Path(world.handle.folder, "journal.jsonl").read_bytes().splitlines()
    insist(lines[: len(world.seen)] == world.seen, "an entry of the journal was lost")
    numbers = [entry.seq for entry in journal.read(Path(world.handle.folder, "journal.jsonl"))[0]]
    insist(numbers == list(range(1, len(numbers) + 1)), f"the journal has a gap: {numbers}")


def hurt(world: World, trouble: str, moment: str, rng: Random, *, with_clock: bool) -> None:
    """Wait for the moment, let the trouble strike, and heal it in time."""
    wait_for(moment, world)
    heal = troubles.catalogue(with_clock=with_clock)[trouble](world, rng)
    if troubles.is_lasting(trouble):
        until = time.monotonic() + PATIENCE
        while world.at_work() and time.monotonic() < until:
            time.sleep(0.02)
    else:
        time.sleep(rng.uniform(0.2, 1.5))
    world.heal = heal


def go(world: World, word: str) -> RunState:
    """Resume or undo, and return how it ended."""
    assert world.handle is not None
    world.handle = client.find(world.handle.id)
    act: Callable[[], None] = world.handle.resume if word == "resume" else world.handle.undo
    try:
        act()
    except BringupError as error:
        world.note(f"{word} refused:", error.code, str(dict(error.params)))
        raise Wrong(f"{word} was refused: {error.code} {dict(error.params)}") from error
    return world.state()


def one(seed: int, reference: dict[str, Any]) -> dict[str, Any]:
    """Do one run with one trouble, and perhaps a second one on the way back; return what there is to tell."""
    rng = Random(seed)
    world = World()
    with_clock = (world.lower / ground.CLOCK[1:]).exists()
    all_moments = moments(reference)
    # Every moment and every trouble has its turn: the seeds walk through both at different paces.
    all_troubles = sorted(troubles.catalogue(with_clock=with_clock))
    trouble = all_troubles[seed * 7 % len(all_troubles)]
    if trouble.endswith("-debs"):
        # Later than this everything has been fetched.
        all_moments = all_moments[: reference["entries"].index("registered packages.driver")]
    moment = rng.choice(
        (all_moments[seed % len(all_moments)], rng.choice(all_moments), f"time {rng.uniform(0, reference['times'][-1]):.2f}")
    )
    way = rng.choice(("resume", "resume", "undo", "resume undo"))
    second = (
        f"{rng.choice(('SIGKILL-runner', 'power-cut', 'SIGKILL-dpkg', 'SIGKILL-apt', 'SIGTERM-runner'))}" if rng.random() < 0.35 else None
    )
    told = {"seed": seed, "trouble": trouble, "moment": moment, "way": way, "second": second, "notes": world.notes}
    began = time.monotonic()
    try:
        _one(world, rng, reference, trouble, moment, way, second, with_clock=with_clock)
    except Wrong as error:
        told["wrong"] = str(error)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a failure of this run
        told["wrong"] = f"{type(error).__name__}: {error}"
    if "wrong" in told and world.handle is not None:
        folder = Path(world.handle.folder)
        told["journal"] = [line.decode(errors="replace")[:600] for line in (folder / "journal.jsonl").read_bytes().splitlines()]
        told["errors"] = (folder / "runner.err").read_text()[-3000:] if (folder / "runner.err").exists() else ""
        told["output"] = world.output()[-6000:].decode(errors="replace")
    told["seconds"] = round(time.monotonic() - began, 2)
    return told


def _one(
    world: World, rng: Random, reference: dict[str, Any], trouble: str, moment: str, way: str, second: str | None, *, with_clock: bool
) -> None:
    world.set_up(with_clock=trouble.startswith("clock"))
    early = troubles.strikes_early(trouble, rng)
    heal = troubles.nothing
    if early:
        heal = troubles.catalogue(with_clock=with_clock)[trouble](world, rng)
    world.begin()
    if trouble.endswith("viewer"):
        world.watch_as_a_person()
    if not early:
        hurt(world, trouble, moment, rng, with_clock=with_clock)
        heal = world.heal
    elif trouble.startswith("noise") and rng.random() < 0.5:
        wait_for(moment, world)
        troubles.killing("runner", signal.SIGKILL)(world, rng)
    lasting = troubles.is_lasting(trouble)
    if early and not lasting:
        time.sleep(rng.uniform(0.3, 1.5))
    if not lasting:
        heal()
    world.quiet()
    check_claims(world, reference, "after the trouble")
    world.note("stood:", world.state().status)
    if lasting:
        heal()
    recover(world, rng, reference, way, second, with_clock=with_clock)
    if "damaged" not in trouble:
        check_journal(world)
    if world.noise is not None and way != "undo":
        insist(world.noise in world.output(), "output was lost")


def recover(world: World, rng: Random, reference: dict[str, Any], way: str, second: str | None, *, with_clock: bool) -> None:
    """Go on, or back, through a second trouble when there is one; insist that the machine is in the end as it should be."""
    for word in way.split():
        wanted, target = ("done", "looks") if word == "resume" else ("undone", "before")
        if word == "resume" and world.state().status == "done":
            continue
        if word == "undo" and rng.random() < 0.5:
            world.lose_the_archive()
        go(world, word)
        if second is not None:
            time.sleep(rng.uniform(0, reference["times"][-1] / 2))
            troubles.catalogue(with_clock=with_clock)[second](world, rng)
            second = None
            world.quiet()
            world.note("then:", world.state().status)
            check_claims(world, reference, "after the second trouble")
            if world.state().status != wanted:
                go(world, word)
        world.quiet()
        state = world.state()
        errors = {id: action.error for id, action in state.actions.items() if action.error is not None}
        insist(state.status == wanted, f"{word}: {state.status} {errors}")
        differ = difference(world.looks(), reference[target])
        insist(not differ, f"{word}: {differ}")


def unharmed() -> dict[str, Any]:
    """Return what a run without any trouble does, and how the machine was before."""
    world = World()
    world.set_up(with_clock=False)
    before = world.looks()
    world.begin()
    world.quiet()
    state = world.state()
    insist(state.status == "done", f"{state} {world.output().decode(errors='replace')}")
    time.sleep(0.05)
    entries = [f"{entry.kind} {entry.action or ''}".strip() for entry in journal.read(Path(world.handle.folder, "journal.jsonl"))[0]]  # type: ignore[union-attr]
    looks = world.looks()
    found = {"before": before, "looks": looks, "entries": entries, "times": world.times}
    insist(difference(looks, before), "the run changes nothing")
    go(world, "undo")
    world.quiet()
    said = f"{world.state()} {(Path(world.handle.folder) / 'runner.err').read_text()} {world.output().decode(errors='replace')}"  # type: ignore[union-attr]
    insist(world.state().status == "undone", said)
    insist(not difference(world.looks(), before), f"the undo leaves {difference(world.looks(), before)}")
    return found


def main(arguments: list[str]) -> int:
    """Print the outcome of one run."""
    if len(arguments) < 2:
        print(json.dumps(unharmed()))
        return 0
    print(json.dumps(one(int(arguments[0]), json.loads(Path(arguments[1]).read_text()))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
