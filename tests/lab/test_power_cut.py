"""The power goes, for real: a machine in QEMU loses what it had not written to its disk, and the run is gone on with or taken back.

The other faults end every process at once, but leave the kernel's memory whole; here only what was synced is there afterwards.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import msgspec
import pytest

from steps.engine.folder import Order
from steps.model.plan import Plan, digest
from tests.lab import repository, shaken, vm
from tests.lab.faults.plan import plan

pytestmark = [pytest.mark.lab, pytest.mark.long]

CUTS = 4
"""So often the power goes on the way there, and so often on the way back."""
_SOURCE = "Types: deb\nURIs: file:/srv/lab\nSuites: /\nSigned-By: /etc/apt/keyrings/lab.gpg\n"
_STOCK = """
apt-get -qq -o APT::Update::Error-Mode=any update
DEBIAN_FRONTEND=noninteractive apt-get -qq -y install lab-driver=1.0 lab-rival </dev/null >/dev/null 2>&1
apt-mark auto lab-rival >/dev/null
echo 'kept = by a person' >/etc/lab-driver-kept.conf
rm -rf /srv/lab/*
"""
_LOOK = """#!/bin/sh
dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\\n' | grep -v ' un *$'
apt-mark showauto | grep lab- || true
find /etc/lab* /usr/lib/lab /usr/share/lab /usr/bin/lab* /var/lib/lab /opt/lab /etc/apt -type f ! -path '/etc/lab/*' -exec sha256sum {} + \
    2>/dev/null | sort -k 2
dpkg --audit
"""
_SEEN = "n=$(grep -c . {0}/journal.jsonl); echo $n $(head -n $n {0}/journal.jsonl | sha256sum | cut -c -16)"


def fit(root: Path) -> None:
    """Give the machine an old driver, and a repository of its own; dpkg syncs there, as on any machine."""
    with tempfile.TemporaryDirectory(prefix="lab-key-", dir="/tmp") as home:
        key = repository.SigningKey(Path(home) / "g")
        try:
            repository.write(root / "srv/lab", shaken.packages(), key, origin="lab", label="lab")
            keys = root / "etc/apt/keyrings"
            keys.mkdir(parents=True, exist_ok=True)
            (keys / "lab.gpg").write_bytes(key.public())
        finally:
            key.stop()
    kept = root / "srv/kept"
    shutil.copytree(root / "srv/lab", kept)
    shutil.rmtree(root / "etc/apt/sources.list.d", ignore_errors=True)
    (root / "etc/apt/sources.list").unlink(missing_ok=True)
    (root / "etc/apt/sources.list.d").mkdir()
    (root / "etc/apt/sources.list.d/lab.sources").write_text(_SOURCE)
    (root / "etc/lab-settings.conf").write_text("setting = old\n")
    subprocess.run(("chroot", str(root), "sh", "-ec", _STOCK), check=True, stdin=subprocess.DEVNULL)
    shutil.rmtree(root / "srv/lab")
    kept.rename(root / "srv/lab")


class Machine:
    """The machine and the run on it."""

    def __init__(self, machine: vm.Vm, made: Plan) -> None:
        self._vm, self._digest = machine, digest(made)
        self.folder = ""

    def looks(self) -> str:
        """Return its packages, marks and files."""
        return self._vm.run("sh /opt/look.sh")

    def launch(self, *words: str) -> None:
        """Start the run, or go on with it."""
        what = ("--run", self.folder.rpartition("/")[2], *words) if self.folder else ("/root/order.json", "--digest", self._digest)
        told = self._vm.run(f"{vm.PYTHON} -I -m steps.engine.runner --launch {' '.join(what)}", 400)
        self.folder = f"/var/lib/bringup/runs/{told.splitlines()[-1]}"

    def begin_anew(self) -> None:
        """Let the next launch be that of a run of its own."""
        self.folder = ""

    def last(self) -> str:
        """Return the last entry of the journal."""
        return self._vm.run(f"tail -n 1 {self.folder}/journal.jsonl")

    def until(self, status: str) -> None:
        """Wait for the run's end, which must be this."""
        said = self._vm.until(f"tail -n 1 {self.folder}/journal.jsonl", '-finished","action":null')
        assert f'"{status}"' in said, said + self._vm.run(f"tail -n 30 {self.folder}/output/*.log")
        self._vm.until(f"pgrep -cf 'steps.engine.runner {self.folder}'", "0")

    def entries(self) -> int:
        """Return how many entries the journal has."""
        return int(self._vm.run(f"grep -c . {self.folder}/journal.jsonl"))

    def cut_at(self, entries: int, seconds: float) -> str:
        """Take the power away so long after so many entries, and return the journal's last one; none that was to be read may be gone."""
        while self.entries() < entries and '-finished","action":null' not in self.last():
            pass
        time.sleep(seconds)
        count, sum_before = self._vm.run(_SEEN.format(self.folder)).split()
        self._vm.cut_power()
        sum_now = self._vm.run(f"head -n {count} {self.folder}/journal.jsonl | sha256sum | cut -c -16")
        assert sum_now == sum_before, f"of {count} entries some are gone"
        # What a cut left of the last line is no entry.
        return self.last()


def test_what_is_lost_with_the_power_is_done_again_and_nothing_that_was_written_down_is_lost(tmp_path: Path) -> None:
    reason = vm.missing()
    if reason is not None:
        pytest.skip(f"no machine here: {reason}")
    made = plan("/")
    files = {"/root/order.json": msgspec.json.encode(Order(plan=made)).decode(), "/opt/look.sh": _LOOK}
    rng = random.Random(5)
    with vm.started(tmp_path, files, fit) as running:
        machine = Machine(running, made)
        before = machine.looks()
        assert "lab-driver 1.0 ii" in before
        began = time.monotonic()
        machine.launch()
        machine.until("done")
        whole, there = time.monotonic() - began, machine.entries()
        after = machine.looks()
        assert "lab-driver 2.0 ii" in after
        machine.launch("--undo")
        machine.until("undone")
        back = machine.entries() - there
        assert machine.looks() == before

        machine.begin_anew()
        machine.launch()
        ends = []
        for entries in sorted(rng.sample(range(2, there), CUTS)):
            ends.append(machine.cut_at(entries, rng.uniform(0, 3)))
            if '"done"' not in ends[-1]:
                machine.launch()
        machine.until("done")
        assert machine.looks() == after
        done = machine.entries()
        machine.launch("--undo")
        for entries in sorted(rng.sample(range(1, back), CUTS)):
            ends.append(machine.cut_at(done + entries, rng.uniform(0, 3)))
            if '"undone"' not in ends[-1]:
                machine.launch("--undo")
        machine.until("undone")
        assert machine.looks() == before
        print(f"{whole:.0f} s unharmed, {there} entries, {back} for the way back;", *(end[:160] for end in ends), sep="\n")
