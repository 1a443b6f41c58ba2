"""The packages of the fault runs: one that is upgraded, one that has to go for it, new ones, each with scripts that leave a mark."""

from __future__ import annotations

from tests.lab.catalogue import configure
from tests.lab.debs import Deb, File

DATA_BYTES = 6 << 20

_SPEAK = """
# What the test wants said, byte by byte.
[ ! -r /etc/lab/noise ] || cat /etc/lab/noise
echo "lab-driver: building"; sleep "$(cat /etc/lab/pace 2>/dev/null || echo 0.1)"
mkdir -p /var/lib/lab; echo "module @VERSION@" >/var/lib/lab/module
echo "lab-driver: built"
"""
_FORGET = r"""#!/bin/sh
set -e
[ "$1" = purge ] || [ "$1" = remove ] || exit 0
rm -f /var/lib/lab/module
rmdir /var/lib/lab 2>/dev/null || true
"""


def _driver(version: str) -> Deb:
    scripts = {"postinst": configure(_SPEAK.replace("@VERSION@", version)), "postrm": _FORGET}
    relations = {"Depends": "lab-data, lab-tools", "Conflicts": "lab-rival"} if version != "1.0" else {}
    files = {
        "/usr/lib/lab/driver.so": File(f"driver {version}\n".encode() * 1000),
        "/etc/lab-driver.conf": File(f"level = {version}\n".encode()),
        "/etc/lab-driver-kept.conf": File(f"kept = {version}\n".encode()),
    }
    return Deb("lab-driver", version, "amd64", 60, relations, files, scripts)


def packages() -> list[Deb]:
    """Return them all; `lab-driver` in two versions."""
    pause = 'sleep "$(cat /etc/lab/pace 2>/dev/null || echo 0.1)"'
    return [
        _driver("1.0"),
        _driver("2.0"),
        Deb("lab-rival", "1.0", "all", 10, {}, {"/usr/lib/lab/rival": File(b"rival\n"), "/etc/lab-rival.conf": File(b"rival = yes\n")}),
        Deb("lab-data", "1.0", "all", DATA_BYTES >> 10, {}, {"/usr/share/lab/data": File(size=DATA_BYTES)}),
        Deb("lab-tools", "1.0", "all", 10, {}, {"/usr/bin/lab-tool": File(b"#!/bin/sh\n", 0o755)}, {"postinst": configure(pause)}),
        Deb(
            "lab-extra",
            "1.0",
            "all",
            10,
            {"Depends": "lab-tools"},
            {"/etc/lab-extra.conf": File(b"extra\n")},
            {"postinst": configure(pause)},
        ),
    ]
