"""Package sources as planned actions: NVIDIA's repository, a branch pin, and Debian's non-free components."""

from __future__ import annotations

from steps.model.action import AnyAction, AptReads, FileIs, Packages, RemovePath, Run, Succeeds, Write
from steps.model.base import Words, phrase

KEYRING_PACKAGE = "cuda-keyring_1.1-1_all.deb"
KEYRING = "/etc/apt/keyrings/cuda-archive-keyring.gpg"
_FETCHED = f"/var/cache/apt/archives/{KEYRING_PACKAGE}"
_UNPACKED = "/var/cache/bringup-keyring"
BRANCH = "repository.branch"
"""The id of the action that says which branch apt takes."""
_HELPER = "/usr/lib/apt/apt-helper"

_PIN = """\
# NVIDIA's own packages come before the distribution's of the same name.
Package: *
Pin: release l=NVIDIA CUDA
Pin-Priority: 600
"""

DRIVER_PACKAGES = (
    "*nvidia*",
    "cuda-drivers*",
    "cuda-compat*",
    "libcuda1*",
    "libnvcuvid1*",
    "libnvoptix1*",
    "libxnvctrl*",
    "nvidia-open*",
)
"""What a pin of a branch speaks of."""


_STAYS, _BACK = 900, 1001
"""Priorities of a pin that keeps a version, and of one that brings it back over a newer one."""

_UNATTENDED = ("nvidia-", "libnvidia-", "cuda-drivers", "libcuda1", "libnvcuvid1", "libnvoptix1", "xserver-xorg-video-nvidia", "libxnvctrl")
"""Beginnings of names, as unattended-upgrades reads them."""


def _named(url: str) -> str:
    """Return "debian12-x86_64" for the address of NVIDIA's repository for Debian 12."""
    return "-".join(part for part in url.rstrip("/").split("/")[-2:])


def configured(url: str) -> AptReads:
    """Return the probe that apt reads `url` already.

    A second one with another key would make every apt call fail ("Conflicting values set for option Signed-By").
    """
    return AptReads(urls=(url,))


def nvidia_repository(url: str) -> tuple[AnyAction, ...]:
    """Return what makes `url` (".../repos/debian12/x86_64/") a source of apt, its key confined to it; ids are `repository.*`.

    The key comes out of NVIDIA's keyring package without installing that: its source file would name another key file.
    """
    url = url.rstrip("/") + "/"
    stanza = f"Types: deb\nURIs: {url}\nSuites: /\nSigned-By: {KEYRING}\n"
    network = ("-o", "Acquire::Retries=3", "-o", "Acquire::https::Timeout=30")
    common = {"name": _named(url)}
    return (
        Run(
            id="repository.fetch",
            title=phrase("manager.action.keyring-fetch", **common),
            why=phrase("manager.why.keyring"),
            lane="packages",
            argv=(_HELPER, *network, "download-file", url + KEYRING_PACKAGE, _FETCHED),
            # Whole, and not the first half of a download that was cut off.
            done_when=(Succeeds(argv=("dpkg-deb", "--info", _FETCHED)),),
            undo=(RemovePath(path=_FETCHED),),
            download_bytes=5_000,
            seconds=3,
        ),
        Run(
            id="repository.unpack",
            title=phrase("manager.action.keyring-unpack"),
            why=phrase("manager.why.keyring-unpack"),
            lane="packages",
            argv=("dpkg-deb", "--extract", _FETCHED, _UNPACKED),
            undo=(RemovePath(path=_UNPACKED),),
            seconds=1,
        ),
        Write(
            id="repository.key",
            title=phrase("manager.action.key"),
            why=phrase("manager.why.signed-by"),
            lane="packages",
            path=KEYRING,
            copy_of=f"{_UNPACKED}/usr/share/keyrings/cuda-archive-keyring.*",
            binary_key=True,
            done_when=(FileIs(path=KEYRING),),
        ),
        Write(
            id="repository.source",
            title=phrase("manager.action.source", **common),
            why=phrase("manager.why.source"),
            lane="packages",
            path=f"/etc/apt/sources.list.d/cuda-{_named(url)}.sources",
            text=stanza,
            done_when=(configured(url),),
        ),
        Write(
            id="repository.pin",
            title=phrase("manager.action.pin"),
            why=phrase("manager.why.pin"),
            lane="packages",
            path="/etc/apt/preferences.d/cuda-repository-pin-600",
            text=_PIN,
            done_when=(FileIs(path="/etc/apt/preferences.d/cuda-repository-pin-600"),),
        ),
        refresh("repository.refresh"),
    )


def refresh(id: str, title: Words | None = None) -> Packages:
    """Return the action that fetches the package lists; it fails where `apt-get update` would only warn."""
    return Packages(
        id=id,
        title=title or phrase("manager.action.refresh"),
        why=phrase("manager.why.refresh"),
        lane="packages",
        manager="apt",
        refresh=True,
        seconds=15,
    )


def without_armour(key: bytes) -> bytes:
    """Return an OpenPGP key as bytes, taken out of its ASCII armour (RFC 9580, section 6.2) when it has one."""
    if not key.lstrip().startswith(b"-----BEGIN PGP PUBLIC KEY BLOCK-----"):
        return key
    # Only a key in armour needs it, and a runner loads this module in any case.
    import base64

    lines = [line.strip() for line in key.strip().splitlines()]
    # After the headings an empty line, then base64; a line that begins with "=" is the checksum.
    start = lines.index(b"") + 1 if b"" in lines else 1
    body = [line for line in lines[start:-1] if not line.startswith(b"=")]
    return base64.b64decode(b"".join(body), validate=True)


def branch_pin(branch: str, *, older: bool = False) -> Write:
    """Return the file that keeps the driver packages on one branch ("580"), whatever newer ones a repository has.

    `older`: the branch is behind what is installed. Below 1000 a pin takes nothing back (apt_preferences(5)), and the packages that
    the named one depends on would stay where they are.
    """
    text = f"Package: {' '.join(DRIVER_PACKAGES)}\nPin: version {branch}.*\nPin-Priority: {_BACK if older else _STAYS}\n"
    return Write(
        id=BRANCH,
        title=phrase("manager.action.branch", branch=branch),
        why=phrase("manager.why.branch", branch=branch),
        lane="packages",
        path="/etc/apt/preferences.d/bringup-nvidia-branch",
        text=text,
        done_when=(FileIs(path="/etc/apt/preferences.d/bringup-nvidia-branch", text=text),),
    )


def hold_still() -> Write:
    """Return the file that keeps nightly upgrades off the driver: they would part a running module from its libraries.

    Modules that the distribution built are not among them, since a new kernel could then find itself without one.
    """
    names = "".join(f'    "{pattern}";\n' for pattern in _UNATTENDED)
    path = "/etc/apt/apt.conf.d/52bringup-driver"
    text = f"// The driver is upgraded by a person, before a reboot.\nUnattended-Upgrade::Package-Blacklist {{\n{names}}};\n"
    return Write(
        id="driver.still",
        title=phrase("manager.action.still"),
        why=phrase("manager.why.still"),
        lane="packages",
        path=path,
        text=text,
        done_when=(FileIs(path=path, text=text),),
    )


def debian_components(
    codename: str, provides: str, *, url: str = "http://deb.debian.org/debian", key: str = "/usr/share/keyrings/debian-archive-keyring.gpg"
) -> tuple[AnyAction, ...]:
    """Return what adds Debian's contrib and non-free components; done where apt knows the package `provides` already.

    The key file is the one that Debian's own sources name, so that both may describe the same archive; apt also takes
    an archive first described without a key, but not in the other order, so the file's name sorts last.
    """
    components = "contrib non-free" + (" non-free-firmware" if codename not in ("buster", "bullseye") else "")
    known = Succeeds(argv=("apt-cache", "show", "--no-all-versions", provides))
    text = f"Types: deb\nURIs: {url}\nSuites: {codename} {codename}-updates\nComponents: {components}\nSigned-By: {key}\n"
    return (
        Write(
            id="repository.components",
            title=phrase("manager.action.components"),
            why=phrase("manager.why.components"),
            lane="packages",
            path="/etc/apt/sources.list.d/zz-bringup-debian-non-free.sources",
            text=text,
            done_when=(known,),
        ),
        refresh("repository.components-refresh"),
    )
