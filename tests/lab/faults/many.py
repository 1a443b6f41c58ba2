"""Many fault runs: `python -m tests.lab.faults.many FIRST COUNT [WORKERS]` prints one line a run and the failures whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.lab import lab as laboratory
from tests.lab.faults import ground
from tests.lab.lab import HERE, Lab

_LIMIT = 300.0
_SIZE = "700M"
"""More than the engine wants to be left free, and little enough to be filled."""


def started(lab: Lab, root: Path, *arguments: str) -> dict[str, Any]:
    """Return what one run tells, on a machine of its own."""
    enter = ("bash", str(HERE / "enter.sh"), "--outside", "--size", _SIZE, "--serve", str(lab.repositories), str(root), "--")
    argv = (*enter, sys.executable, "-m", "tests.lab.faults.run", *arguments)
    environment = {name: value for name, value in os.environ.items() if name not in ("SUDO_UID", "BRINGUP_STATE", "XDG_STATE_HOME")}
    try:
        ended = subprocess.run(argv, capture_output=True, text=True, timeout=_LIMIT, env=environment, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return {"seed": int(arguments[0]) if arguments else None, "wrong": "it hangs"}
    try:
        found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return {"seed": int(arguments[0]) if arguments else None, "wrong": f"it broke: {ended.stdout}{ended.stderr}"}
    return found


class Faults:
    """The ground and the unharmed run, made once for all the runs that are hurt."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self._lab = lab
        self._root = ground.prepare(lab)
        self.reference = started(lab, self._root)
        if "looks" not in self.reference:
            raise RuntimeError(self.reference["wrong"])
        self._file = folder / "reference.json"
        self._file.write_text(json.dumps(self.reference))

    def run(self, seed: int) -> dict[str, Any]:
        """Return what became of the run with this seed."""
        return started(self._lab, self._root, str(seed), str(self._file))

    def runs(self, seeds: range, workers: int = 2) -> Iterator[dict[str, Any]]:
        """Yield what became of each, several at a time."""
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(self.run, seeds)


def main(arguments: list[str]) -> int:
    """Run the seeds of the command line and return 1 when one of them went wrong."""
    first, count, workers = (*map(int, arguments), 2)[:3]
    with tempfile.TemporaryDirectory() as folder:
        faults = Faults(laboratory.prepare(), Path(folder))
        began, wrong = time.monotonic(), 0
        for told in faults.runs(range(first, first + count), workers):
            wrong += "wrong" in told
            print(json.dumps({key: value for key, value in told.items() if key not in ("journal", "output", "errors")}), flush=True)
            if "wrong" in told:
                print(*told.get("journal", ()), told.get("errors", ""), told.get("output", ""), sep="\n", flush=True)
        print(f"{count} runs, {wrong} wrong, {time.monotonic() - began:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
