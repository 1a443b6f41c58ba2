"""One machine's part of the look between machines: run on each of them by ssh, with any Python.

    node.py facts [PYTHON]              interfaces, clock, and the versions of what PYTHON's environment holds, as one JSON line
    node.py listen ADDRESS PORT LIMIT   wait for one connection; prints "heard" or why not
    node.py connect ADDRESS PORT LIMIT  try to reach it; prints "reached", or the error's number and name

Nothing is written, and a port is open for as long as it is tried.
"""

from __future__ import annotations

import errno
import json
import socket
import subprocess
import sys
import time

VERSIONS = """
import json
from importlib import metadata
found = {}
for name in ("torch", "tensorflow", "jax", "nvidia-nccl-cu11", "nvidia-nccl-cu12", "nvidia-nccl-cu13", "deepspeed", "numpy"):
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


def main(argv: list[str]) -> int:
    """Do one of the three and print its line."""
    if argv[:1] == ["facts"]:
        print(json.dumps(facts(argv[1] if len(argv) > 1 else None)), flush=True)
    elif argv[:1] == ["listen"] and len(argv) == 4:
        print(listen(argv[1], int(argv[2]), float(argv[3])), flush=True)
    elif argv[:1] == ["connect"] and len(argv) == 4:
        print(connect(argv[1], int(argv[2]), float(argv[3])), flush=True)
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


def facts(python: str | None) -> dict[str, object]:
    """Return what has to agree between machines; what cannot be known is left out."""
    found: dict[str, object] = {"clock": time.time(), "python": sys.version.split()[0]}
    found["interfaces"] = said(("ip", "-j", "addr"))
    found["driver"] = version("/proc/driver/nvidia/version")
    if python:
        found["versions"] = said((python, "-I", "-c", VERSIONS))
    return found


def said(argv: tuple[str, ...]) -> object:
    """Return the JSON that a program prints, None when it does not."""
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20, check=False)
        return json.loads(done.stdout.decode() or "null")
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def version(path: str) -> str | None:
    """Return the driver's version from the kernel's file."""
    try:
        with open(path, encoding="utf-8") as file:
            words = file.readline().split()
    except OSError:
        return None
    return next((word for word in words if word[:3].isdigit() and "." in word), None)


def listen(address: str, port: int, limit: float) -> str:
    """Wait for one connection."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as door:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            door.bind((address, port))
            door.listen(1)
            door.settimeout(limit)
            door.accept()[0].close()
    except socket.timeout:  # noqa: UP041 - before Python 3.10 it is no TimeoutError
        return "nobody"
    except OSError as error:
        return f"error {error.errno} {errno.errorcode.get(error.errno or 0, '?')}"
    return "heard"


def connect(address: str, port: int, limit: float) -> str:
    """Try until somebody listens there, or until the time is over; the last error is what is said."""
    end = time.monotonic() + limit
    last = "error 110 ETIMEDOUT"
    while time.monotonic() < end:
        try:
            with socket.create_connection((address, port), timeout=max(0.1, end - time.monotonic())):
                return "reached"
        except socket.timeout:  # noqa: UP041 - before Python 3.10 it is no TimeoutError
            return "error 110 ETIMEDOUT"
        except OSError as error:
            last = f"error {error.errno} {errno.errorcode.get(error.errno or 0, '?')}"
            # Refused may only mean that the other side is not listening yet; a reject rule says no route.
            if error.errno != errno.ECONNREFUSED:
                return last
        time.sleep(0.1)
    return last


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
