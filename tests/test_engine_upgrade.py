"""A run that outlives the program that started it: what was at hand at the start is used to the end, and another version attaches."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

from steps.engine import client
from steps.engine.folder import Order
from steps.model.action import RemovePath, Run, Write
from steps.model.plan import digest, digest_of, encode
from tests.engine_kit import ended, plan_of, stand_in, statuses

CHECKOUT = Path(__file__).resolve().parents[1]
_MAIN = "import sys\nfrom steps.engine.runner import main\nsys.exit(main(sys.argv[2:]))\n"


def test_an_upgrade_in_the_middle_of_a_run_does_not_reach_it(state: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(CHECKOUT / "steps", old / "steps", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(CHECKOUT / "assets", old / "assets")
    (old / "__main__.py").write_text(_MAIN)
    made = tmp_path / "made"
    plan = plan_of(
        Run(id="a.slow", title="t", argv=stand_in("works", 2, 2.0), undo=(RemovePath(path=str(made)),)),
        Write(id="b.file", title="t", path=str(tmp_path / "deep" / "file"), text="x\n"),
        Run(id="c.fails", title="t", argv=("no-such-program",), optional=True),
        Run(id="verify", title="t", lane="proof", argv=("true",)),
    )
    order = tmp_path / "order"
    order.write_bytes(msgspec.json.encode(Order(plan=plan)))
    argv = (sys.executable, "-I", "-B", str(old), "--runner", "--launch", str(order), "--digest", digest(plan), "--json")
    id = subprocess.run(argv, capture_output=True, text=True, check=True, env=os.environ).stdout.strip()
    handle = client.find(id)
    for file in (*old.rglob("*.py"), *old.rglob("*.toml"), *old.rglob("*.tsv")):
        file.write_text("this is of another version\n")
    end = ended(client.find(id))
    assert (end.status, statuses(end)) == ("done", {"a.slow": "done", "b.file": "done", "c.fails": "failed", "verify": "done"})
    assert Path(handle.folder, "runner.err").read_text() == ""
    # This is the other version: it takes the run back.
    handle.undo()
    assert ended(handle).status == "undone"
    assert not (tmp_path / "deep").exists()


def test_the_digest_of_a_plan_is_its_files_whatever_fields_our_records_have() -> None:
    plan = plan_of(Write(id="a.one", title="t", path="/x", text="x"))
    data = encode(plan)
    assert digest_of(data) == digest(plan)
    older = msgspec.json.decode(data)
    del older["actions"][0]["mode"]
    file = msgspec.json.format(msgspec.json.encode(older), indent=2)
    assert digest_of(file) == digest_of(msgspec.json.encode(older)) != digest(plan)
