"""The proof's figures as bars: which are drawn, how long, and where the mark stands; in lines, in the report, on the screen."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from steps import lines, plot
from steps.model.verdict import Rung
from steps.report import drawing

SLOW = Rung(id="bandwidth", state="failed", value=240.0, unit="GB/s", expected=360.0)
VERDICT = (
    Rung(id="device-nodes", state="passed", value=2.0, unit="GPUs"),
    Rung(id="cudnn-conv", state="passed", value=0.0001, unit="difference"),
    Rung(id="speed", state="passed", value=4.0, unit="×"),
    Rung(id="peers", state="passed", value=120.0, unit="GB/s"),
    SLOW,
    Rung(id="burn", state="passed", value=61.3, unit="TFLOPS"),
    Rung(id="ddp", state="skipped"),
)


def test_figures_that_can_be_compared_have_bars_and_counts_have_none() -> None:
    found = {bar.rung: (round(bar.share, 2), None if bar.mark is None else round(bar.mark, 2), bar.failed) for bar in plot.bars(VERDICT)}
    assert found == {"speed": (1.0, 0.25, False), "peers": (0.33, None, False), "bandwidth": (0.67, 1.0, True)}


def test_a_figure_alone_says_nothing_as_a_bar() -> None:
    assert plot.bars((Rung(id="burn", state="passed", value=61.3, unit="TFLOPS"),)) == ()
    assert (
        plot.bars((Rung(id="peers", state="passed", value=0.0, unit="GB/s"), Rung(id="bandwidth", state="passed", value=0.0, unit="GB/s")))
        == ()
    )


@pytest.mark.parametrize(
    ("share", "mark", "shown"),
    [
        (1.0, None, "██████████"),
        (0.5, None, "█████·····"),
        (0.0001, None, "█·········"),
        (0.5, 1.0, "█████····│"),
        (1.0, 0.25, "█│████████"),
        (1.0, 0.0, "│█████████"),
    ],
)
def test_a_bar_keeps_its_width_and_shows_its_mark(share: float, mark: float | None, shown: str) -> None:
    assert plot.drawn(plot.Bar(rung="x", value=1.0, unit="GB/s", share=share, mark=mark), 10) == shown


def test_figures_are_said_with_the_digits_that_matter() -> None:
    said = [
        plot.figure(plot.Bar(rung="x", value=value, unit=unit, share=1.0))
        for value, unit in ((2.149, "×"), (432.4, "GB/s"), (9.61, "GB/s"))
    ]
    assert said == ["2.15×", "432 GB/s", "9.61 GB/s"]


def test_the_lines_of_the_proof_hold_the_bars() -> None:
    text = "\n".join(lines.verdict(VERDICT, "en"))
    assert "All-reduce                ████████████████████·········│  240 GB/s" in text
    assert "61.3 TFLOPS" in text


def test_a_loss_has_no_bar_and_its_figure_is_said_once_and_short() -> None:
    rungs = (
        Rung(id="ddp", state="passed", value=0.08782346546649933, unit="loss", expected=0.1634817838668823, detail="3 ranks"),
        Rung(id="amp", state="passed", value=0.0612345678, unit="loss", expected=0.16),
        Rung(id="accumulation", state="passed", value=1.49011612e-08, unit="difference", because="They differ by 1.5e-08."),
        Rung(id="numpy", state="passed", detail="2.4.6"),
    )
    assert plot.bars(rungs) == ()
    text = list(lines.verdict(rungs, "en"))
    assert [line.split()[1:] for line in text[:4]] == [
        ["DDP", "3", "ranks"],
        ["AMP", "0.0612", "loss"],
        ["Accumulation", "They", "differ", "by", "1.5e-08."],
        ["numpy", "2.4.6"],
    ]


def test_the_drawing_is_well_formed_and_as_long_as_the_figures() -> None:
    bars = plot.bars(VERDICT)
    root = ET.fromstring(drawing.plot(bars, ["a & b", "<c>", "d"]))  # noqa: S314 - our own drawing
    space = "{http://www.w3.org/2000/svg}"
    widths = [float(one.attrib["width"]) for one in root.findall(f"{space}rect")]
    assert [round(width / max(widths), 2) for width in widths] == [1.0, 0.33, 0.67]
    assert [one.attrib["class"] for one in root.findall(f"{space}rect")] == ["bar passed", "bar passed", "bar failed"]
    assert len(root.findall(f"{space}line")) == 2
    assert [one.text for one in root.findall(f"{space}text")] == ["a & b", "4×", "<c>", "120 GB/s", "d", "240 GB/s"]
