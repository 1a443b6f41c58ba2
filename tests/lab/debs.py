"""Debian packages written by hand: an ar archive of two tarballs, with no tool but the standard library."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class File:
    """One file of a package; `size` makes it that many zero bytes."""

    content: bytes = b""
    mode: int = 0o644
    size: int | None = None


@dataclass(frozen=True)
class Deb:
    """One package; `installed` is the size in KiB that it announces, whatever it holds."""

    name: str
    version: str
    architecture: str = "all"
    installed: int = 60
    relations: Mapping[str, str] = field(default_factory=dict)
    """Control fields such as Depends and Conflicts."""
    files: Mapping[str, File] = field(default_factory=dict)
    scripts: Mapping[str, str] = field(default_factory=dict)

    @property
    def file_name(self) -> str:
        """Its name in a repository, without the epoch."""
        return f"{self.name}_{self.version.partition(':')[2] or self.version}_{self.architecture}.deb"

    def control(self) -> dict[str, str]:
        """Return its control fields in their order."""
        return {
            "Package": self.name,
            "Version": self.version,
            "Architecture": self.architecture,
            "Maintainer": "lab <root@localhost>",
            "Installed-Size": str(self.installed),
            "Section": "misc",
            "Priority": "optional",
            **self.relations,
            "Description": f"{self.name} (lab stand-in, no real content)",
        }


def stanza(fields: Mapping[str, str]) -> str:
    """Return the fields as a paragraph of a control file."""
    return "".join(f"{key}: {value}\n" for key, value in fields.items())


def _tarball(entries: Mapping[str, File]) -> bytes:
    """Return an uncompressed tarball with every parent folder in front of its files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        seen: set[str] = set()
        for path, file in sorted(entries.items()):
            for parent in [str(parent) for parent in reversed(Path(path.lstrip("/")).parents)]:
                if parent not in seen:
                    seen.add(parent)
                    folder = tarfile.TarInfo("./" if parent == "." else f"./{parent}/")
                    folder.type, folder.mode = tarfile.DIRTYPE, 0o755
                    archive.addfile(folder)
            info = tarfile.TarInfo(f"./{path.lstrip('/')}")
            info.mode = file.mode
            content = file.content if file.size is None else bytes(file.size)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def _member(name: str, data: bytes) -> bytes:
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode()
    return head + data + b"\n" * (len(data) % 2)


def pack(deb: Deb) -> bytes:
    """Return the bytes of the package."""
    control = {"control": File(stanza(deb.control()).encode())}
    for name, script in deb.scripts.items():
        control[name] = File(script.encode(), 0o644 if name == "templates" else 0o755)
    settings = [path for path in deb.files if path.startswith("/etc/")]
    if settings:
        control["conffiles"] = File("".join(f"{path}\n" for path in settings).encode())
    members = (("debian-binary", b"2.0\n"), ("control.tar", _tarball(control)), ("data.tar", _tarball(deb.files)))
    return b"!<arch>\n" + b"".join(_member(name, data) for name, data in members)
