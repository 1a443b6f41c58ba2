"""Where a person's Python indexes are and who the person is there: held in memory only, and shown as nothing."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

from steps.managers.installer import named_indexes
from steps.model.profile import holds_credentials

if TYPE_CHECKING:
    from steps.host.base import Host

Login = tuple[str, str]


class Access:
    """The bare addresses of the indexes that the environment names with credentials, and the logins for their hosts."""

    __slots__ = ("_logins", "_machines", "extra", "main")

    def __init__(
        self, main: str | None = None, extra: tuple[str, ...] = (), logins: Mapping[str, Login] | None = None, netrc: str = ""
    ) -> None:
        self.main = main
        self.extra = extra
        self._logins = dict(logins or {})
        self._machines = dict(_machines(netrc))

    @property
    def known(self) -> bool:
        """Return whether an index is named with credentials, so that it can be asked."""
        return bool(self._logins)

    def __repr__(self) -> str:
        """Return that it is there, and nothing of what it holds."""
        return "Access()"

    def login(self, address: str) -> Login | None:
        """Return the name and password for an address: as its index was named, else as the person's netrc says for the host."""
        try:
            parts = urlsplit(address)
            place, host = parts.netloc.rpartition("@")[2].lower(), parts.hostname or ""
        except ValueError:
            return None
        return self._logins.get(place) or self._machines.get(host)


def access(host: Host, environ: Mapping[str, str], *, home: str) -> Access:
    """Return what the environment and the netrc of a person say; `host` is where that file lies."""
    logins = dict[str, Login]()

    def bare(address: str) -> str:
        """Return an address without its credentials, which are kept for its host."""
        parts = urlsplit(address)
        place = parts.netloc.rpartition("@")[2]
        logins[place.lower()] = (unquote(parts.username or ""), unquote(parts.password or ""))
        return urlunsplit((parts.scheme, place, parts.path, parts.query, ""))

    main, extra = (tuple(bare(one) for one in named if holds_credentials(one)) for named in named_indexes(environ))
    files = (environ.get("NETRC", ""), f"{home}/.netrc", f"{home}/_netrc")
    netrc = next((text for file in files if file.startswith("/") and (text := host.read(file)) is not None), "")
    return Access(next(iter(main), None), extra, logins, netrc)


def _machines(text: str) -> Iterator[tuple[str, Login]]:
    """Yield the logins of a netrc by host; an entry for every host is left alone: it would go to strangers too."""
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        # As with pip, an unreadable file just adds nothing.
        return
    left = iter(words)
    host, login, password = "", "", ""
    for word in left:
        if word in ("machine", "default"):
            if host and password:
                yield host, (login, password)
            host, login, password = next(left, "").lower() if word == "machine" else "", "", ""
        elif word in ("login", "user"):
            login = next(left, "")
        elif word == "password":
            password = next(left, "")
    if host and password:
        yield host, (login, password)
