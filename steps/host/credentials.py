"""Taking credentials out of a text: of addresses, variables, options, headers, netrc, keys in armour, and tokens of the usual services.

Every pattern begins at a fixed word or at the edge of one and repeats within bounds, so that the time grows with the text and no faster.
"""

from __future__ import annotations

import re

_STAND_IN = "REDACTED"
_NAMES = r"(?:token(?!iz)|secret|passw(?:or)?d|passphrase|(?:api|access|private)[_-]?key|luks\.key|credential)"
_VALUE = r"""(?:'[^'\n]{1,500}'|"(?:[^"\\\n]|\\.){1,500}"|["']?[^\s"'}]+)"""
"""A value in quotes goes whole; without quotes it ends at a blank."""
_ARMOUR = re.compile(r"(-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----)(?:(?!-----)[\s\S]){0,16384}")
_USERINFO = re.compile(r"""://[^/\s"<>]*@""")
"""Up to the last @ before the path: a password may hold one itself."""
_BARE_USERINFO = re.compile(r"""(?<![\w.+/-])[\w.+-]{1,64}:[^\s/"'<>:,]{1,128}@(?!sha\d+:|\d+[kKMGT]?\b(?!\.))(?=\w)""")
"""A proxy without a scheme; no digest of an image (`ubuntu:24.04@sha256:…`), no range of memory, no place on a bus (`PCI:1@0:0:0`)."""
_QUERY = re.compile(
    r"""(?i)((?:[?&][\w.-]{0,40}(?:sig|signature|key|key-?id|auth|code|sas|session)|\bx-(?:amz|goog)-[\w-]{1,40})=)[^&\s"'<>#]+"""
)
_SET = re.compile(rf"""(?i)({_NAMES}[\w-]{{0,40}}(?:=(?!=)|["']\s{{0,8}}:\s{{0,8}}|:\s{{1,8}}))({_VALUE})""")
"""A colon counts with a quote or a blank beside it: `libsecret-1-0:amd64` is a package."""
_OPTION = re.compile(rf"""(?i)((?<![\w-])--?[\w-]{{0,40}}{_NAMES}s?)(["']?(?:,\s{{0,8}}|\s{{1,8}}))(?!-|["']-)({_VALUE})""")
_LOGIN = re.compile(r"""((?<![\w-])(?:-u|-U|--user|--proxy-user)["']?[=,\s]\s{0,8}["']?)(?!\d+:\d+(?![\w.]))[\w.@\\-]{0,64}:[^\s"']+""")
"""A user with a password; `-u 1000:1000` is who a container runs as."""
_NETRC = re.compile(
    r"(?im)((?:^[ \t]*|\b(?:login|machine|account)[ \t]+\S{1,200}\s{1,8})password[ \t]+)\S+"
    r"(?=[ \t]*(?:$|#|\b(?:machine|login|account|macdef)\b))"
)
_HEADER = re.compile(r"""(?i)(\bauthorization["']?\s{0,8}[:=]\s{0,8}["']?(?:\w{1,20}\s{1,8})?|\bbearer\s{1,8}(?=[\w.~+/-]{12}))[^\s"',]+""")
_TOKEN = re.compile(
    r"\b(?:hf|gh[pousr]|github_pat|glpat|sk|xox[abp]|npm|nvapi|dckr_pat|pypi)[_-][A-Za-z0-9_-]{16,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|(?<![\w-])eyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]*)?"
)
"""What tokens of the usual services begin with."""


def without_credentials(text: str) -> str:
    """Return `text` with a stand-in for everything that lets somebody in."""
    text = _ARMOUR.sub(rf"\1{_STAND_IN}", text)
    text = _USERINFO.sub("://", text)
    text = _BARE_USERINFO.sub(f"{_STAND_IN}@", text)
    text = _LOGIN.sub(rf"\1{_STAND_IN}", text)
    text = _QUERY.sub(rf"\1{_STAND_IN}", text)
    text = _SET.sub(lambda found: found[1] + _in_its_place(found[2]), text)
    text = _OPTION.sub(lambda found: found[1] + found[2] + _in_its_place(found[3]), text)
    text = _NETRC.sub(rf"\1{_STAND_IN}", text)
    text = _HEADER.sub(rf"\1{_STAND_IN}", text)
    return _TOKEN.sub(_STAND_IN, text)


def _in_its_place(value: str) -> str:
    """Return the stand-in in the quotes that the value had, so that what was a document stays one."""
    opened = value[0] if value[0] in "\"'" else ""
    return f"{opened}{_STAND_IN}{opened if len(value) > 1 and value.endswith(opened) else ''}"
