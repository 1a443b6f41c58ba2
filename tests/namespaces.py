"""Two machines out of network namespaces: a cable between them, and beside it a bridge that looks like Docker's."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

as_root = pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and iproute2")


def ip(*argv: str) -> None:
    """Run `ip`."""
    subprocess.run(("ip", *argv), check=True, capture_output=True)


@contextmanager
def cabled() -> Iterator[tuple[str, str]]:
    """Yield the names of two namespaces, each with a card `eno1` in 10.77.0.0/24; skips where none can be made."""
    one, two = names = (f"bringup-n1-{os.getpid()}", f"bringup-n2-{os.getpid()}")
    try:
        try:
            _made(one, two)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespaces here: {error.stderr.decode().strip()}")
        yield names
    finally:
        for name in names:
            subprocess.run(("ip", "netns", "del", name), check=False, capture_output=True)


def _made(one: str, two: str) -> None:
    for name in (one, two):
        ip("netns", "add", name)
    ip("link", "add", "eno1", "netns", one, "type", "veth", "peer", "name", "eno1", "netns", two)
    for at, name in enumerate((one, two), 1):
        for argv in (
            ("link", "set", "lo", "up"),
            ("link", "add", "docker0", "type", "bridge"),
            ("link", "set", "docker0", "up"),
            ("addr", "add", "172.17.0.1/16", "dev", "docker0"),
            ("link", "set", "eno1", "up"),
            ("addr", "add", f"10.77.0.{at}/24", "dev", "eno1"),
        ):
            ip("-n", name, *argv)
