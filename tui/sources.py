"""Where a fact is written, in the few cells of a hint: a host or the name of a document. The why page has it whole."""

from __future__ import annotations

import re


def short(source: str) -> str:
    """Return the first place of a source as a host, a repository, a package or the name of a document."""
    first = source.partition("; ")[0].strip()
    if address := re.search(r"https?://([^/\s]+)(/[^\s;,)]*)?", first):
        return "/".join((address.group(2) or "").split("/")[1:3]) if address.group(1) == "github.com" else address.group(1)
    if repository := re.match(r"github:([\w.-]+/[\w.-]+)", first):
        return repository.group(1)
    if package := re.match(r"pypi:([\w.-]+)==([\w.]+)", first):
        return f"PyPI {package.group(1)} {package.group(2)}"
    return re.split(r" \(|: |, ", first.removeprefix("package index metadata of "))[0]


def parts(source: str) -> list[str]:
    """Return every place of a source, whole."""
    return [part.strip() for part in source.split("; ") if part.strip()]
