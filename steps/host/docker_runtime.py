"""A small program: takes NVIDIA's runtime out of Docker's configuration, and leaves everything else in it as it is."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

_NAME = "nvidia"


def without(text: str) -> str | None:
    """Return the configuration without NVIDIA's runtime; `None` when there is nothing to take out or it cannot be read."""
    try:
        found: Any = json.loads(text)
    except ValueError:
        return None
    runtimes = found.get("runtimes") if isinstance(found, dict) else None
    if not isinstance(runtimes, dict) or _NAME not in runtimes:
        return None
    left = {name: value for name, value in runtimes.items() if name != _NAME}
    kept = {key: value for key, value in found.items() if key != "runtimes" and (key, value) != ("default-runtime", _NAME)}
    return json.dumps({**kept, **({"runtimes": left} if left else {})}, indent=4) + "\n"


def main(path: str) -> int:
    """Change the file in one step, with its owner and mode; return 0 also when there was nothing to change."""
    file = Path(path)
    try:
        text, was = file.read_text(encoding="utf-8"), file.stat()
    except FileNotFoundError:
        return 0
    changed = without(text)
    if changed is None:
        return 0
    beside = file.with_name(f".{file.name}.bringup")
    beside.write_text(changed, encoding="utf-8")
    os.chown(beside, was.st_uid, was.st_gid)
    beside.chmod(was.st_mode & 0o7777)
    beside.replace(file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
