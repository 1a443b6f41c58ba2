"""What apt and dpkg print when they fail: who held a lock, and the cause in one sentence."""

from __future__ import annotations

import re

from steps.managers.base import Holder
from steps.model.base import Phrase, Words, phrase

_LOCKED = (
    re.compile(r"Could not get lock (?P<lock>\S+?)\.? It is held by process (?P<pid>\d+)(?: \((?P<name>[^)]*)\))?"),
    re.compile(r"Could not get lock (?P<lock>\S+?)\.?(?: - open \(11: |$)", re.MULTILINE),
    re.compile(r"dpkg: error: (?P<lock>dpkg \S+ lock) (?:was|is) locked by another process(?: with pid (?P<pid>\d+))?"),
)


def busy(output: str) -> Holder | None:
    """Return the holder named by the last lock message, or `None` when no lock was the reason."""
    for pattern in _LOCKED:
        found = [*pattern.finditer(output)]
        # A wait that ended well leaves its message too; only an error is a refusal.
        if found and ("E: " in output[found[-1].start() - 3 :] or "dpkg: error:" in found[-1][0]):
            groups = found[-1].groupdict()
            pid = int(groups.get("pid") or 0)
            return Holder(lock=groups["lock"], pid=pid or None, name=groups.get("name"))
    return None


CAUSES: tuple[tuple[str, re.Pattern[str]], ...] = (
    # The first that matches wins: causes before their consequences.
    ("no-space", re.compile(r"(?P<text>[^\n]*(?:No space left on device|You don't have enough free space in [^\n]*))")),
    ("read-only", re.compile(r"(?P<text>[^\n]*Read-only file system)")),
    ("signed-by-twice", re.compile(r"Conflicting values set for option Signed-By regarding source (?P<text>\S+)")),
    ("malformed-source", re.compile(r"Malformed (?:entry|stanza) \d+ in (?:list|sources) file (?P<text>\S+)")),
    ("release-expired", re.compile(r"Release file for (?P<text>\S+) is expired")),
    ("release-future", re.compile(r"Release file for (?P<text>\S+) is not valid yet")),
    ("key-sha1", re.compile(r"Signing key on (?P<text>[0-9A-F]{40}) is not bound")),
    ("key-missing", re.compile(r"(?:NO_PUBKEY|Missing key) (?P<text>[0-9A-F]+)")),
    ("not-signed", re.compile(r"The repository '(?P<text>[^' ]+)[^']*' is not signed")),
    ("no-release", re.compile(r"The repository '(?P<text>[^' ]+)[^']*' does not have a Release file")),
    ("certificates-missing", re.compile(r"(?P<text>No system certificates available)")),
    ("certificate", re.compile(r"Failed to fetch (?P<text>\S+)\s+(?:SSL connection failed|Certificate verification failed)")),
    ("no-name", re.compile(r"(?:Could not resolve|Temporary failure resolving) '(?P<text>[^']+)'")),
    ("refused", re.compile(r"Could not connect to (?P<text>\S+)")),
    ("hash", re.compile(r"Failed to fetch (?P<text>\S+)\s+(?:Hash Sum mismatch|File has unexpected size)")),
    ("not-found", re.compile(r"Failed to fetch (?P<text>\S+)\s+404")),
    ("fetch", re.compile(r"Failed to fetch (?P<text>\S+)")),
    ("no-such-package", re.compile(r"Unable to locate package (?P<text>\S+)")),
    ("no-such-version", re.compile(r"Version '[^']*' for '(?P<text>[^']+)' was not found")),
    ("removal", re.compile(r"(?P<text>Packages need to be removed but remove is disabled)")),
    ("held", re.compile(r"(?P<text>Held packages were changed and -y was used)")),
    ("unmet", re.compile(r"unmet dependencies:\n(?P<text>[^\n]*(?:\n {2,}[^\n]*)*)")),
    ("overwrite", re.compile(r"trying to overwrite '(?P<text>[^']+)', which is also in package")),
    ("script", re.compile(r"installed (?P<text>\S+) package \S+ script subprocess returned error exit status")),
    ("script-killed", re.compile(r"installed (?P<text>\S+) package \S+ script subprocess was killed by signal")),
    ("interrupted", re.compile(r"(?P<text>dpkg was interrupted)")),
    ("dpkg-died", re.compile(r"(?P<text>Sub-process /usr/bin/dpkg exited unexpectedly)")),
    ("not-root", re.compile(r"(?P<text>are you root\?)")),
)


def cause(output: str) -> Words | None:
    """Return `manager.apt.<cause>` filled with the name that the message gives, or `None`."""
    holder = busy(output)
    if holder is not None:
        return phrase("manager.apt.locked", text=holder.lock, holder=holder.name or "?", pid=holder.pid or 0)
    for code, pattern in CAUSES:
        if found := pattern.search(output):
            return Phrase(key=f"manager.apt.{code}", params={"text": " ".join(found["text"].split())})
    return None


def last_error(stderr: str) -> Words:
    """Return the last line that apt marks as an error, without its mark; "?" when it printed none."""
    errors = [line[3:].strip() for line in stderr.splitlines() if line.startswith("E: ")]
    return errors[-1] if errors else "?"
