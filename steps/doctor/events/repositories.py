"""What package managers say of repositories: keys, signatures, sizes and entries."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place

_BEFORE = r"(?:(?P<url>(?:https?|file|ftp):\S+)(?!\S)[^\n]*?)?"
"""The address that may stand in front of a complaint; it ends where its word does."""


class KeyMissing(Event):
    """The key that a repository is signed with is not here; `weak` when a key is here and refused for its old signature."""

    key: str | None
    url: str | None = None
    weak: bool = False


@parses(
    r"(?:(?P<url>(?:https?|file|ftp):\S+)(?!\S)[^\n]*(?:\n[^\n]*)?)?NO_PUBKEY (?P<key>[0-9A-Fa-f]{8,40})",
    "NO_PUBKEY", "InRelease", " Release",
    lines=3,
)  # fmt: skip
def key_missing(found: re.Match[str], at: Place) -> KeyMissing:
    """Recognise what apt says with gpgv, in any language; the address stands before it or in the line above."""
    return KeyMissing(place=at, key=found["key"].upper(), url=found["url"])


@parses(
    rf"{_BEFORE}Missing key (?P<key>[0-9A-F]{{16,40}}), which is needed to verify signature",
    "which is needed to verify",
)
def key_missing_by_sqv(found: re.Match[str], at: Place) -> KeyMissing:
    """Recognise what apt says with Sequoia."""
    return KeyMissing(place=at, key=found["key"], url=found["url"])


@parses(rf"{_BEFORE}Signing key on (?P<key>[0-9A-F]{{16,40}}) is not bound", "is not bound:", "Signing key on")
def key_refused_by_sqv(found: re.Match[str], at: Place) -> KeyMissing:
    """Recognise a key whose own signature is too weak for Sequoia."""
    return KeyMissing(place=at, key=found["key"], url=found["url"], weak=True)


@parses(
    r"Public key for (?P<file>\S+) is not (?:installed|trusted)|"
    r"GPG keys listed for the \"(?P<repository>[^\"]+)\" repository are already installed but they are not correct|"
    r"(?P<signed>\S+\.rpm) \(\S+\): Header V\d RSA/SHA\d+ Signature, key ID (?P<key>[0-9a-f]{8,16}): NOKEY",
    "Public key for", "keys listed for the", "NOKEY",
    lines=2,
)  # fmt: skip
def key_missing_by_dnf(found: re.Match[str], at: Place) -> KeyMissing:
    """Recognise what dnf, yum and rpm say; the name of the package or the repository stands for the address."""
    return KeyMissing(place=at, key=(found["key"] or "").upper() or None, url=found["file"] or found["repository"] or found["signed"])


class OfferedFrom(Event):
    """dnf cannot have a package because of what a repository of NVIDIA's offers; its name tells a release."""

    repository: str


@parses(
    r"package \S+ from (?P<repository>cuda-(?:fedora|rhel|amzn|sles|opensuse)\d+-\w+) (?:conflicts with|obsoletes|requires) ",
    " from cuda-",
)
def offered_from(found: re.Match[str], at: Place) -> OfferedFrom:
    """Recognise a line of dnf's reasons."""
    return OfferedFrom(place=at, repository=found["repository"])


class BadSignature(Event):
    """A signature by a known key does not fit the data."""

    url: str | None
    key: str | None = None


@parses(
    rf"{_BEFORE}(?:BADSIG (?P<key>[0-9A-Fa-f]{{8,40}})|Splitting up \S+ into data and signature failed|"
    r"Clearsigned file isn't valid, got '\w*')",
    "BADSIG", "data and signature failed", "Clearsigned file",
    lines=2,
)  # fmt: skip
def bad_signature(found: re.Match[str], at: Place) -> BadSignature:
    """Recognise a signature that does not fit, and a signed file that is none."""
    return BadSignature(place=at, url=found["url"], key=found["key"])


class HashMismatch(Event):
    """A file has another hash than its index says; sizes in bytes where they are told."""

    url: str | None
    expected: int | None = None
    received: int | None = None


_HASHES = re.compile(
    r"(?:xpected file|erwartete|attendu).*?Filesize:(?P<expected>\d+).*?(?:eceived file).*?Filesize:(?P<received>\d+)", re.DOTALL
)


@parses(
    rf"{_BEFORE}(?:Hash Sum mismatch|Hash-Summe stimmt nicht|"
    r"Somme de contrôle de hachage incohérente|Hash 校验和不符|"
    r"La suma hash difiere)(?P<rest>(?:\n[^\n]+){0,14})",
    "Hash Sum mismatch", "Hash-Summe stimmt", "de hachage incohérente", "校验和不符", "suma hash difiere",
    lines=15,
)  # fmt: skip
def hash_mismatch(found: re.Match[str], at: Place) -> HashMismatch:
    """Recognise the message with the sizes below it."""
    sizes = _HASHES.search(found["rest"])
    line = Place(source=at.source, text=at.text.partition("\n")[0], order=at.order, seconds=at.seconds)
    if sizes is None:
        return HashMismatch(place=line, url=found["url"])
    return HashMismatch(place=line, url=found["url"], expected=int(sizes["expected"]), received=int(sizes["received"]))


class UnexpectedSize(Event):
    """A file has another size than its index says: the server's files are of two states."""

    got: int
    expected: int


@parses(
    r"nexpected size \((?P<got>\d+) != (?P<expected>\d+)\)|\((?P<got2>\d+) != (?P<expected2>\d+)\)",
    "nexpected size", "Mirror sync", "文件尺寸不符", "檔案大小不符", "unerwartete Größe", "taille inattendue", "tamaño inesperado",
    "tamanho inesperado", "неожиданный размер", "dimensione inattesa",
)  # fmt: skip
def unexpected_size(found: re.Match[str], at: Place) -> UnexpectedSize:
    """Recognise apt's message, in some languages, by its two numbers."""
    return UnexpectedSize(place=at, got=int(found["got"] or found["got2"]), expected=int(found["expected"] or found["expected2"]))


class MetadataStale(Event):
    """dnf downloaded metadata whose checksum is not that of the index."""


@parses(
    r"Downloading successful, but checksum doesn't match|repomd\.xml (?:does not match|GPG signature)|Yum repo downloading error.*checksum",
    "checksum doesn't match", "repomd.xml does not", "Yum repo downloading",
)  # fmt: skip
def metadata_stale(found: re.Match[str], at: Place) -> MetadataStale:
    """Recognise librepo's messages."""
    return MetadataStale(place=at)


class SignedByConflict(Event):
    """Two entries for one repository name different keys; empty for the one that names none."""

    url: str
    one: str
    other: str


_KEY = r"(?:/|[0-9A-Fa-f]{16})\S*[^\s:]"
"""What Signed-By names. It may be nothing, and what stands in the next line is no key then."""


@parses(
    rf"option Signed-By (?:regarding source|\S+ \S+) (?P<url>\S+)[^\n]*?: ?(?P<one>{_KEY}|) != ?(?P<other>{_KEY}|)", "Signed-By", lines=2
)
def signed_by(found: re.Match[str], at: Place) -> SignedByConflict:
    """Recognise apt's message; what stands before the names of the files may be translated."""
    return SignedByConflict(place=at, url=found["url"], one=found["one"], other=found["other"])


@parses(
    r"^(?:[^\n]*?Signed-By[^\n]*?(?P<url>(?:https?|file|ftp):\S+)|[^\n]*?(?P<first>(?:https?|file|ftp):\S+)[^\n]*?Signed-By)[^\n]*? "
    rf"(?P<one>{_KEY}|) != ?(?P<other>{_KEY}|)",
    "Signed-By",
    lines=2,
)
def signed_by_translated(found: re.Match[str], at: Place) -> SignedByConflict | None:
    """Recognise it in other languages."""
    plain = "regarding source" in found[0]
    return None if plain else SignedByConflict(place=at, url=found["url"] or found["first"], one=found["one"], other=found["other"])


class NoRelease(Event):
    """A repository lacks the index that was asked for, or its server has no such file; `suite` is the release that was asked for."""

    url: str
    suite: str | None = None


@parses(
    r"['\"‘“«] ?(?P<url>(?:https?|ftp):\S+)(?: (?P<suite>[a-z][\w./-]*)(?= ))?[^\n]{0,60}?"
    r"Release ?['\"’”»][^\n]{0,40}(?:Release|fichier|文件|Datei)",
    "elease' ",
    "elease’",
    "elease”",
    "elease »",
    'elease"',
)
def no_release(found: re.Match[str], at: Place) -> NoRelease | None:
    """Recognise apt's message that there is no Release file; that it is not signed is another matter."""
    return (
        None
        if "signed" in found[0] or "signé" in found[0] or "签名" in found[0]
        else NoRelease(place=at, url=found["url"], suite=found["suite"])
    )


class Failed(Event):
    """A download failed: the address of the file, and the words for it."""

    url: str
    reason: str


@parses(
    r"(?:Failed to fetch|无法下载|Impossible de récupérer|Fehlschlag beim Holen von) (?P<url>\S+) +(?P<reason>[^\n]*)",
    "Failed to fetch",
    "无法下载",
    "Impossible de récupérer",
    "Fehlschlag beim Holen",
)
def failed(found: re.Match[str], at: Place) -> Failed:
    """Recognise apt's message."""
    return Failed(place=at, url=found["url"], reason=found["reason"])
