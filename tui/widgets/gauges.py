"""What the GPUs do, drawn: a row for each card, and below the table what is to be said of one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from steps.detect import measures
from steps.model.base import Words, phrase
from steps.model.gauge import Gauge, Load, Slowdown
from tui.cells import BLANK, Line, Span, cut, pad, width, wrap
from tui.theme import MARKS

Say = Callable[[Words], str]

_WORD = 11
"""Cells of the word at the end of a row."""
_MEMORY, _HEAT, _WATTS, _LINK = 12, 5, 10, 6
_FIXED = 2 + 3 + 5 + _MEMORY + _HEAT + _WATTS + _LINK + 3 + _WORD
"""Cells of a row without the card's name and its bar."""
_BAR, _LEAST_NAME, _MOST_NAME = 9, 12, 30
_BUSY = 50
"""Percent of use from which a link below its best is worth a word: an idle card saves power there."""
_GRAVE: tuple[Slowdown, ...] = ("hw-thermal", "sw-thermal", "power-brake", "hw-slowdown")
_ORDER: tuple[Slowdown, ...] = (*_GRAVE, "power-cap", "sync-boost", "set-clocks", "display-clocks", "idle")


def state(card: Gauge) -> tuple[str, str]:
    """Return the ink of a card's state and its word in `monitor.state`: what is worst comes first."""
    if card.error is not None:
        return "bad", "lost"
    if card.late:
        return "unknown", "late"
    reason = next((one for one in _ORDER if one in (card.slowed or ())), None)
    if reason is not None:
        return ("catch" if reason in _GRAVE else "info"), reason
    return ("unknown", "unknown") if card.slowed is None else ("good", "free")


def _room(columns: int) -> tuple[int, int]:
    """Return the cells of the name and of the bar."""
    spare = columns - _FIXED
    bar = _BAR if spare >= _LEAST_NAME + _BAR else 0
    name = min(_MOST_NAME, spare - bar)
    return name, (min(30, spare - name) if bar else 0)


def heading(columns: int, say: Say) -> Line:
    """Return the names of the columns."""
    name, bar = _room(columns)

    def right(key: str, cells: int) -> str:
        text = cut(say(phrase(f"monitor.column.{key}")), cells - 1)
        return " " * (cells - width(text)) + text

    words = (
        " " * 5 + pad("GPU", name),
        right("use", bar + 5),
        right("memory", _MEMORY),
        right("heat", _HEAT),
        right("watts", _WATTS),
        right("link", _LINK),
        "  " + say(phrase("monitor.column.state")),
    )
    return (Span("".join(words), "mute"),)


def row(card: Gauge, here: bool, columns: int, say: Say) -> Line:
    """Return the row of one card; what it does not tell is a dash."""
    name, bar = _room(columns)
    ground = "cursor" if here else "page"
    ink, word = state(card)
    figures = "".join(text.rjust(cells) for text, cells in zip(_figures(card), (5, _MEMORY, _HEAT, _WATTS, _LINK), strict=True))
    return (
        Span("› " if here else "  ", "key", ground),
        Span(f"{card.index:>2} {pad(short(card.name), name)}", "strong" if here else "text", ground),
        Span(_bar(card.utilization, bar), "primary", ground),
        Span(figures, "text", ground),
        Span(f" {MARKS[ink]}", ink, ground),
        Span(f" {pad(say(phrase(f'monitor.state.{word}')), _WORD)}", "text", ground),
    )


def short(name: str | None) -> str:
    """Return a card's name without maker and trade names."""
    return measures.short_text(name) if name else "?"


def _bar(percent: int | None, cells: int) -> str:
    """Return a bar in `cells` cells, a blank before it; nothing where there is no room, blanks where nothing is known."""
    if not cells:
        return ""
    room = cells - 1
    if percent is None:
        return " " * cells
    full = round(min(percent, 100) * room / 100)
    return " " + "█" * full + "·" * (room - full)


def _figures(card: Gauge) -> tuple[str, str, str, str, str]:
    """Return use, memory, temperature, power and link."""
    used, total = card.memory_used, card.memory_total
    memory = "-" if used is None or total is None else f"{used / measures.GIB:.1f}/{total / measures.GIB:.0f}"
    watts = "-" if card.watts is None else f"{card.watts:.0f}" + (f"/{card.limit_watts:.0f}" if card.limit_watts else "")
    return (
        "-" if card.utilization is None else f"{card.utilization}%",
        memory,
        "-" if card.temperature is None else f"{card.temperature}C",
        watts,
        link(card.generation, card.width),
    )


def link(generation: int | None, lanes: int | None) -> str:
    """Return a PCIe link, "4×16"; a dash where nothing of it is known."""
    return "-" if generation is None and lanes is None else f"{generation or '?'}×{lanes or '?'}"


# --- one card -------------------------------------------------------------------------------------


def about(card: Gauge, columns: int, say: Say) -> list[Line]:
    """Return what is to be said of one card: its whole name, why it is slow, its clocks, its link."""
    place = (card.address or "").lower().removeprefix("0000")
    title = " · ".join(part for part in (f"GPU {card.index}", card.name, place) if part)
    lines: list[Line] = [(Span(cut(title, columns), "strong"),)]
    for ink, sentence in _sentences(card):
        first, *rest = wrap(say(sentence), columns - 2)
        lines += [(Span(f"{MARKS[ink]} ", ink), Span(first)), *((Span(f"  {line}"),) for line in rest)]
    said = " · ".join(say(one) for one in _measures(card))
    return [*lines, *([(Span(f"  {line}", "mute"),) for line in wrap(said, columns - 2)] if said else [])]


def _sentences(card: Gauge) -> list[tuple[str, Words]]:
    """Return what is wrong or worth knowing, each with its mark."""
    if card.error is not None:
        known = card.error if card.error in (4, 15, 16) else 999
        return [("bad", phrase(f"monitor.gone.{known}", code=card.error))]
    found: list[tuple[str, Words]] = [("unknown", phrase("monitor.about.late"))] if card.late else []
    reasons = [reason for reason in _ORDER if reason in (card.slowed or ())]
    found += [("catch" if reason in _GRAVE else "info", phrase(f"monitor.about.{reason}")) for reason in reasons]
    if not reasons:
        found.append(("unknown", phrase("monitor.about.unknown")) if card.slowed is None else ("good", phrase("monitor.about.free")))
    if (card.utilization or 0) >= _BUSY and _below(card):
        now, best = link(card.generation, card.width), link(card.max_generation, card.max_width)
        found.append(("catch", phrase("monitor.about.link", now=now, best=best)))
    return found


def _below(card: Gauge) -> bool:
    """Whether the link is known to be below what the card can do."""
    pairs = ((card.generation, card.max_generation), (card.width, card.max_width))
    return any(now is not None and best is not None and now < best for now, best in pairs)


def _measures(card: Gauge) -> list[Words]:
    """Return clocks, power state, fan and the best link, as far as they are known."""
    found: list[Words] = []
    if card.mhz is not None:
        found.append(phrase("monitor.measure.clock", now=card.mhz, most=card.max_mhz if card.max_mhz is not None else "?"))
    if card.performance_state is not None:
        found.append(f"P{card.performance_state}")
    if card.fan_percent is not None:
        found.append(phrase("monitor.measure.fan", percent=card.fan_percent))
    if card.max_generation is not None and card.max_width is not None:
        found.append(phrase("monitor.measure.link", best=link(card.max_generation, card.max_width)))
    return found


def loads(card: Gauge, columns: int, rows: int, say: Say) -> list[Line]:
    """Return the processes on a card in at most `rows` rows, the largest first, and how many there are more."""
    found = card.loads
    if rows < 2 or found is None:
        return []
    if not found:
        return [(Span(say(phrase("monitor.process.none")), "mute"),)]
    shown = found if len(found) < rows else found[: rows - 2]
    lines: list[Line] = [(Span(say(phrase("monitor.process.title")), "mute"),), *(_load(one, columns, say) for one in shown)]
    more = len(found) - len(shown)
    return [*lines, (Span("  " + say(phrase("monitor.process.more", count=more)), "mute"),)] if more else lines


def _load(one: Load, columns: int, say: Say) -> Line:
    size = "-" if one.bytes is None else f"{one.bytes / measures.GIB:.1f} GiB"
    name = one.name or say(phrase("monitor.process.unseen"))
    return (Span(cut(f"  {one.pid:>8}  {size:>10}  {pad(say(phrase(f'monitor.process.{one.kind}')), 10)}  {name}", columns)),)


def draw(cards: Sequence[Gauge], cursor: int, columns: int, rows: int, say: Say) -> list[Line]:
    """Return table, the card under the cursor and its processes."""
    most = max(1, min(len(cards), rows - 7))
    first = max(0, min(cursor - most // 2, len(cards) - most))
    lines = [heading(columns, say), *(row(cards[at], at == cursor, columns, say) for at in range(first, first + most))]
    lines += [BLANK, *((Span(" "), *line) for line in about(cards[cursor], columns - 2, say))]
    return [*lines, *((Span(" "), *line) for line in loads(cards[cursor], columns - 2, rows - len(lines), say))][:rows]
