"""A report as Markdown for an issue tracker; names that look like markup stay names."""

from __future__ import annotations

import re

from steps.report.block import Block, Heading, Output, Picture, Prose, Report, Table

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~!])")


def markdown(report: Report) -> str:
    """Return the whole file."""
    return "\n\n".join((f"# {text(report.title)}", *(_block(block) for block in report.blocks))) + "\n"


def text(words: str) -> str:
    """Return text in one line that Markdown and the HTML in it take literally."""
    line = " ".join("".join(char if char.isprintable() else " " for char in words).split())
    return _MARKUP.sub(r"\\\1", line.replace("&", "&amp;")).replace("\\<", "&lt;").replace("\\>", "&gt;")


def _block(block: Block) -> str:
    """Return one part."""
    match block:
        case Heading():
            return f"## {text(block.text)}"
        case Prose():
            return text(block.text)
        case Output():
            return _literal(block.text)
        case Picture():
            return _literal("\n".join(block.lines))
        case Table():
            return _table(block)


def _literal(words: str) -> str:
    """Return lines as they are, between fences longer than any run of backticks in them."""
    lines = "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in words)
    longest = max((len(run) for run in re.findall(r"`+", lines)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{lines.strip(chr(10))}\n{fence}"


def _table(table: Table) -> str:
    """Return a table; Markdown knows none without a heading row, so that one is empty."""
    columns = max((len(row) for row in (table.heading, *table.rows)), default=0)
    rows = (table.heading or ("",) * columns, ("---",) * columns)
    lines = [f"| {' | '.join(text(cell) for cell in rows[0])} |", f"|{'|'.join(rows[1])}|"]
    lines += [f"| {' | '.join(text(cell) for cell in (*row, *[''] * (columns - len(row))))} |" for row in table.rows]
    return "\n".join(lines)
