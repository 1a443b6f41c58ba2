"""The person's own Python indexes as one source, asked for many things at once within a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar
from urllib.parse import urlsplit

from steps.host.web import Unreachable, Web, within
from steps.managers import index
from steps.managers.access import Access
from steps.managers.index import Garbled, Metadata, Wheel
from steps.model.plan import Installer

T = TypeVar("T")
NOBODY = Access()
"""Nobody's logins."""


class Source:
    """What the indexes say; what could not be read is told to `said` and left out."""

    def __init__(self, installer: Installer, *, seconds: float, said: Callable[[str], None], access: Access = NOBODY) -> None:
        # Another index than the installer's own would answer for what it does not have.
        unknown = installer.no_index or (installer.index_hidden and not access.known)
        self._why = (
            "pip is told to ask no index" if installer.no_index else "the address of the index holds a password, so the index is not asked"
        )
        extra = (*access.extra, *installer.extra_index_urls)
        self.addresses = () if unknown else index.indexes(access.main or installer.index_url, extra)
        self._ends = time.monotonic() + seconds
        self._said = said
        local = any(urlsplit(one).scheme == "file" for one in self.addresses)
        self._web = Web(proxy=installer.proxy, certificates=installer.certificates, until=self._ends, local=local, login=access.login)

    @property
    def site(self) -> str:
        """Return the host of the main index; an index in a folder is this machine's."""
        parts = urlsplit(next(iter(self.addresses), ""))
        return (parts.netloc.rpartition("@")[2] or "localhost").lower()

    @property
    def left(self) -> float:
        """Return how many seconds are left."""
        return max(0.0, self._ends - time.monotonic())

    def projects(self, names: Sequence[str]) -> Mapping[str, tuple[Wheel, ...] | None]:
        """Return the wheels of projects, oldest release first; `None` for one that no index could be asked about."""
        if not self.addresses:
            self._said(self._why)
            return dict.fromkeys(names)
        return dict(zip(names, self._all([partial(self._project, name) for name in names], names), strict=True))

    def at(self, addresses: Sequence[str], name: str) -> list[tuple[Wheel, ...] | None]:
        """Return the wheels of one project at each of some other indexes; `None` for one that did not answer or is not to be asked."""
        if not self.addresses:
            return [None] * len(addresses)
        return self._all([partial(index.project, self._web, address, name) for address in addresses], [name] * len(addresses))

    def _project(self, name: str) -> tuple[Wheel, ...] | None:
        """Return a project's wheels over all indexes, as pip sees them: of two files of one name the first index's."""
        found: dict[str, Wheel] = {}
        answered = False
        for address in self.addresses:
            try:
                wheels = index.project(self._web, address, name)
            except (Unreachable, Garbled) as trouble:
                self._said(f"{name}: {trouble}")
                continue
            answered = True
            for wheel in wheels:
                found.setdefault(wheel.file, wheel)
        return tuple(found.values()) if answered else None

    def metadata(self, wheels: Iterable[Wheel]) -> Mapping[str, Metadata]:
        """Return the metadata of wheels by file name; one that could not be read is missing."""
        asked = tuple(dict.fromkeys(wheels))
        answers = self._all([partial(index.metadata, self._web, wheel) for wheel in asked], [wheel.file for wheel in asked])
        return {wheel.file: answer for wheel, answer in zip(asked, answers, strict=True) if answer is not None}

    def measured(self, wheel: Wheel) -> tuple[int | None, str | None]:
        """Return the size and the day of a wheel, `None` for what is not said."""
        try:
            return index.measured(self._web, wheel)
        except (Unreachable, Garbled) as trouble:
            self._said(f"{wheel.file}: {trouble}")
            return wheel.size, wheel.uploaded

    def _all(self, questions: Sequence[Callable[[], T]], names: Sequence[str]) -> list[T | None]:
        """Return the answers; says which failed."""
        return within(self.left, [partial(self._told, question, name) for question, name in zip(questions, names, strict=True)])

    def _told(self, question: Callable[[], T], name: str) -> T | None:
        """Return an answer, or say why there is none."""
        try:
            return question()
        except (Unreachable, Garbled) as trouble:
            self._said(f"{name}: {trouble}")
        except Exception as trouble:  # noqa: BLE001 - a foreign answer may be wrong in ways that nobody has thought of
            self._said(f"{name}: {type(trouble).__name__}")
        return None
