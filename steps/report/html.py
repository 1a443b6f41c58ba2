"""A report as one HTML file that loads nothing and runs nothing; it is well-formed XML too, so that any tool can read it."""

from __future__ import annotations

from html import escape
from string import Template

from steps import resources
from steps.report.block import Block, Heading, Output, Picture, Prose, Report, Table


def html(report: Report) -> str:
    """Return the whole file."""
    page = Template(resources.read_text("templates", "report.html"))
    body = "\n".join(_block(block) for block in report.blocks)
    return page.substitute(language=escape(report.language.replace("_", "-")), title=text(report.title), body=body)


def text(words: str) -> str:
    """Return text that stands for itself in HTML and XML; what no document may hold becomes a replacement character."""
    return escape("".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in words))


def _block(block: Block) -> str:
    """Return one part."""
    match block:
        case Heading():
            return f"<h2>{text(block.text)}</h2>"
        case Prose():
            return f"<p>{text(block.text)}</p>"
        case Output():
            return f"<pre>{text(block.text)}</pre>"
        case Picture():
            return f'<div class="picture">{block.svg}</div>'
        case Table():
            head = f"<thead>{_row(block.heading, 'th')}</thead>" if block.heading else ""
            rows = "".join(_row(row, "td") for row in block.rows)
            return f"<table>{head}<tbody>{rows}</tbody></table>"


def _row(cells: tuple[str, ...], kind: str) -> str:
    """Return one row of a table."""
    return "<tr>" + "".join(f"<{kind}>{text(cell)}</{kind}>" for cell in cells) + "</tr>"
