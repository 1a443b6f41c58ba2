"""No room for what has to be written, or a proxy in the way."""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

from steps.catalog import frameworks
from steps.doctor.events.dkms import BuildFailed
from steps.doctor.events.proxies import IndexAsked, NoRoots, ProxySet, TlsFailed, without_logins
from steps.doctor.events.runs import ImageFailed, NoSpace, PipRan
from steps.doctor.evidence import Evidence
from steps.doctor.facts.space import FileSystem, holding
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, Answer, found, out, rule
from steps.doctor.told import Fact, fact

_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - names in messages, no place to write to
_SHARED = "/dev/shm"  # noqa: S108 - the same
_SMALL_BOOT = 600 << 20
"""Bytes of a partition on which two kernels with their images hardly fit."""
_ROOM_FOR_IMAGES, _ROOM_FOR_STACKS = 300 << 20, 20 << 30
"""With so much room on the boot partition, or elsewhere, nothing that is installed here runs out of it."""
_BOOT = re.compile(r"^/(?:boot|efi)\b")


def _boot(seen: Evidence) -> FileSystem | None:
    """Return the file system of the boot files, the fullest of several, or `None`."""
    mine = [one for one in seen.space if _BOOT.match(one.on)]
    return min(mine, key=lambda one: (not one.full, one.size), default=None)


def _roomy(system: FileSystem | None, enough: int) -> bool:
    """Return whether a file system has so much room now that what was too full before no longer is."""
    return system is not None and system.free is not None and system.free >= enough


@rule("boot-partition-full")
def boot_full(seen: Evidence) -> Answer:
    """The image of the initramfs, or a file below /boot, could not be written for want of space."""
    image, boot = seen.first(ImageFailed), _boot(seen)
    full = next((event for event in seen.all(NoSpace) if event.writer == "initramfs" or (event.path and _BOOT.match(event.path))), None)
    loose = next((event for event in seen.all(NoSpace) if event.writer == "other"), None)
    if full is None and image is not None and loose is not None:
        full = loose
    if full is not None:
        if full.path and full.path.startswith(_TEMPORARY[0]):
            return out(full)
        place = boot or holding(seen.space, "/boot")
        if _roomy(place, _ROOM_FOR_IMAGES):
            return found(POSSIBLE, full, place, on="/boot", variant="was-full")
        return found(
            CERTAIN if image or boot or (full.path and _BOOT.match(full.path)) else STRONG,
            full,
            image,
            boot,
            on=boot.on if boot else "/boot",
        )
    if image is not None and boot is not None and (boot.full or (boot.free is not None and boot.free < 100 << 20)):
        return found(STRONG, image, boot, on=boot.on)
    # Where only its size was told: an image with the driver in it takes a good part of that.
    if image is not None and boot is not None and boot.free is None and boot.size <= _SMALL_BOOT and not seen.has(BuildFailed):
        return found(LIKELY, image, boot, on=boot.on)
    return None


@rule("disk-full-during-install")
def disk_full(seen: Evidence) -> Answer:
    """A package manager or an installer could not write below /usr, / or /tmp."""
    full = next((event for event in seen.all(NoSpace) if event.writer == "packages" and not (event.path and _BOOT.match(event.path))), None)
    if full is None:
        return None
    system = holding(seen.space, full.path) if full.path else next((one for one in seen.space if one.full), None)
    if _roomy(system, _ROOM_FOR_STACKS):
        return found(POSSIBLE, full, system, path=full.path or "/", variant="was-full")
    return found(CERTAIN if full.path or system else STRONG, full, system, path=full.path or (system.on if system else "/"))


@rule("pip-temp-dir-full")
def pip_full(seen: Evidence) -> Answer:
    """Python's installers (pip, uv, conda) had no room, while some file system has."""
    full = next((event for event in seen.all(NoSpace) if event.writer == "pip"), None)
    ran = seen.first(PipRan)
    if full is None and ran is not None:
        full = next((event for event in seen.all(NoSpace) if event.writer == "other"), None)
    pip = ran is not None or bool(seen.commands("pip", "pip3", "uv", "conda", "mamba")) or _by_installer(full)
    if full is None or _shared_memory(full) or not pip:
        return None
    room = max((one for one in seen.space if one.free and one.device != "tmpfs"), key=lambda one: one.free or 0, default=None)
    tight = min(
        (one for one in seen.space if one.free is not None and one.on in ("/", "/home", *_TEMPORARY)),
        key=lambda one: one.free or 0,
        default=None,
    )
    if _roomy(tight, _ROOM_FOR_STACKS):
        return found(POSSIBLE, full, ran, tight, on=tight.on if tight else "/", variant="was-full")
    if room is not None:
        return found(CERTAIN if ran or _by_installer(full) else STRONG, full, ran, tight, room, on=room.on)
    return found(STRONG - 0.05, full, ran, on="?", variant="unseen")


def _by_installer(full: NoSpace | None) -> bool:
    """Return whether the message itself is an installer's, not that of any program in Python."""
    text = f"{full.place.source} {full.place.text}" if full else ""
    return bool(re.search(r"\bpip\b|Could not install packages|os error 28|CondaError|site-packages|\.whl|/pip-|\buv\b|\.conda\b", text))


def _shared_memory(full: NoSpace) -> bool:
    return bool(full.path and full.path.startswith(_SHARED)) or _SHARED in full.place.text or "nccl" in full.place.text.lower()


_PROXY_PORTS = frozenset((3128, 3142, 8080, 8000, 8888, 8118, 8443, 1080, 9090, 800, 808, 3129))
_PROXY_FILES = (
    *("/etc/apt/apt.conf", "/etc/apt/apt.conf.d/*", "/etc/environment", "/etc/dnf/dnf.conf", "/etc/yum.conf", "/etc/pip.conf"),
    *("/etc/systemd/system/docker.service.d/*", "/etc/docker/daemon.json", "/etc/gitconfig"),
)


def _proxy(seen: Evidence) -> Fact | None:
    """Return the setting that sends requests through a proxy, or `None`; a password in it is left out."""
    told = seen.first(ProxySet)
    if told is not None:
        return fact(told.peer, told.place.source, told.place.text)
    texts = [
        (path, seen.host.read(path) or "")
        for pattern in _PROXY_FILES
        for path in (seen.host.glob(pattern) if "*" in pattern else (pattern,))
    ]
    texts.append(("env", seen.host.run(("env",)).stdout))
    for source, text in texts:
        line = re.search(
            r"^[^#\n]*(?:https?[_-]proxy|HTTPS?_PROXY|Acquire::https?::Proxy|^\s*proxy)\b[^\n]*?(?P<url>\w[\w.-]*:\d{2,5})[^\n]*$",
            without_logins(text),
            re.MULTILINE,
        )
        if line:
            return fact(line["url"], source, line[0].strip())
    return None


def _private(address: str) -> bool:
    try:
        told = ip_address(address)
    except ValueError:
        return False
    # Addresses for documentation stand for public ones in reports.
    return told.is_private and not address.startswith(("192.0.2.", "198.51.100.", "203.0.113.", "2001:db8"))


def _own(url: str | None) -> bool:
    """Return whether a server is one of the house, which no proxy stands before and which signs for itself."""
    host = re.match(r"https://(?:[^/@\s]*@)?(?P<name>\[[\da-fA-F:]+\]|[\w.-]+)", url or "")
    if host is None:
        return False
    name = host["name"].strip("[]")
    return _private(name) or "." not in name or name.rsplit(".", 1)[-1] in ("local", "lan", "internal", "intranet", "corp", "home", "svc")


_FETCHES = re.compile(
    r"^curl: \(|after connection broken by '.{1,400}': /(?:simple|whl|packages|pypi)/|"
    r"HTTPSConnectionPool\(host=\\?'(?:[\w-]+\.)*(?:anaconda\.(?:com|org)|pypi\.org|pythonhosted\.org|pytorch\.org)\\?'",
    re.DOTALL,
)
"""curl, and pip or conda at the servers of their packages."""


def _asks_its_own(seen: Evidence) -> bool:
    """Return whether pip asks servers of which not one is known to us: such a one may sign for itself."""
    asked = [event.host for event in seen.all(IndexAsked)]
    known = {urlsplit(index.url).hostname for index in frameworks.indexes()}
    return bool(asked) and not any(host in known for host in asked)


@rule("proxy-breaks-tls")
def proxy_breaks_tls(seen: Evidence) -> Answer:
    """The encrypted connection broke, and what was talked to is a proxy."""
    said = seen.all(TlsFailed)
    setting = _proxy(seen) if said else None
    # A server may reset a connection too, or be signed by its own house: that counts where a proxy is known to stand before it.
    known = setting is not None
    broken = [
        event for event in said if event.proxy or not (event.reset or event.trust) or (known and not (event.trust and _own(event.url)))
    ]
    if not broken:
        return None
    bare = seen.first(NoRoots)
    if bare is not None and not any(event.proxy for event in broken):
        return out(bare)
    certain = next(
        (event for event in broken if event.proxy or (event.port in _PROXY_PORTS) or (event.address and _private(event.address))), None
    )
    if certain is not None:
        peer = f"{certain.address}:{certain.port}" if certain.address else setting.value if setting else "?"
        both = certain.address and _private(certain.address) and certain.port != 443
        return found(CERTAIN if certain.proxy or setting or both else LIKELY, certain, setting, peer=peer)
    if setting is not None:
        return found(STRONG, broken[0], setting, peer=setting.value)
    fetched = next((event for event in broken if event.url or _FETCHES.search(event.place.text)), None)
    if fetched is None or _asks_its_own(seen):
        return None
    return found(POSSIBLE - 0.05, fetched, peer="?", variant="unseen")
