"""Import each named distribution in its own environment: one JSON line each, with its version and the devices it sees.

Each is tried in a process of its own: what one does to its process is no finding about another. Run by the environment's
interpreter, with `ranks.py` beside it: `python verify_import.py --limit 120 jax tensorflow transformers`.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import os
import sys
import warnings

from ranks import Line, alone, last_line, say

LIMIT = 120.0
"""Seconds that one may take; from a disk in the network the large ones need a minute."""


def main() -> int:
    """Try every distribution and print its line; the status is 0 whatever they say."""
    # Compiled modules are kept for the person's own first import, but nobody leaves files in somebody else's environment.
    sys.dont_write_bytecode = os.stat(sys.prefix).st_uid != os.geteuid()
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=float, default=LIMIT)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    for name in asked.names:
        line = alone(lambda name=name: imported(name), limit=asked.limit)
        if line.get("code") in ("hung", "killed", "silent"):
            # In other words than a rank's: here it is the only one.
            line["code"] = f"import-{line['code']}"
        say({"rung": name, **line})
    return 0


def imported(name: str) -> Line:
    """Return what importing one distribution comes to."""
    try:
        found = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return {"state": "failed", "code": "not-installed"}
    try:
        for module in modules(found)[:1]:
            importlib.import_module(module)
        devices = seen(name)
    except Exception as error:  # noqa: BLE001 - whatever keeps it from importing is the finding
        return {"state": "failed", "detail": found.version, "text": last_line(error)}
    return {"state": "passed", "detail": found.version, "devices": devices}


def modules(found: importlib.metadata.Distribution) -> list[str]:
    """Return the importable top-level names of a distribution, its own name first."""
    own = found.metadata["Name"].lower().replace("-", "_")
    said = (found.read_text("top_level.txt") or "").split()
    files = [str(file).partition("/")[0] for file in found.files or () if str(file).endswith("__init__.py")]
    names = [one for one in dict.fromkeys([*said, *files]) if one.isidentifier() and not one.startswith("_")]
    return sorted(names, key=lambda one: (one.lower() != own, names.index(one)))


def seen(name: str) -> int | None:
    """Return how many GPUs the framework sees; `None` for one that we do not ask."""
    if name == "jax":
        jax = importlib.import_module("jax")
        return sum(device.platform != "cpu" for device in jax.devices())
    if name == "tensorflow":
        tensorflow = importlib.import_module("tensorflow")
        return len(tensorflow.config.list_physical_devices("GPU"))
    return None


if __name__ == "__main__":
    sys.exit(main())
