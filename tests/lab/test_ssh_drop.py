"""The connection is killed in the middle of a build: the build goes on, and a second login shows the same screen and all output."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path

import pytest

from steps.engine import client
from tests.engine_kit import ended, output
from tests.lab import sshd
from tests.ui.screen import Terminal

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]
LINES = 1000
WIZARD = """
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from steps.engine import client
from steps.model.action import Run
from tests.engine_kit import plan_of
from tests.ui.made_up import MadeUp
from tui.app import BringupApp
from tui.screens.run import RunScreen

class House(MadeUp):
    def start(self, plan, sudo):
        build = Run(id="driver.install", title="Driver 580 open, module by DKMS", argv=("sh", "-c", {build!r}), quiet_seconds=60)
        return client.start(plan_of(Run(id="a.first", title="Kernel headers", argv=("true",)), build), sudo=None)

    def watch(self, handle):
        return RunScreen(handle)

sys.exit(BringupApp(House(Path({folder!r})), probe=True, over_ssh=True).ran())
"""
COMMAND = """
import sys
sys.path.insert(0, {root!r})
sys.argv[1:] = ["attach"]
from tui.__main__ import main
main()
"""
BUILD = f"""
for number in $(seq 1 {LINES}); do
    echo "  CC [M]  /var/lib/dkms/nvidia/580.95.05/build/nvidia-$number.o"
    [ $((number % 10)) != 0 ] || sleep 0.05
done
echo "DKMS: install completed."
"""


def on_the_server(source: str, state: Path, **names: str) -> str:
    """Return the command that a login runs."""
    words = ("env", f"BRINGUP_STATE={state}", "TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8")
    return shlex.join((*words, sys.executable, "-I", "-c", source.format(root=str(ROOT), **names)))


def list_of(terminal: Terminal) -> list[str]:
    """Return the rows of the actions, without their times."""
    return [row[:45].rstrip() for row in terminal.text().splitlines() if "Kernel headers" in row or "module by DKMS  " in row]


def test_a_killed_connection_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reason = sshd.missing() or sshd.unpacked(tmp_path)
    if reason is not None:
        pytest.skip(f"no SSH server here: {reason}")
    state = tmp_path / "state"
    state.mkdir()
    monkeypatch.setenv("BRINGUP_STATE", str(state))
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "xterm-256color"}
    with sshd.server(tmp_path) as server:
        with server.login(on_the_server(WIZARD, state, folder=str(tmp_path), build=BUILD), environ) as first:
            first.until("580 open")
            first.press("enter")
            first.until("Start the installation")
            first.press("enter")
            first.until("running", "CC [M]", "following")
            handle = client.find(None)
            there, before = server.drop(), handle.spool("driver.install").size()
            assert len(there) >= 2
            assert first.ended() == 255
        rows = list_of(first)
        with server.login(on_the_server(COMMAND, state), environ) as second:
            second.until("Nothing was lost", "CC [M]", "following")
            assert list_of(second) == rows
            assert handle.alive()
            assert handle.spool("driver.install").size() > before
            second.until("DKMS: install completed.", "2 of 2 done")
            assert ended(handle).status == "done"
            second.press("home")
            second.until("nvidia-1.o")
            second.press("q")
            assert second.ended() == 0
        lines = [line for line in output(handle, "driver.install").splitlines() if line.startswith("  CC [M]")]
        assert lines == [f"  CC [M]  /var/lib/dkms/nvidia/580.95.05/build/nvidia-{number}.o" for number in range(1, LINES + 1)]
        deadline = time.monotonic() + 5
        while any(Path(f"/proc/{pid}").exists() for pid in there) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not [pid for pid in there if Path(f"/proc/{pid}").exists()]
