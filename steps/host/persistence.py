"""A small program: ends with 0 when every NVIDIA card keeps its driver awake, with 1 when one does not or nothing can be asked."""

from __future__ import annotations

import subprocess
import sys

ASK = ("nvidia-smi", "--query-gpu=persistence_mode", "--format=csv,noheader")


def awake(told: str) -> bool:
    """Return whether the answer names cards, all of them with persistence mode on."""
    modes = [line.strip() for line in told.splitlines() if line.strip()]
    return bool(modes) and all(mode == "Enabled" for mode in modes)


def main() -> int:
    """Ask the driver; what cannot be asked is not awake."""
    try:
        told = subprocess.run(ASK, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return 1
    return 0 if told.returncode == 0 and awake(told.stdout) else 1


if __name__ == "__main__":
    sys.exit(main())
