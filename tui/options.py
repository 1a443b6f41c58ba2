"""The command line: which verbs there are, and what each takes."""

from __future__ import annotations

import argparse
from typing import Any

VERBS: dict[str, str] = {
    "wizard": "the wizard; as numbered lines without a terminal or with --plain",
    "detect": "hardware, firmware, system, driver and toolchain facts",
    "check": "every finding for this machine and these choices",
    "recommend": "the complete set of choices we recommend, or the conflict that forbids it",
    "plan": "the ordered actions; nothing is changed",
    "apply": "run the plan (it outlives this terminal) and follow it",
    "attach": "back to a running or finished run",
    "resume": "go on after a reboot, a crash or a repaired failure",
    "undo": "take a run back, newest action first",
    "runs": "the runs of this machine and how each ended",
    "verify": "prove the result: driver, CUDA, cuDNN, NCCL, frameworks, DDP, AMP",
    "doctor": "name what is broken (not part of this version)",
    "capture": "record this machine into a file, redacted",
    "knowledge": "what is known, how old, from where",
    "report": "one redacted file to hand on (not part of this version)",
}


def parser() -> argparse.ArgumentParser:
    """Return the parser; common options stand before or after the verb."""
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--machine", metavar="FILE", help="use this capture instead of the machine; installs are rehearsed")
    common.add_argument("--root", metavar="DIR", help="change the system below DIR instead of the running one")
    common.add_argument("--profile", metavar="FILE", help="the answers, as the wizard's review screen saves them")
    common.add_argument("--json", action="store_true", help="one JSON document on stdout and nothing else there")
    common.add_argument("--plain", action="store_true", help="numbered lines instead of screens")
    common.add_argument("--lang", choices=("en", "zh_CN"), help="language of the words")
    common.add_argument("--no-color", action="store_true", help="no colours; marks and words say everything")
    common.add_argument("--low-bandwidth", action="store_true", help="few frames, closed log")
    common.add_argument("--offline", action="store_true", help="ask no network what is on offer; what only it can confirm stays unverified")
    common.add_argument("-y", "--yes", action="store_true", help="start without asking")
    common.add_argument("-v", "--verbose", action="store_true", help="say more; with a fault of ours, where it happened")
    top = argparse.ArgumentParser(
        prog="bringup", parents=[common], description="From a bare Linux machine to a proven deep-learning stack."
    )
    top.add_argument("--version", action="store_true", help="print the version")
    verbs = top.add_subparsers(dest="verb", metavar="VERB")
    added = {name: verbs.add_parser(name, parents=[common], help=text, description=text) for name, text in VERBS.items()}
    added["recommend"].add_argument(
        "--want", action="append", default=[], metavar="SPEC", help="torch, torch==2.7.*, cuda==12.8, driver==570, python==3.11 …"
    )
    added["plan"].add_argument("--format", default="text", choices=("text", "json", "sh", "ansible", "cloud-init", "dockerfile"))
    added["apply"].add_argument("--detach", action="store_true", help="start it and leave")
    added["apply"].add_argument("--without-root", action="store_true", help="do only what needs no root")
    for name in ("attach", "resume", "undo"):
        added[name].add_argument("run", nargs="?", metavar="RUN", help="the run's id; the newest when left out")
    added["verify"].add_argument("--of-run", action="store_true", help=argparse.SUPPRESS)
    added["capture"].add_argument("file", metavar="FILE")
    added["knowledge"].add_argument("update", nargs="?", choices=("update",), help="read the indexes anew; the changes are shown first")
    added["doctor"].add_argument("--log", action="append", default=[], metavar="FILE")
    added["report"].add_argument("--html", metavar="FILE")
    return top


def parsed(argv: list[str]) -> dict[str, Any]:
    """Return the options by name; what was not said is absent. Exits with 2 for wrong usage."""
    return vars(parser().parse_args(argv))
