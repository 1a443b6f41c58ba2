"""NVIDIA's repository for Debian 13, and its key twice: bound by SHA-1, as a machine has it from long ago, and as it is now."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from tests.lab import catalogue
from tests.lab.debs import Deb
from tests.lab.repository import SigningKey, certificates, write

URL = "https://developer.download.nvidia.com/compute/cuda/repos/debian13/x86_64/"


class Rebound(SigningKey):
    """A key that is bound to its name twice."""

    def by_sha1(self) -> bytes:
        """Bind the key anew by SHA-1 and return it with that binding alone."""
        listed = self._gpg("--with-colons", "--list-keys").decode()
        fingerprint = next(line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr:"))
        self._gpg("--cert-digest-algo", "SHA1", "--quick-set-expire", fingerprint, "20y")
        return self._gpg("--export-options", "export-minimal", "--export")


def build(folder: Path) -> None:
    """Write what is served into `folder`, which must not exist; `old.gpg` beside it is the key by SHA-1."""
    making = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(making, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="lab-key-", dir="/tmp") as home:
        key = Rebound(Path(home) / "g")
        try:
            debs = [catalogue.keyring(key.public()), Deb("cuda-toolkit", "13.0.1-1", "amd64", 60)]
            write(making / URL.removeprefix("https://"), debs, key, origin="NVIDIA", label="NVIDIA CUDA")
            (making / "old.gpg").write_bytes(key.by_sha1())
        finally:
            key.stop()
    certificates(making / "tls")
    making.rename(folder)
