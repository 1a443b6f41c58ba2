"""The machine that fault runs start from: a lab root with an old driver, a rival, marks, holds and a person's own settings."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.lab import catalogue
from tests.lab.lab import HERE, Lab

CLOCK = "/usr/lib/lab-clock.so"
_SOURCE = f"Types: deb\nURIs: {catalogue.NVIDIA_URL}\nSuites: /\nSigned-By: /etc/apt/keyrings/lab.gpg\n"
_APT = 'Acquire::Retries::Delay "false";\n'
_STOCK = """
apt-get -qq -o APT::Update::Error-Mode=any update
DEBIAN_FRONTEND=noninteractive apt-get -qq -y install lab-driver=1.0 lab-rival openssh-server </dev/null >/dev/null 2>&1
apt-mark auto lab-rival >/dev/null
apt-mark hold openssh-server >/dev/null
echo 'kept = by a person' >/etc/lab-driver-kept.conf
apt-get clean
"""


def prepare(lab: Lab) -> Path:
    """Return the root, made once beside the lab's own; call it before machines are started side by side."""
    root = lab.root.with_name("shaken")
    if root.exists():
        return root
    making = root.with_name(f"shaken.{os.getpid()}")
    subprocess.run(("cp", "-a", "--reflink=auto", "--", str(lab.root), str(making)), check=True)
    keys = making / "etc/apt/keyrings"
    keys.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(lab.repositories / "debian.gpg", keys / "lab.gpg")
    (making / "etc/apt/sources.list.d/lab.sources").write_text(_SOURCE)
    (making / "etc/apt/apt.conf.d/91lab").write_text(_APT)
    (making / "etc/lab-settings.conf").write_text("setting = old\n")
    (making / "etc/lab-settings.conf").chmod(0o600)
    _clock(making)
    enter = ("bash", str(HERE / "enter.sh"), "--write", "--serve", str(lab.repositories), str(making), "--", "sh", "-ec", _STOCK)
    subprocess.run(enter, check=True, stdin=subprocess.DEVNULL)
    making.rename(root)
    return root


def _clock(root: Path) -> None:
    """Build the clock that can be off, where there is a compiler: the runs that need one are left out otherwise."""
    if shutil.which("gcc") is not None:
        source = HERE.parent / "mock" / "clock.c"
        subprocess.run(("gcc", "-O1", "-shared", "-fPIC", "-o", f"{root}{CLOCK}", str(source)), check=True)
