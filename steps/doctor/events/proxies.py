"""The way to servers: encrypted connections that broke, and the proxies that requests are sent through."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place


class TlsFailed(Event):
    """The encrypted connection to a server broke before anything was said; `address` and `port` are what was really talked to."""

    url: str | None
    address: str | None = None
    port: int | None = None
    proxy: bool = False
    """Whether the message itself names a proxy."""
    reset: bool = False
    """Whether it says only that the connection was reset, which a server does as well."""
    trust: bool = False
    """Whether it says only that who signed the server's certificate is not known, which is so of a house's own server as well."""


class NoRoots(Event):
    """A program found no certificates at all to judge a server's by: the package with them is not installed."""


@parses(
    r"No system certificates available|error setting certificate (?:file|verify locations)",
    "No system certificates",
    "error setting certificate",
)
def no_roots(found: re.Match[str], at: Place) -> NoRoots:
    """Recognise apt and curl in a bare image."""
    return NoRoots(place=at)


class IndexAsked(Event):
    """The server that pip asks for packages, where it is told which."""

    host: str


@parses(r"Looking in (?:indexes|links): (?:\S+, )*?https://(?:[^/@\s]{1,80}@)?(?P<host>[\w.-]+)", "Looking in ")
def index_asked(found: re.Match[str], at: Place) -> IndexAsked:
    """Recognise pip's first line, without a name and a password in it."""
    return IndexAsked(place=_without_password(at), host=found["host"])


class ProxySet(Event):
    """A session sends what it fetches through a proxy at `peer`, as a variable, a setting of apt or proxychains tell."""

    peer: str


@parses(
    r"(?:\b(?:https?|all)_proxy\b|\b(?:HTTPS?|ALL)_PROXY\b|Acquire::https?::Proxy|\bH(?:TTPS?|ttps?) Proxy|"
    r"\bhttps?\.proxy|\bproxy_servers\.https?|(?:^|\s)--proxy)(?:\"?[=: ]{1,3}['\"]?)"
    r"(?:(?:https?|socks\w*)://)(?:[^/@\s]{1,80}@)?(?P<peer>[\w.-]+:\d{2,5})|"
    r"\bcurl [^\n]{0,80}?-x +(?:https?://)?(?:[^/@\s]{1,80}@)?(?P<given>[\w.-]+:\d{2,5})(?!\S*@)|"
    r"^\[proxychains\] \w+ chain[. ]{1,9}(?P<chained>[\w.-]+:\d{2,5})",
    "http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "::Proxy", "[proxychains]",
    "HTTPS Proxy: ", "HTTP Proxy: ", "Https Proxy: ", "Http Proxy: ", "http.proxy", "https.proxy", "proxy_servers.http", "--proxy",
    *(f"curl -{letter}" for letter in "xsvkILfiUo-"), " -x http",
    typed=True,
)  # fmt: skip
def proxy_set(found: re.Match[str], at: Place) -> ProxySet:
    """Recognise a variable that is set or shown, what apt, git, conda, pip, curl and Docker are told, and what proxychains prints."""
    return ProxySet(place=_without_password(at), peer=found["peer"] or found["given"] or found["chained"])


@parses(
    r"\b(?:proxychains4?(?:-ng)?|tsocks|torsocks|torify) (?:-\S+ )*(?:sudo )?(?:apt|apt-get|dnf|yum|pip3?|conda)\b",
    "proxychains",
    "tsocks ",
    "torsocks",
    "torify ",
    typed=True,
)
def proxy_before(found: re.Match[str], at: Place) -> ProxySet:
    """Recognise a package manager that runs behind a program which leads all of its connections elsewhere."""
    return ProxySet(place=at, peer=found[0].split()[0])


_LOGIN = re.compile(
    r"(?<=//)[^/@\s]*@|(?<![^\s='\"])[^\s/@:='\"]+:[^\s/@]+@(?=[\w.-]+:\d)|"
    r"(?<=\s)(?P<option>-[uU]|--(?:proxy-)?user)(?:[ =]+|(?<=-[uU]))[^\s:]+:\S+"
)
"""A name and a password before a server's, and those that curl is told beside it."""


def without_logins(text: str) -> str:
    """Return what was written of servers without the names and passwords for them."""
    return _LOGIN.sub(lambda found: f"{found['option']} …" if found["option"] else "", text)


def _without_password(at: Place) -> Place:
    return Place(source=at.source, text=without_logins(at.text), order=at.order, seconds=at.seconds)


_PEER = re.compile(
    r"->(?P<far>[0-9a-fA-F.:]+):(?P<there>\d{2,5}): |\[IP: (?P<address>[0-9a-fA-F.:]+) (?P<port>\d+)\]|"
    r"proxy(?!connect)[^\n]{0,40}?(?P<named>[\w.-]+):(?P<its>\d{2,5})",
    re.IGNORECASE,
)
_NAMED = re.compile(r"\bproxy(?:connect)?\b|\btunnel (?:connection )?failed", re.IGNORECASE)
_SIGNED_BY_ONE = re.compile(r"\b(?:candidate authority|issued by)\b[^\n]{0,60}\b(?:proxy|web ?gateway)\b", re.IGNORECASE)
"""Who signed the certificate names itself after what it does."""
_UNTRUSTED = (
    r"x509: certificate (?:signed by unknown authority|is not trusted)|server certificate verification failed|"
    r"certificate verification issue|cannot verify \S+ certificate, issued by|"
    r"[Pp]eer's Certificate issuer (?:is not recognized|has been marked)|"
    r"(?:Peer certificate cannot be authenticated with|SSL peer certificate or SSH remote key was not OK)"
)


@parses(
    r"(?:(?P<url>https:\S+)[^\n]*?)?(?:Could not handshake|gnutls_handshake\(\) failed|TLS handshake(?! error from)|"
    r"SSL connection failed|SSL connect error|"
    r"(?P<trust>"
    + _UNTRUSTED
    + r")|Certificate verification failed|certificate verify failed|TLS connection was non-properly terminated|SSL: WRONG_VERSION_NUMBER|"
    r"SSL_ERROR_SYSCALL|self[- ]signed certificate in certificate chain|packet with unexpected length was received|"
    r"wrong version number|Proxy CONNECT aborted|Received HTTP code \d+ from proxy after CONNECT|"
    r"Invalid response from proxy: HTTP/\S+ [45]\d\d|Proxy tunneling failed|Tunnel connection failed: [45]\d\d|"
    r"CONNECT tunnel failed, response [45]\d\d|EOF occurred in violation of protocol|"
    r"(?:[Cc]url|OpenSSL)\b[^\n]{0,80}unexpected eof|Cannot connect to proxy|"
    r"proxyconnect tcp: (?!dial)|SSL certificate problem: (?:unable to get local issuer|self[- ]signed certificate in)|"
    r"invalid peer certificate: Unknown|: Proxy Authentication Required|"
    r"(?P<reset>(?:Recv failure|SSL_connect): Connection reset by peer|"
    r"\(56\): (?:Recv failure|Failure when receiving data)|Empty reply from server))"
    r"(?P<rest>[^\n]*)",
    "Could not handshake", "gnutls_handshake", "TLS handshake", "SSL connection failed", "SSL connect error", "ertificate verif",
    "non-properly terminated", "WRONG_VERSION_NUMBER", "SSL_ERROR_SYSCALL", "certificate in certificate chain",
    "with unexpected length was", "wrong version number", "Proxy CONNECT aborted", "from proxy after CONNECT",
    "response from proxy: ", "Proxy tunneling failed", "unnel connection failed", "CONNECT tunnel failed", "Recv failure: ",
    "error (56): ", "mpty reply from server", "violation of protocol", "unexpected eof", "annot connect to proxy",
    "proxyconnect tcp: ", "SSL certificate problem: ", "invalid peer certificate", "SSL_connect: Connection reset",
    "x509: certificate ", "cannot verify ", "Certificate issuer ", "eer certificate ", "Proxy Authentication Required",
)  # fmt: skip
def tls_failed(found: re.Match[str], at: Place) -> TlsFailed | None:
    """Recognise what GnuTLS, OpenSSL, curl and Go say, through apt, dnf, pip, conda or Docker; and proxies that let no TLS through."""
    line = at.text
    if re.search(r"certificate (?:has expired|is not yet valid)|uses (?:expired|not yet valid) certificate|OCSP data are old", line):
        return None  # a server's fault, or this machine's clock
    peer = _PEER.search(line)
    address = (peer["address"] or peer["named"] or peer["far"]) if peer else None
    port = int(peer["port"] or peer["its"] or peer["there"]) if peer else None
    url = found["url"] or next(iter(re.findall(r"https://[^\s\]]+", line)), None)
    url = url.rstrip("\"':,") if url else None
    if url and address and re.match(rf"https://{re.escape(address)}(?![\w.-])", url):
        address = port = None  # the server that was asked for, and nobody before it
    trust = found["trust"] is not None and re.search(r"self[- ]signed certificate in|unable to get local issuer", line) is None
    named = (_SIGNED_BY_ONE if trust else _NAMED).search(line) is not None
    return TlsFailed(place=at, url=url, address=address, port=port, proxy=named, reset=found["reset"] is not None, trust=trust)
