"""The parts that a report is made of, before they are HTML or Markdown."""

from __future__ import annotations

from steps.model.base import Record


class Heading(Record, tag=True):
    """The beginning of a section."""

    text: str


class Prose(Record, tag=True):
    """A paragraph."""

    text: str


class Table(Record, tag=True):
    """Rows below a heading row; no heading row for a list of names and values."""

    rows: tuple[tuple[str, ...], ...]
    heading: tuple[str, ...] = ()


class Output(Record, tag=True):
    """What a program printed, line by line as it was."""

    text: str


class Picture(Record, tag=True):
    """A drawing as SVG, and as lines for where none can be shown."""

    svg: str
    lines: tuple[str, ...]


Block = Heading | Prose | Table | Output | Picture


class Report(Record):
    """A whole report in one language."""

    title: str
    language: str
    blocks: tuple[Block, ...]
