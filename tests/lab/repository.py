"""Signed package repositories for the lab, and the certificate they are served with."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from pathlib import Path

from tests.lab import catalogue, shaken
from tests.lab.debs import Deb, pack, stanza

HOSTS = ("developer.download.nvidia.com", "deb.debian.org")


class SigningKey:
    """A throw-away OpenPGP key in a folder of its own."""

    def __init__(self, home: Path) -> None:
        self._environment = {**os.environ, "GNUPGHOME": str(home)}
        home.mkdir(parents=True, mode=0o700)
        self._gpg("--quick-gen-key", "lab throw-away <lab@localhost>", "rsa2048", "sign", "never")

    def _gpg(self, *arguments: str) -> bytes:
        argv = ("gpg", "--batch", "--quiet", "--yes", "--pinentry-mode", "loopback", "--passphrase", "", *arguments)
        return subprocess.run(argv, env=self._environment, check=True, capture_output=True).stdout

    def public(self) -> bytes:
        """Return the public key, unarmoured, as apt wants it in a .gpg file."""
        return self._gpg("--export")

    def sign(self, release: Path) -> None:
        """Write InRelease and Release.gpg beside `release`."""
        self._gpg("--clearsign", "-o", str(release.with_name("InRelease")), str(release))
        self._gpg("--armor", "--detach-sign", "-o", str(release.with_name("Release.gpg")), str(release))

    def clear_sign(self, source: Path, target: Path, digest: str) -> None:
        """Write `source` with a signature by `digest` around it."""
        self._gpg("--digest-algo", digest, "--clearsign", "-o", str(target), str(source))

    def stop(self) -> None:
        """End the agent that gpg left behind."""
        subprocess.run(("gpgconf", "--kill", "gpg-agent"), env=self._environment, capture_output=True, check=False)


def write(folder: Path, debs: Sequence[Deb], key: SigningKey, *, origin: str, label: str) -> None:
    """Write a flat repository of `debs` into `folder`."""
    folder.mkdir(parents=True)
    paragraphs: list[str] = []
    with ThreadPoolExecutor() as pool:
        for deb, data in zip(debs, pool.map(pack, debs), strict=True):
            (folder / deb.file_name).write_bytes(data)
            where = {"Filename": f"./{deb.file_name}", "Size": str(len(data)), "SHA256": hashlib.sha256(data).hexdigest()}
            fields = deb.control()
            description = fields.pop("Description")
            paragraphs.append(stanza({**fields, **where, "Description": description}))
    index = "\n".join(paragraphs).encode()
    indexes = {"Packages": index, "Packages.gz": gzip.compress(index, 1, mtime=0)}
    sums = ""
    for name, data in indexes.items():
        (folder / name).write_bytes(data)
        sums += f" {hashlib.sha256(data).hexdigest()} {len(data)} {name}\n"
    head = {"Origin": origin, "Label": label, "Architectures": "amd64 all", "Date": formatdate(usegmt=True).replace("GMT", "UTC")}
    release = folder / "Release"
    release.write_text(stanza(head) + "SHA256:\n" + sums, encoding="utf-8")
    key.sign(release)


def certificates(folder: Path) -> None:
    """Write a certificate authority and a server certificate for `HOSTS`."""
    folder.mkdir(parents=True)

    def openssl(*arguments: str) -> None:
        subprocess.run(("openssl", *arguments), cwd=folder, check=True, capture_output=True)

    days = ("-days", "3650", "-nodes", "-newkey", "rsa:2048")
    openssl("req", "-x509", *days, "-subj", "/CN=bringup lab CA", "-keyout", "ca.key", "-out", "ca.crt")
    openssl("req", *days[2:], "-subj", "/CN=lab", "-keyout", "server.key", "-out", "server.csr")
    names = ",".join(f"DNS:{host}" for host in HOSTS)
    (folder / "names").write_text(f"subjectAltName={names}\n", encoding="utf-8")
    signing = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "3650", "-extfile", "names")
    openssl("x509", "-req", "-in", "server.csr", *signing, "-out", "server.crt")
    # One that nobody vouches for.
    openssl("req", "-x509", *days, "-subj", "/CN=wrong", "-keyout", "wrong.key", "-out", "wrong.crt")


def _variants(folder: Path, release: Path, key: SigningKey, other: SigningKey) -> None:
    """Write the releases that apt has to refuse: past their date, of a stranger's, and by a digest that is weak."""
    folder.mkdir()
    said = release.read_text(encoding="utf-8")
    for name, signer, text, digest in (
        ("expired", key, f"Valid-Until: {formatdate(0, usegmt=True)}\n{said}", "SHA256"),
        ("foreign", other, said, "SHA256"),
        ("weak", key, said, "SHA1"),
    ):
        source = folder / f"{name}.text"
        source.write_text(text, encoding="utf-8")
        signer.clear_sign(source, folder / name, digest)


def build(folder: Path) -> None:
    """Write everything that the lab serves into `folder`, which must not exist."""
    making = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(making, ignore_errors=True)
    # gpg-agent's socket path has a short limit, so its home is not below the cache.
    with tempfile.TemporaryDirectory(prefix="lab-key-", dir="/tmp") as home:
        key, other = SigningKey(Path(home) / "g"), SigningKey(Path(home) / "o")
        try:
            keyring = catalogue.keyring(key.public())
            nvidia = making / "developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64"
            debs = [*catalogue.nvidia(), keyring, *catalogue.misbehaving(), *shaken.packages()]
            write(nvidia, debs, key, origin="NVIDIA", label="NVIDIA CUDA")
            _variants(making / "variants", nvidia / "Release", key, other)
            (nvidia / "3bf863cc.pub").write_bytes(key.public())
            write(making / "deb.debian.org/debian/lab", catalogue.debian(), key, origin="Debian", label="Debian")
            (making / "debian.gpg").write_bytes(key.public())
        finally:
            key.stop()
            other.stop()
    certificates(making / "tls")
    making.rename(folder)


if __name__ == "__main__":
    build(Path(sys.argv[1]).absolute())
