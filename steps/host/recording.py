"""A host that writes down what it was asked and what it answered, as a capture."""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Mapping
from typing import Any

import msgspec

from steps.host.base import Host, Result
from steps.host.captured import absence
from steps.host.files import decoded, parts_of
from steps.host.pci_space import without_serial
from steps.host.redact import Redaction

_KEPT_PACKAGES = re.compile(
    r"nvidia|cuda|cudnn|nccl|^libc6$|^glibc$|dkms|mokutil|docker|moby|datacenter-gpu|rocm|amdgpu|hip-|habana|^linux-(image|headers|modules)|^gcc|nouveau|"
    r"^python3(-minimal)?$|^libvirt-daemon|^proxmox-ve$"
)
_CONFIGURATION = re.compile(r"^/sys/.*/[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]/config$")
_OF_NETWORKS = ("ip", "ufw", "firewall-cmd", "nft", "iptables")
_MAY_NAME_HOSTS = ("/etc/", "/proc/cmdline", "/var/log/")
_LOGS = ("/var/log/", "/var/lib/dkms/")
_MOST_OF_LOG = 4 << 20
"""Of a log, the last bytes that are kept; the doctor reads no more of one either, and a capture of many logs can still be read back."""
_KEPT_MOUNTS = (["/"], ["/dev/shm"])  # noqa: S108 - a name in a list, no place to write to
_MOUNTS = re.compile(r"/proc/(?:self|\d+)/mounts|/proc/mounts")
_CERTIFICATE = re.compile(r"^(?:.*(?:Subject|Issuer|Not Before|Not After ?):.*|\[key .*|Mok.*)\n?", re.MULTILINE)
_MAIL = re.compile(r"(\bemailAddress ?= ?)[^\s,/]+")
_KEPT_FIELDS = ("Package: ", "Status: ", "Architecture: ", "Version: ")
_STAMP = re.compile(r"^(?:<\d+>)?\[[^\]\n]*\d\.\d+\]")
_OF_THE_KERNEL = re.compile(
    r"\bLinux version |Command line: |NVRM|nvidia|nouveau|\bnova|\bnv(link|switch|lddr)|\bXid\b|\bSXid\b|gdrdrv|peermem"
    r"|dxgk|amdgpu|\bkfd\b|radeon|habana"
    r"|\bhl\d|vfio|\[drm|\bdrm\b|fbcon|\bpci(e|eport)?\b|\bAER\b|\bBAR ?\d|DMAR|AMD-Vi|iommu|secure ?boot|lockdown|X\.509|MOK\b|PKCS"
    r"|module verification|signature|Unknown symbol|disagrees about version|taint|firmware:|Direct firmware load|Out of memory|oom-kill"
    r"|Killed process|blocked for more than|soft lockup|hard LOCKUP|thermal|throttl|machine check|\bmce\b|EDAC|No space left",
    re.IGNORECASE,
)
"""What of the kernel's log is about cards, their modules and what may stop them; the rest names disks, networks and people."""


class RecordingHost:
    """Passes every question on to another host; `capture` gives the file. See `Host` for the questions."""

    def __init__(self, inner: Host) -> None:
        self.inner = inner
        self.name = inner.name
        self.root = inner.root
        self.rehearsal = inner.rehearsal
        self.recorded = inner.recorded
        self.command = inner.command
        self.free_bytes = inner.free_bytes
        self._files: dict[str, bytes] = {}
        self._links: dict[str, str] = {}
        self._dirs: set[str] = set()
        self._met: set[str] = set()
        self._plain: set[str] = set()
        self._commands: dict[tuple[str, ...], Result] = {}

    def read_bytes(self, path: str) -> bytes | None:
        """Pass on and keep the bytes."""
        data = self.inner.read_bytes(path)
        if data is not None:
            self._files[self._traced(path)] = data
        return data

    def read(self, path: str) -> str | None:
        """Pass on and keep the bytes."""
        data = self.read_bytes(path)
        return None if data is None else data.decode("utf-8", errors="replace")

    def exists(self, path: str) -> bool | None:
        """Pass on and keep that it is there; what is not there outside /sys is kept as the command that says so."""
        found = self.inner.exists(path)
        if found:
            self._meet(path)
        elif found is False and not path.startswith("/sys/"):
            self._commands.setdefault(absence(path), Result(status=1))
        return found

    def listdir(self, path: str) -> tuple[str, ...] | None:
        """Pass on and keep the folder with all it names."""
        names = self.inner.listdir(path)
        if names is not None:
            self._dirs.add(self._traced(path))
            for name in names:
                self._meet(f"{path}/{name}")
        return names

    def readlink(self, path: str) -> str | None:
        """Pass on and keep the link."""
        target = self.inner.readlink(path)
        if target is not None:
            self._traced(path)
        return target

    def glob(self, pattern: str) -> tuple[str, ...]:
        """Pass on and keep what matched."""
        found = self.inner.glob(pattern)
        for path in found:
            self._meet(path)
        return found

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        """Pass on and keep the answer."""
        result = self.inner.run(argv, timeout=timeout)
        self._commands[argv] = result
        return result

    def _meet(self, path: str) -> None:
        """Keep that a path is there: as a link, as a folder, or as a file of which only that is known."""
        real = self._traced(path)
        if real in self._met:
            return
        self._met.add(real)
        if self.inner.exists(real) and self.inner.listdir(real) is not None:
            self._dirs.add(real)

    def _traced(self, path: str) -> str:
        """Return where a path really is, and keep every link on the way: a capture knows files by their real places only."""
        done: list[str] = []
        todo = parts_of(path)[::-1]
        for _ in range(400):
            if not todo:
                break
            part = todo.pop()
            if part == "..":
                del done[-1:]
                continue
            here = "/" + "/".join([*done, part])
            target = None if here in self._plain else self.inner.readlink(here)
            if target is None:
                self._plain.add(here)
                done.append(part)
                continue
            self._links[here] = target
            if target.startswith("/"):
                done.clear()
            todo.extend(parts_of(target)[::-1])
        return "/" + "/".join(done)

    def capture(self, about: Mapping[str, Any]) -> bytes:
        """Return what was recorded as a capture, redacted."""
        # A probe that hung may answer even now, from a thread that nobody waits for any more.
        commands = tuple(self._commands.items())
        said = {argv: msgspec.structs.replace(result, stdout=_shortened(argv, result.stdout)) for argv, result in commands}
        addressed = [result.text for argv, result in said.items() if argv[0] in _OF_NETWORKS]
        read = {path: _end_of_log(data) if path.startswith(_LOGS) else data for path, data in sorted(self._files.items())}
        addressed += [decoded(data) for path, data in read.items() if path.startswith(_MAY_NAME_HOSTS)]
        told = [result.text for result in said.values()]
        told += [decoded(data) for path, data in read.items() if path.startswith(_LOGS)]
        redaction = Redaction(self.inner, told, addressed)
        files: dict[str, Any] = {path: _content(path, data, redaction) for path, data in read.items()}
        # Of a file that was met and never read, only that it is there is known.
        plain = self._met - files.keys() - self._dirs
        files.update({path: "" for path in sorted(plain) if self.inner.readlink(path) is None})
        document = {
            "schema": "bringup/capture",
            "version": 1,
            "about": {"name": "capture", **about},
            "files": {redaction.path(path): content for path, content in files.items()},
            "links": {redaction.path(path): redaction.path(target) for path, target in sorted(self._links.items())},
            "dirs": sorted(redaction.path(path) for path in self._dirs),
            "commands": {
                redaction.path(shlex.join(argv)): {
                    "stdout": redaction.text(result.stdout),
                    "stderr": redaction.text(result.stderr),
                    "status": result.status,
                }
                for argv, result in sorted(said.items())
            },
            "logs": {},
        }
        return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def _end_of_log(data: bytes) -> bytes:
    """Return the last lines of a log that is long, and all of any other."""
    return data if len(data) <= _MOST_OF_LOG else data[-_MOST_OF_LOG:].partition(b"\n")[2]


def _content(path: str, data: bytes, redaction: Redaction) -> str | dict[str, str]:
    """Return a file's text, redacted; what is no text goes in as base64."""
    if _CONFIGURATION.search(path):
        # Bytes may read as text by chance; what they are must not depend on that.
        return {"base64": base64.b64encode(without_serial(data)).decode("ascii")}
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        if not path.startswith("/sys/"):
            # Somebody's words in another encoding: all but the foreign letters is as readable in base64 as it was.
            data = redaction.text(data.decode("utf-8", errors="surrogateescape")).encode("utf-8", errors="surrogateescape")
        return {"base64": base64.b64encode(data).decode("ascii")}
    if _MOUNTS.fullmatch(path):
        # The others name servers, shares and people's media.
        text = "".join(line for line in text.splitlines(keepends=True) if line.split(" ")[1:2] in _KEPT_MOUNTS)
    return redaction.text(_trimmed(text) if path.endswith("/dpkg/status") else text)


def _shortened(argv: tuple[str, ...], text: str) -> str:
    """Return what a program printed; of certificates only whose they are, of the kernel's log what is about cards."""
    if argv[0] == "dmesg" or argv[:2] == ("journalctl", "-k"):
        return _of_cards(text)
    if argv[0] == "mokutil" and argv[1:] in (("--list-enrolled",), ("--list-new",)):
        return _MAIL.sub(r"\1REDACTED", "".join(_CERTIFICATE.findall(text)))
    return text


def _of_cards(log: str) -> str:
    """Return the lines of the kernel's log that are about cards and their modules, each with those behind it that bear no stamp."""
    kept: list[str] = []
    stamped = take = False
    for line in log.splitlines(keepends=True):
        own = _STAMP.match(line) is not None
        if own or not stamped:
            take = _OF_THE_KERNEL.search(line) is not None
        stamped |= own
        if take:
            kept.append(line)
    return "".join(kept)


def _trimmed(status: str) -> str:
    """Return dpkg's database with the packages and fields that say something here; the rest is megabytes about a person's machine."""
    kept: list[str] = []
    for stanza in status.split("\n\n"):
        name = stanza.removeprefix("Package: ").partition("\n")[0]
        if _KEPT_PACKAGES.search(name):
            kept.append("\n".join(line for line in stanza.splitlines() if line.startswith(_KEPT_FIELDS)))
    return "\n\n".join(kept) + "\n"
