"""systemd as process 1, for real: the transient unit outlives its session, and after a real reboot the run goes on by itself."""

from __future__ import annotations

import json
import time
from pathlib import Path

import msgspec
import pytest

from steps.engine.folder import Order
from steps.model.action import Reboot, Run
from steps.model.plan import Plan, Target, digest
from steps.model.profile import Profile
from tests.lab import vm

pytestmark = [pytest.mark.lab, pytest.mark.long]


def plan() -> Plan:
    noted = ("sh", "-c", "sleep 60; cat /proc/sys/kernel/random/boot_id > /root/before")
    after = ("sh", "-c", "cat /proc/sys/kernel/random/boot_id > /root/after; usermod --append --groups video ana")
    return Plan(
        made=time.time(),
        target=Target(),
        profile=Profile(),
        actions=(
            Run(id="a.before", title="Work", argv=noted),
            Reboot(id="a.reboot", title="Reboot", reason="because"),
            Run(id="a.after", title="More work", argv=after),
        ),
    )


@pytest.fixture
def made() -> Plan:
    reason = vm.missing()
    if reason is not None:
        pytest.skip(f"no machine here: {reason}")
    return plan()


def order(made: Plan) -> dict[str, str]:
    return {"/root/order.json": msgspec.json.encode(Order(plan=made)).decode()}


def launch(made: Plan) -> str:
    return f"sudo {vm.PYTHON} -I -m steps.engine.runner --launch /root/order.json --digest {digest(made)}"


def looks_like_a_unit(machine: vm.Vm, id: str) -> None:
    unit = machine.run(f"systemctl show bringup-{id} -p Description -p KillMode -p ActiveState -p ControlGroup")
    assert f"Description=bringup run {id}" in unit
    assert "KillMode=process" in unit
    assert "ActiveState=active" in unit
    assert f"ControlGroup=/system.slice/bringup-{id}.service" in unit


def test_after_a_real_reboot_the_run_goes_on_by_itself_and_its_unit_is_gone(made: Plan, tmp_path: Path) -> None:
    with vm.started(tmp_path, order(made)) as machine:
        # As ana would: sudo names her, and the run is hers.
        id = machine.run(f"SUDO_UID=1000 {launch(made).removeprefix('sudo ')}", 400).splitlines()[-1]
        folder, resume = f"/var/lib/bringup/runs/{id}", f"bringup-resume-{id}.service"
        looks_like_a_unit(machine, id)
        machine.until(f"tail -n 1 {folder}/journal.jsonl", '"reboot"')
        assert machine.run(f"systemctl is-enabled {resume}") == "enabled"
        before = machine.run("cat /root/before")
        machine.reboot()
        machine.await_login()
        machine.until(f"tail -n 1 {folder}/journal.jsonl", '"run-finished"')
        boots = [json.loads(line) for line in machine.run(f"grep run-started {folder}/journal.jsonl").splitlines()]
        assert [boot["data"]["boot_id"] for boot in boots] == [before, machine.run("cat /root/after")]
        assert before != machine.run("cat /root/after")
        # ana is in a new group, which counts from her next login on.
        assert '"exit":11' in machine.run(f"tail -n 1 {folder}/journal.jsonl")
        assert "came up]" in machine.run(f"cat {folder}/output/a.reboot.log")
        assert machine.run("find /etc/systemd/system -name 'bringup*'") == ""


def test_a_run_outlives_a_session_that_logind_clears_away(made: Plan, tmp_path: Path) -> None:
    script = (
        f"setsid sleep 4321 >/dev/null 2>&1 </dev/null &\n{launch(made)} > /tmp/id 2>&1\ncp /tmp/id /tmp/started\n"
        "while [ ! -e /tmp/leave ]; do sleep 1; done\n"
    )
    files = {**order(made), "/opt/ana.sh": script, "/etc/systemd/logind.conf.d/kill.conf": "[Login]\nKillUserProcesses=yes\n"}
    with vm.started(tmp_path, files) as machine:
        machine.as_ana("/opt/ana.sh")
        id = machine.until("cat /tmp/started", "-").splitlines()[-1]
        assert " ana" in machine.run("loginctl --no-legend list-sessions")
        assert "sleep 4321" in machine.run("pgrep -af 'sleep 4321'")
        looks_like_a_unit(machine, id)
        machine.run("touch /tmp/leave")
        machine.until("pgrep -cf 'sleep 4321'", "0")
        machine.until(f"tail -n 1 /var/lib/bringup/runs/{id}/journal.jsonl", '"reboot"')
