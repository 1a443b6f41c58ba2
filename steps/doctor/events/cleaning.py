"""Bytes of any origin into plain lines: encodings, escape sequences, NULs, what syslog escaped, and the stamps before the words."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from itertools import pairwise

_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()#][0-9A-Z]|[@-Z\\^_=>78c])")
_BACKSPACED = re.compile(rb"[^\x08\n]\x08")
_SYSLOG = ((b"#012", b"\n"), (b"#011", b"\t"), (b"#015", b""), (b"#033", b"\x1b"))
"""How rsyslog writes control characters."""
_MARKS = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_PROBED = 4096
_PACKED = (b"\x7fELF", b"\x1f\x8b", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"BZh", b"PK\x03\x04", b"LPKSHHRH", b"\x04\x22\x4d\x18")
"""How programs, packed files and the journal's own files begin."""
_NEVER_TYPED = bytes(byte for byte in range(1, 32) if byte not in b"\t\n\r\x07\x08\x0c\x0e\x0f\x1b")
"""Control characters that neither a terminal nor a log has a use for."""
_MOST_CONTROL = 0.04


def utf8(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same text in UTF-8: UTF-16, which programs of Windows write, is told by its mark or by its NULs.

    NULs before the first word are left out: a log that a power cut hit begins with a block of them.
    """
    decoder: codecs.IncrementalDecoder | None = None
    begun = False
    for block in blocks:
        text = block if begun else block.lstrip(b"\0")
        if text and not begun:
            begun = True
            name = _utf16(text[:_PROBED])
            decoder = codecs.getincrementaldecoder(name)("replace") if name else None
        yield decoder.decode(text).encode() if decoder else text


def _utf16(start: bytes) -> str | None:
    """Return which kind of UTF-16 a text is that begins with a word, or `None`.

    Western text has its NULs behind each letter. Where they stand at odd and even places alike they were never text.
    """
    for mark, name in _MARKS:
        if start.startswith(mark):
            return name
    behind, before = start[1::2].count(0), start[::2].count(0)
    return "utf-16-le" if len(start) >= 8 and behind >= len(start) // 4 and before < behind // 8 else None


def is_text(start: bytes) -> bool:
    """Return whether what begins so are words: no packed file, and not full of bytes that no terminal knows."""
    probed = start[:_PROBED]
    if probed.startswith(_PACKED):
        return False
    name = _utf16(probed)
    words = probed.decode(name, "replace").encode() if name else probed.replace(b"\0", b"")
    return len(words) - len(words.translate(None, _NEVER_TYPED)) <= len(words) * _MOST_CONTROL


def plain(block: bytes) -> bytes:
    """Return a block without what only a terminal or a syslog file needs; each check costs one search where there is nothing."""
    if b"#" in block and b"#0" in block:
        for escaped, real in _SYSLOG:
            block = block.replace(escaped, real)
    if b"\x1b" in block:
        block = _ESCAPES.sub(b"", block)
    if b"\x08" in block:
        block = _BACKSPACED.sub(b"", block)
    if b"\0" in block:
        block = block.replace(b"\0", b"")
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b'{"' in block:
        block = _JSON_LINE.sub(_message, block)
    if b"&" in block and b";" in block:
        block = _ENTITY.sub(lambda found: _ENTITIES[found[0]], block)
    return block


_JSON_LINE = re.compile(rb'^[^\n{]{0,80}\{"[^\n]{0,16000}\}[ \t,]*$', re.MULTILINE)
_MESSAGE = re.compile(rb'"(?:log|message|MESSAGE|msg|line|textPayload|error|err|stderr)": ?"((?:[^"\\]|\\.)*)"')
_ENTITIES = {
    b"&quot;": b'"', b"&#34;": b'"', b"&#39;": b"'", b"&#x27;": b"'", b"&apos;": b"'", b"&lt;": b"<", b"&gt;": b">", b"&amp;": b"&",
    b"&nbsp;": b" ", b"&#10;": b"\n", b"&#9;": b"\t",
}  # fmt: skip
_ENTITY = re.compile(b"|".join(_ENTITIES))
"""How a page writes what has a meaning of its own in it."""


def _message(found: re.Match[bytes]) -> bytes:
    """Return what a line of JSON says, its escapes resolved, each message in a line of its own; any other line as it is."""
    try:
        said = [str(json.loads(b'"%s"' % words, strict=False)).rstrip("\n") for words in _MESSAGE.findall(found[0])]
    except ValueError:
        return found[0]
    return "\n".join(said).encode(errors="replace") or found[0]


_NARROW, _WIDE = (24, 100), 260
"""Columns of the terminals that break lines where people see it, and of those that do so for long messages only."""
_AMID_WORD = re.compile(r"[a-z]\n[a-z]")


def unwrapped(text: str) -> str:
    """Return a pasted text with its lines made whole again where a terminal broke each of them at one column, amid words too."""
    lines = text.splitlines()
    width = max(map(len, lines), default=0)
    full = [line for line in lines if len(line) == width]
    if len(set(full)) < len(full) or _rows(lines, width) > len(full) // 2:
        return text
    narrow = _NARROW[0] <= width <= _NARROW[1] and len(full) >= max(5, len(lines) // 3)
    wide = _NARROW[1] < width <= _WIDE and len(full) >= 3 and _words_broken(lines, width) >= 2
    return "".join(line if len(line) == width else f"{line}\n" for line in lines) if narrow or wide else text


def _rows(lines: list[str], width: int) -> int:
    """Return how many lines of this width begin like the next one: rows of a table do, what a terminal broke goes on otherwise."""
    return sum(len(one) == width and one.split(" ", 1)[0] == next_.split(" ", 1)[0] for one, next_ in pairwise(lines))


def _words_broken(lines: list[str], width: int) -> int:
    """Return how many lines of this width end amid a word that the next line goes on with."""
    return sum(len(one) == width and _AMID_WORD.fullmatch(f"{one[-1:]}\n{next_[:1]}") is not None for one, next_ in pairwise(lines))


_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_MONTH = r"(?:[^\W\d_]{1,8}\.?|\d{1,2}(?:月|월))"
_CARRIED = (
    r"\(\w+ pid=\d+(?:, ip=[\d.]+)?\) |"
    r"(?:[\d.:a-f]{3,39}: )?(?:kern|user|daemon) *: *(?:emerg|alert|crit|err|warn|warning|notice|info|debug) *: *(?:\[[\dT:.Z-]+\]: )?"
)
"""What carries a line of another program: Ray, `dmesg -x`, Talos."""
_STAMP = re.compile(
    rf"^(?P<carried>{_CARRIED})?(?:<\d{{1,3}}>)?"
    rf"(?:(?:[A-Z][a-z]{{2}} )?(?P<iso>{_ISO}) (?:[A-Z]{{3,5}} )?|(?P<syslog>{_MONTH} {{1,2}}\d{{1,2}} \d\d:\d\d:\d\d(?:\.\d+)? )|"
    r"(?P<wall>\[[A-Z][a-z]{2} ?[A-Z\d][a-z\d]+ [^\]]{4,24}\] ?|\[ *\+\d{1,8}\.\d{1,9}\] ?|[a-z]+ *:[a-z]+ *: (?=\[)))?"
    r"(?:(?:(?!NVRM)[\w.-]+ )?(?:kernel|[\w.@-]+\[\d+\]): )?"
    r"(?:(?:stdout|stderr) [FP] )?"
    r"(?:\[ *(?P<boot>\d{1,8}\.\d{1,9})\] ?(?:\[ *[TC]\d{1,8}\] ?)?(?:(?:(?!NVRM)[\w.-]+ )?kernel: )?)?"
)
"""dmesg with `-T`, `-H`, `-x` and `--time-format iso`, syslog, and the journal in its formats and in any language."""
_LABEL = re.compile(
    r"(?:\[(?:rank|default)_?\d+\]: ?|\[\d+,\d+\]<std(?:out|err)>: ?|(?:#\d{1,4} )?\d{1,5}\.\d{1,3} (?=[ A-Z])|#\d+ \d+\.\d+ |"
    r"\d{1,4}: (?=[ \t]|[^\s:]+[ :])|[a-z][\w.-]* +\| |> ?|\[pod/[\w./-]+\] |[-*•] (?=[^\d\s]|\d{4}-))"
)
"""Whose line it is, as launchers of many processes (torchrun, mpirun, srun), container builders and quotes write it before each."""


def unstamped(line: str) -> tuple[str, float | None]:
    """Return a line without its label and the stamps of dmesg, syslog or the journal, and its time: seconds since the boot, else 1970."""
    # In prose, backticks around a whole line say that it was printed.
    if len(line) > 2 and line[0] == line[-1] == "`" and line.count("`") == 2:
        line = line[1:-1]
    label = _LABEL.match(line)
    if label is not None:
        line = line[label.end() :]
    found = _STAMP.match(line)
    if found is None or found.end() == 0:
        return line, None
    rest = line[found.end() :]
    if found["boot"]:
        return rest, float(found["boot"])
    if found["iso"]:
        return rest, _epoch(found["iso"])
    # A line of a program's own ("name[12]: ") keeps its name unless a real stamp stands before it.
    real = found["syslog"] or found["wall"] or found["carried"] or "kernel: " in line[: found.end()]
    return (rest, None) if real else (line, None)


def _epoch(stamp: str) -> float | None:
    text = stamp.replace(",", ".").replace(" ", "T", 1)
    if text.endswith("Z"):
        text = f"{text[:-1]}+00:00"
    text = re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", text)
    text = re.sub(r"\.(\d+)", lambda part: f".{part[1][:6]:0<6}", text)
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp()
