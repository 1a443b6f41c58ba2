"""The right side of a step: what is true of the row under the cursor, why, what it costs and how it is undone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from steps.model.base import Phrase, Words, phrase
from steps.model.choice import Choice, Note, Option
from steps.model.finding import Finding
from steps.text import Language, say, say_finding
from tui.cells import BLANK, Line, Span, cut, pad, width, wrap
from tui.sources import short
from tui.telling import Told
from tui.theme import MARKS

LABEL: dict[Language, int] = {"en": 9, "zh_CN": 6}
LINKS = 4
"""How many links of a causal chain are drawn; the why page has all."""
_SEVERITY_MARK = {"error": "bad", "warning": "catch", "info": "info", "ok": "good"}
_ORDER = (
    "measured",
    "matters",
    "change",
    "bios",
    "linux",
    "changes",
    "keeps",
    "leads-to",
    "file",
    "cost",
    "undo",
    "after",
    "trap",
    "instead",
    "from",
    "source",
)
_LAST_TO_STAY = (
    "after",
    "from",
    "keeps",
    "cost",
    "undo",
    "source",
    "file",
    "changes",
    "instead",
    "trap",
    "matters",
    "measured",
    "change",
    "linux",
    "bios",
    "leads-to",
)
"""Notes in the order in which they give way where the pane is short."""


NOTHING_TOLD = Told()


class Block(NamedTuple):
    """Lines that belong together, and when they give way: the lowest `stays` first."""

    lines: tuple[Line, ...]
    stays: int
    gap: bool = False
    """Whether an empty row goes before it."""


def chain(label: str, because: Sequence[str], end: Line, indent: int, columns: int) -> list[Line]:
    """Return a causal chain: the fact at the top, each consequence one step to the right, the verdict at its end."""
    links = list(because) if len(because) < LINKS else [*because[: LINKS - 2], because[-1]]
    lines: list[Line] = []
    for depth, link in enumerate(links):
        room = columns - indent - 2 * depth
        parts = wrap(link, room)
        parts = parts if len(parts) <= 2 else [parts[0], cut(" ".join(parts[1:]), room)]
        for at, part in enumerate(parts):
            lead = Span(pad(label if depth == 0 and at == 0 else "", indent), "mute")
            branch = Span(" " * (2 * (depth - 1)) + ("└ " if at == 0 else "  "), "rule") if depth else Span("")
            lines.append((lead, branch, Span(part)))
    if links and end:
        lines.append((Span(" " * (indent + 2 * (len(links) - 1))), Span("└ ", "rule"), *end))
    return lines


def labelled(label: str, text: str, indent: int, columns: int, ink: str = "text") -> list[Line]:
    """Return `text` wrapped beside its label."""
    return [(Span(pad(label if at == 0 else "", indent), "mute"), Span(line, ink)) for at, line in enumerate(wrap(text, columns - indent))]


def verdict(language: Language, choice: Choice, option: Option) -> Line:
    """Return the first line: the mark, the verdict in its colour, the subject in bold."""
    generic = say(language, phrase(f"ui.verdict.{option.mark}"))
    tag = say(language, option.tag)
    words = generic if (choice.kind == "one" and option.mark in ("bad", "catch")) or not tag else tag
    subject = say(language, option.label)
    if choice.kind == "facts" and option.detail:
        subject = say(language, phrase("ui.row", name=subject, value=say(language, option.detail)))
    return (Span(f"{MARKS[option.mark]} {words}", f"{option.mark}-strong"), Span(f"  {subject}", "strong"))


def _finding_lines(language: Language, finding: Finding, columns: int) -> tuple[Line, ...]:
    """Return a further finding in one wrapped sentence, its mark in front."""
    mark = _SEVERITY_MARK[finding.severity]
    lines = wrap(say_finding(language, finding, "sentence"), columns - 2)
    return tuple((Span(f"{MARKS[mark]} " if at == 0 else "  ", mark), Span(line)) for at, line in enumerate(lines))


def _blocks(language: Language, choice: Choice, option: Option, columns: int, told: Told) -> list[Block]:
    """Return the parts of a hint in the order in which they are read."""
    indent = LABEL[language]
    sentences = [say(language, sentence) for sentence in option.sentences]
    main = option.findings[0] if option.findings else None
    others = option.findings[1:]
    if main is not None and not sentences:
        sentences = [text for text in (say_finding(language, main, "sentence"), say_finding(language, main, "why")) if text]
    elif main is not None and say_finding(language, main, "sentence") != sentences[0]:
        others = option.findings
    blocks = [Block(tuple(labelled_first(language, choice, option, columns)), 100)]
    if sentences:
        blocks.append(Block(tuple(_prose(language, option.sentences, columns) or _wrapped(language, sentences, columns)), 99, gap=True))
    for other in others:
        if other.severity != "ok":
            blocks.append(Block(_finding_lines(language, other, columns), 60, gap=not blocks[-1].gap))
    because = [say(language, link) for link in main.because] if main is not None else []
    if because:
        end: Line = (Span(f"{MARKS[option.mark]} ", option.mark), Span(say(language, option.label)))
        # What is only looked at says in its notes what was measured and what to do; where the pane is short, those go before the chain.
        stays = 29 if choice.kind == "facts" else 90
        blocks.append(Block(tuple(chain(say(language, phrase("ui.note.because")), because, end, indent, columns)), stays, gap=True))
    deciding = main.source if main is not None and main.severity in ("error", "warning") else None
    # Where a finding decides, the rule's own source goes before that of the row.
    notes = tuple(note for note in (*option.notes, *told.notes) if deciding is None or note.label != "source")
    blocks += _notes(language, notes, deciding or (main.source if main is not None else None), columns)
    if told.fix:
        fix_lines = wrap(told.fix, columns - 3)[:2]
        blocks.append(
            Block(
                tuple((Span("f  " if at == 0 else "   ", "accent-strong"), Span(line)) for at, line in enumerate(fix_lines)), 95, gap=True
            )
        )
    return blocks


def _wrapped(language: Language, sentences: Sequence[str], columns: int) -> list[Line]:
    """Return sentences run together and wrapped."""
    return [(Span(line),) for line in wrap(("" if language == "zh_CN" else " ").join(sentences), columns)] if sentences else []


def _prose(language: Language, sentences: Sequence[Words], columns: int) -> list[Line]:
    """Return phrases run together and wrapped; plain text among them (a tree, a name) keeps a line of its own."""
    lines: list[Line] = []
    running: list[str] = []
    for sentence in sentences:
        if isinstance(sentence, Phrase):
            running.append(say(language, sentence))
            continue
        lines += _wrapped(language, running, columns)
        running.clear()
        tree = sentence.startswith((" ", "├", "└", "│"))
        lines += [(Span(line),) for line in ([cut(sentence, columns)] if tree else wrap(sentence, columns))]
    return [*lines, *_wrapped(language, running, columns)]


def _notes(language: Language, notes: Sequence[Note], source: str | None, columns: int) -> list[Block]:
    """Return the labelled lines in their fixed order; a finding's source stands where the option names none."""
    indent = LABEL[language]
    blocks: list[Block] = []
    before = ""
    for label, note in ((label, note) for label in _ORDER for note in notes if note.label == label):
        word, text = say(language, phrase(f"ui.note.{label}")), say(language, note.text)
        lines: tuple[Line, ...]
        if label == "source":
            lines = tuple(labelled(word, cut(short(text), columns - indent), indent, columns, "mute"))
        elif note.command:
            # The lines of one file or of one script stand below one word.
            command: Line = (Span(cut(text, columns), "primary"),)
            lines = (command,) if label == before else ((Span(word, "mute"),), command)
        else:
            lines = tuple(labelled(word, text, indent, columns, "mute" if label == "from" else "text"))
        before = label
        blocks.append(Block(lines, 10 + 2 * _LAST_TO_STAY.index(label), gap=not blocks))
    if source and not any(note.label == "source" for note in notes):
        shown = cut(short(source), columns - indent)
        blocks.append(Block(tuple(labelled(say(language, phrase("ui.note.source")), shown, indent, columns, "mute")), 20, gap=not blocks))
    return blocks


def labelled_first(language: Language, choice: Choice, option: Option, columns: int) -> list[Line]:
    """Return the verdict line, the subject on a line of its own where both do not fit."""
    mark, subject = verdict(language, choice, option)
    if width(mark.text) + width(subject.text) <= columns:
        return [(mark, subject)]
    return [(mark,), (Span(cut(subject.text.strip(), columns), "strong"),)]


def hint(language: Language, choice: Choice, option: Option, columns: int, rows: int, told: Told = NOTHING_TOLD) -> list[Line]:
    """Return the hint in at most `rows` rows; what does not fit gives way from the least needed and stays behind `w`."""
    return fitted(_blocks(language, choice, option, columns, told), rows)


def fitted(blocks: Sequence[Block], rows: int) -> list[Line]:
    """Return the lines of the blocks that fit, in their order."""
    left = list(blocks)
    while len(left) > 1 and sum(len(block.lines) + block.gap for block in left) > rows:
        least = min(block.stays for block in left)
        # Among equals the last one goes first: the lines of a file lose their end and never the word above them.
        at = max(at for at, block in enumerate(left) if block.stays == least)
        gone = left.pop(at)
        if gone.gap and at < len(left):
            left[at] = left[at]._replace(gap=True)
    lines: list[Line] = []
    for block in left:
        if block.gap and lines:
            lines.append(BLANK)
        lines += block.lines
    return lines[:rows]
