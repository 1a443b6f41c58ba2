"""A system that is broken on purpose: by real apt, dpkg and DKMS's files, as people break it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.lab.catalogue import NVIDIA_URL
from tests.lab.debs import Deb, pack, stanza
from tests.lab.lab import LabMachine

TORCH = "python -c 'import torch; print(torch.version.cuda, torch.cuda.is_available())'"
"""What a person runs to see whether PyTorch finds its cards."""


@dataclass(frozen=True)
class Broken:
    """One broken system: files that lie there, a script that breaks it, and a command that a person would paste the output of."""

    id: str
    cause: str
    script: str = "true"
    files: Mapping[str, bytes] = field(default_factory=dict)
    debs: tuple[Deb, ...] = ()
    """Packages that lie in apt's cache."""
    log: str | None = None
    proves: str = "true"
    """A script that ends well only once it is repaired."""
    long: bool = True
    hardware: str = "rtx4090x4-epyc"
    """The capture whose cards the system has."""
    stays: bool = False
    """Whether it was half done: no undo makes it so again, and says that."""
    unproven: str | None = None
    """What a person has to run to see it again: the repair is made, and its end says that it is not proven yet, and names this."""

    def make(self, machine: LabMachine) -> str | None:
        """Break the system, and return the log that a person would paste."""
        for path, data in self.files.items():
            place = machine.path(path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            place.chmod(0o755 if data.startswith(b"#!") else 0o644)
        for deb in self.debs:
            place = machine.path(f"/var/cache/apt/archives/{deb.file_name}")
            place.write_bytes(pack(deb))
        machine.run("sh", "-c", self.script)
        if self.log is None:
            return None
        told = machine.run("sh", "-c", f"export LC_ALL=C; {self.log}")
        return told.stdout + told.stderr


def trusting(url: str = NVIDIA_URL) -> dict[str, bytes]:
    """Return the source of NVIDIA's repository, taken at its word."""
    return {"/etc/apt/sources.list.d/nvidia.list": f"deb [trusted=yes] {url} /\n".encode()}


def archive(name: str, label: str, *debs: Deb) -> dict[str, bytes]:
    """Return an archive that lies on the machine's own disk, and the source that names it."""
    folder, paragraphs, files = f"/srv/{name}", [], dict[str, bytes]()
    for deb in debs:
        data = files[f"{folder}/{deb.file_name}"] = pack(deb)
        where = {"Filename": f"./{deb.file_name}", "Size": str(len(data)), "SHA256": hashlib.sha256(data).hexdigest()}
        paragraphs.append(stanza({**deb.control(), **where}))
    index = files[f"{folder}/Packages"] = "\n".join(paragraphs).encode()
    sums = f"SHA256:\n {hashlib.sha256(index).hexdigest()} {len(index)} Packages\n"
    files[f"{folder}/Release"] = (stanza({"Origin": label, "Label": label}) + sums).encode()
    return {**files, f"/etc/apt/sources.list.d/{name}.list": f"deb [trusted=yes] file:{folder} ./\n".encode()}
