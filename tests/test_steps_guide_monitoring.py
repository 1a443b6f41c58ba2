"""The monitoring step: what can be had is installed honestly, what cannot says why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steps import monitoring, planning
from steps.catalog import guide
from steps.compat import driver_packages
from steps.compat.case import Case
from steps.host import docker_runtime, persistence
from steps.model.action import Command, Packages, RemovePath, Run, Service, Succeeds, Write
from steps.model.choice import Option
from steps.model.hardware import Accelerator
from steps.model.machine import Machine
from steps.model.plan import Installer, Target
from steps.model.profile import ContainerAnswers, MonitoringAnswers, Profile, ToolkitAnswers, answered
from steps.model.software import Driver, Os, Package
from steps.text import Language, say, say_finding

UBUNTU = Machine(
    os=Os(id="ubuntu", version="24.04", init="systemd", arch="x86_64", container="none", wsl=False),
    accelerators=(Accelerator(vendor="nvidia", name="NVIDIA GeForce RTX 4090"),),
    driver=Driver(
        state="working", kernel_version="580.95.05", packages=(Package(name="nvidia-driver-580-open", version="580.95.05-0ubuntu1"),)
    ),
)
ALL = Profile(
    monitoring=MonitoringAnswers(dcgm_exporter=True, glances=True, nvitop=True, persistence=True),
    containers=ContainerAnswers(docker=True, nvidia_container_toolkit=True),
)
WITH_UV = Target(installer=Installer(uv="/usr/bin/uv", home="/home/ana", find_links=("/srv/wheels",)))
WITHOUT_UV = Target(installer=Installer(pythons={"3.9": "/usr/bin/python3.9", "3.12": "/usr/bin/python3.12"}, home="/home/ana"))


def options(machine: Machine, profile: Profile | None = None) -> dict[str, Option]:
    return {option.value: option for choice in monitoring.choices(machine, profile or Profile()) for option in choice.options}


def test_nothing_is_installed_unasked() -> None:
    assert monitoring.actions(UBUNTU, Profile(), WITH_UV) == ()


def test_each_tool_that_can_be_had_becomes_actions() -> None:
    actions = {action.id: action for action in monitoring.actions(UBUNTU, ALL, WITH_UV)}
    nvitop, awake = actions["monitoring.nvitop"], actions["monitoring.persistence"]
    docker, toolkit = actions["monitoring.docker"], actions["monitoring.container-toolkit"]
    assert isinstance(nvitop, Run)
    assert (nvitop.by, nvitop.lane, nvitop.argv) == (
        "user",
        "python",
        ("/usr/bin/uv", "tool", "install", "--find-links", "/srv/wheels", "nvitop"),
    )
    assert isinstance(awake, Run)
    assert (awake.argv, awake.by) == (("systemctl", "restart", "nvidia-persistenced.service"), "root")
    assert isinstance(docker, Packages)
    assert (docker.manager, docker.install) == ("apt", ("docker.io",))
    assert isinstance(toolkit, Packages)
    assert toolkit.install == ("nvidia-container-toolkit",)


def test_nvidias_repository_is_added_for_the_container_toolkit_unless_another_step_adds_it() -> None:
    wanted = Profile(containers=ContainerAnswers(nvidia_container_toolkit=True))
    assert "repository.source" in {action.id for action in monitoring.actions(UBUNTU, wanted, WITH_UV)}
    with_toolkit = msgspec.structs.replace(wanted, toolkit=ToolkitAnswers(cuda="12.8"))
    assert "repository.source" not in {action.id for action in monitoring.actions(UBUNTU, with_toolkit, WITH_UV)}


AWAKE = Profile(monitoring=MonitoringAnswers(persistence=True))


def test_on_ubuntu_the_daemon_is_told_to_keep_the_driver_awake_and_undo_leaves_its_unit_as_it_was() -> None:
    before, file, reload, restart = monitoring.actions(UBUNTU, AWAKE, WITH_UV)
    assert isinstance(file, Write)
    assert file.path == "/etc/systemd/system/nvidia-persistenced.service.d/bringup.conf"
    lines = (file.text or "").split()
    assert "StopWhenUnneeded=no" in lines
    assert lines.index("ExecStart=") < lines.index("ExecStart=/usr/bin/nvidia-persistenced")
    assert "--persistence-mode" in lines
    assert "--no-persistence-mode" not in lines
    assert isinstance(before, Run)
    assert next(step.argv for step in before.undo if isinstance(step, Command)) == ("systemctl", "daemon-reload")
    assert isinstance(reload, Run)
    assert isinstance(restart, Run)
    # Done is what the driver says, not that a command ended well.
    assert any(isinstance(probe, Succeeds) and probe.argv[-1] == "steps.host.persistence" for probe in restart.done_when)


def test_elsewhere_the_units_own_mode_counts_and_is_asked_for() -> None:
    red = msgspec.structs.replace(
        UBUNTU,
        os=Os(id="rocky", version="9.4", init="systemd", arch="x86_64", container="none", wsl=False),
        driver=Driver(state="working", kernel_version="580.95.05", packages=(Package(name="nvidia-driver", version="3:580.95.05-1.el9"),)),
    )
    (unit,) = monitoring.actions(red, AWAKE, WITH_UV)
    assert isinstance(unit, Service)
    assert len(unit.done_when) == 2


def test_a_driver_that_is_still_to_come_is_not_asked_and_a_mounted_system_gets_the_file_only() -> None:
    planned = answered(AWAKE, {"driver.branch": "580", "driver.flavor": "open", "driver.source": "distro"})
    *_, last = monitoring.actions(UBUNTU, planned, WITH_UV)
    assert isinstance(last, Run)
    assert (last.argv[1], last.done_when) == ("try-restart", ())
    from_nvidia = answered(planned, {"driver.source": "nvidia-repo"})
    (unit,) = (one for one in monitoring.actions(UBUNTU, from_nvidia, WITH_UV) if one.id == "monitoring.persistence")
    assert isinstance(unit, Service)
    (file,) = monitoring.actions(UBUNTU, AWAKE, msgspec.structs.replace(WITH_UV, root="/mnt"))
    assert isinstance(file, Write)


@pytest.mark.parametrize(
    ("told", "awake"), [("Enabled\nEnabled\n", True), ("Enabled\nDisabled\n", False), ("", False), ("No devices were found\n", False)]
)
def test_the_driver_is_awake_only_when_every_card_says_so(told: str, awake: bool) -> None:
    assert persistence.awake(told) is awake


@pytest.mark.parametrize(
    ("docker", "way"),
    [
        ("20.10.24", "--gpus all"),
        ("28.1.1", "--gpus all"),
        ("28.2.2", "--device nvidia.com/gpu=all"),
        ("29.0.0", "--device nvidia.com/gpu=all"),
        (None, "--gpus all"),
    ],
)
def test_the_shown_command_is_one_that_this_docker_understands(docker: str | None, way: str) -> None:
    here = msgspec.structs.replace(UBUNTU, tools={"docker": docker})
    shown = [note.text for note in options(here)["container-toolkit"].notes if note.label == "leads-to"]
    assert shown == [f"$ docker run --rm {way} ubuntu nvidia-smi -L"]


def test_two_tools_of_nvidias_repository_make_one_plan_in_which_it_is_added_once() -> None:
    plan = planning.make_plan(UBUNTU, ALL, WITH_UV, 0.0)
    ids = [action.id for action in plan.actions]
    assert len(ids) == len(set(ids))
    assert ids.index("repository.source") < ids.index("monitoring.dcgm-exporter") < ids.index("monitoring.container-toolkit")


def test_a_plan_is_refused_where_two_of_its_actions_would_have_one_id(monkeypatch: pytest.MonkeyPatch) -> None:
    # A step with this fault is not there any more, so one is made.
    twice = (Service(id="monitoring.x", title="t", unit="x.service"),) * 2
    monkeypatch.setattr(monitoring, "actions", lambda *_: twice)
    with pytest.raises(ValueError, match=r"two actions of one id: monitoring\.x$"):
        planning.make_plan(UBUNTU, ALL, WITH_UV, 0.0)


def test_the_exporter_is_the_one_for_the_cuda_of_the_driver_and_its_unit_is_enabled() -> None:
    wanted = Profile(monitoring=MonitoringAnswers(dcgm_exporter=True))
    packages, service = monitoring.actions(UBUNTU, wanted, WITH_UV)[-2:]
    assert isinstance(packages, Packages)
    assert packages.install == ("datacenter-gpu-manager-4-cuda13", "datacenter-gpu-manager-exporter")
    assert isinstance(service, Service)
    assert (service.unit, service.lane) == ("nvidia-dcgm-exporter.service", packages.lane)
    older = answered(wanted, {"driver.branch": "570", "driver.flavor": "open", "driver.source": "distro"})
    names = [action.install for action in monitoring.actions(UBUNTU, older, WITH_UV) if isinstance(action, Packages)]
    assert names[-1] == ("datacenter-gpu-manager-4-cuda12", "datacenter-gpu-manager-exporter")
    mounted = msgspec.structs.replace(WITH_UV, root="/mnt")
    assert not any(isinstance(action, Service) for action in monitoring.actions(UBUNTU, wanted, mounted))


def test_the_exporter_shows_where_prometheus_finds_it_and_that_its_port_is_open() -> None:
    option = options(UBUNTU)["dcgm-exporter"]
    assert (option.mark, say("en", option.tag)) == ("good", "works")
    assert [note.text for note in option.notes if note.label == "file"][-1] == "      - targets: ['localhost:9400']"
    assert any("9400" in say("en", note.text) for note in option.notes if note.label == "trap")


def test_without_a_driver_nobody_knows_which_exporter_fits() -> None:
    bare = msgspec.structs.replace(UBUNTU, driver=Driver(state="absent"))
    option = options(bare)["dcgm-exporter"]
    assert [finding.code for finding in option.findings] == ["monitoring-needs-driver"]
    assert monitoring.actions(bare, Profile(monitoring=MonitoringAnswers(dcgm_exporter=True)), WITH_UV) == ()


TOOLKIT = Profile(containers=ContainerAnswers(nvidia_container_toolkit=True))


def container_ids(machine: Machine, target: Target = WITH_UV, answers: Profile = TOOLKIT) -> list[str]:
    return [action.id for action in monitoring.actions(machine, answers, target) if action.id.startswith("monitoring.")]


def test_the_container_toolkit_sets_up_docker_where_there_is_one_and_describes_the_gpus_where_the_driver_runs() -> None:
    described = ["monitoring.container-toolkit", "monitoring.cdi-refresh", "monitoring.cdi"]
    assert container_ids(UBUNTU) == described
    docker = msgspec.structs.replace(UBUNTU, tools={"docker": "28.1"})
    runtime = ["monitoring.docker-runtime", "monitoring.docker-reload"]
    assert container_ids(docker) == [described[0], *runtime, *described[1:]]
    assert set(runtime) <= set(container_ids(UBUNTU, answers=ALL))
    down = msgspec.structs.replace(docker, driver=msgspec.structs.replace(UBUNTU.driver, state="not-loaded"))
    assert container_ids(down) == [described[0], *runtime, "monitoring.cdi-refresh"]
    assert container_ids(docker, msgspec.structs.replace(WITH_UV, root="/mnt")) == described[:1]


def test_every_container_action_is_undone_and_known_to_be_done() -> None:
    docker = msgspec.structs.replace(UBUNTU, tools={"docker": "28.1"})
    runs = {action.id: action for action in monitoring.actions(docker, TOOLKIT, WITH_UV) if isinstance(action, Run)}
    runtime, described = runs["monitoring.docker-runtime"], runs["monitoring.cdi"]
    assert runtime.argv == ("nvidia-ctk", "runtime", "configure", "--runtime=docker", "--config=/etc/docker/daemon.json")
    assert runtime.undo[0] == RemovePath(path="/etc/docker/daemon.json")
    assert [step.argv[-1] for step in runtime.undo if isinstance(step, Command)] == ["/etc/docker/daemon.json", "docker.service"]
    assert described.argv[-1] == "--output=/var/run/cdi/nvidia.yaml"
    assert described.undo == (RemovePath(path="/var/run/cdi/nvidia.yaml"),)
    assert runtime.done_when
    assert described.done_when


def test_why_a_container_loses_its_gpus_stands_beside_the_toolkit() -> None:
    said = " ".join(say("en", note.text) for note in options(UBUNTU)["container-toolkit"].notes if note.label == "trap")
    assert "systemctl daemon-reload" in said
    assert "podman run --device nvidia.com/gpu=all" in said


NVIDIA = {"args": [], "path": "nvidia-container-runtime"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"runtimes": {"nvidia": NVIDIA}}, {}),
        (
            {"runtimes": {"nvidia": NVIDIA, "runsc": {"path": "runsc"}}, "mtu": 1400},
            {"mtu": 1400, "runtimes": {"runsc": {"path": "runsc"}}},
        ),
        ({"runtimes": {"nvidia": NVIDIA}, "default-runtime": "nvidia"}, {}),
        ({"default-runtime": "runsc", "runtimes": {"nvidia": NVIDIA}}, {"default-runtime": "runsc"}),
        ({"mtu": 1400}, {"mtu": 1400}),
    ],
)
def test_taking_nvidias_runtime_out_leaves_everything_else(tmp_path: Path, before: Any, after: Any) -> None:
    file = tmp_path / "daemon.json"
    file.write_text(json.dumps(before), encoding="utf-8")
    file.chmod(0o600)
    assert docker_runtime.main(str(file)) == 0
    assert json.loads(file.read_text(encoding="utf-8")) == after
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["daemon.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"runtimes": []}'])
def test_a_configuration_that_cannot_be_read_is_left_alone(tmp_path: Path, text: str) -> None:
    file = tmp_path / "daemon.json"
    assert docker_runtime.main(str(file)) == 0
    file.write_text(text, encoding="utf-8")
    assert docker_runtime.main(str(file)) == 0
    assert file.read_text(encoding="utf-8") == text


def test_without_uv_a_tool_gets_an_environment_of_the_newest_python() -> None:
    first, second = monitoring.actions(UBUNTU, Profile(monitoring=MonitoringAnswers(glances=True)), WITHOUT_UV)
    assert isinstance(first, Run)
    assert isinstance(second, Run)
    assert first.argv == ("/usr/bin/python3.12", "-I", "-m", "venv", "/home/ana/.local/share/bringup/tools/glances")
    assert second.argv[0] == "/home/ana/.local/share/bringup/tools/glances/bin/python"
    assert second.argv[-1] == "glances[gpu]"
    assert second.needs == (first.id,)


@pytest.mark.parametrize(
    ("machine", "tool", "mark", "tag"),
    [
        (UBUNTU, "nvitop", "good", "works"),
        (UBUNTU, "dcgm-exporter", "good", "works"),
        (msgspec.structs.replace(UBUNTU, driver=Driver(state="absent")), "dcgm-exporter", "unknown", "no driver"),
        (msgspec.structs.replace(UBUNTU, accelerators=()), "nvitop", "bad", "no GPU"),
        (msgspec.structs.replace(UBUNTU, accelerators=()), "glances", "good", "works"),
        (msgspec.structs.replace(UBUNTU, os=Os(id="ubuntu", version="24.04", wsl=True)), "persistence", "bad", "no systemd"),
        (msgspec.structs.replace(UBUNTU, os=Os(id="ubuntu", version="24.04", init="runit")), "persistence", "bad", "no systemd"),
        (msgspec.structs.replace(UBUNTU, os=Os(id="slackware", version="15.0")), "docker", "unknown", "not offered"),
        (msgspec.structs.replace(UBUNTU, tools={"docker": "27.1"}), "docker", "good", "installed"),
    ],
)
def test_what_cannot_be_had_says_why(machine: Machine, tool: str, mark: str, tag: str) -> None:
    option = options(machine)[tool]
    assert (option.mark, say("en", option.tag)) == (mark, tag)


def test_a_tick_is_taken_back_by_the_same_row() -> None:
    ticked = answered(Profile(), options(UBUNTU)["docker"].patch)
    assert ticked == Profile(containers=ContainerAnswers(docker=True))
    assert answered(ticked, options(UBUNTU, ticked)["docker"].patch) == Profile()


def test_what_was_asked_for_in_vain_is_found_and_its_fix_takes_it_out() -> None:
    slackware = msgspec.structs.replace(UBUNTU, os=Os(id="slackware", version="15.0", init="systemd"))
    (finding,) = monitoring.check(slackware, Profile(monitoring=MonitoringAnswers(dcgm_exporter=True)))
    assert (finding.code, finding.severity, finding.fix) == ("monitoring-no-package", "info", {"monitoring.dcgm_exporter": None})


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_all_words_are_there(language: Language) -> None:
    bare = Machine(os=Os(id="slackware", wsl=True))
    for machine in (UBUNTU, bare):
        for option in options(machine, ALL).values():
            for words in (option.tag, *option.sentences):
                assert "monitoring" not in say(language, words)
            for finding in option.findings:
                assert "{" not in say_finding(language, finding, "sentence") + say_finding(language, finding, "remedy")
    assert len(guide.tools()) == 6


def switched(state: str | None) -> Machine:
    driver = msgspec.structs.replace(UBUNTU.driver, fabric_manager=state)
    return msgspec.structs.replace(UBUNTU, nvswitches=("0000:83:00.0", "0000:84:00.0"), driver=driver)


def test_a_fabric_manager_that_is_down_is_said_on_machines_with_nvswitches_only() -> None:
    (finding,) = monitoring.check(switched("inactive"), Profile())
    assert (finding.code, finding.severity) == ("fabric-manager-not-running", "warning")
    assert "nvidia-fabricmanager-580 of version 580.95.05" in say_finding("en", finding, "remedy")
    assert monitoring.check(switched("active"), Profile()) == ()
    assert monitoring.check(switched(None), Profile()) == ()
    assert monitoring.check(msgspec.structs.replace(switched("failed"), nvswitches=()), Profile()) == ()
    planned = answered(Profile(), {"driver.branch": "570", "driver.flavor": "open", "driver.source": "distro"})
    assert monitoring.check(switched("failed"), planned) == ()


@pytest.mark.parametrize(("version", "package"), [("580.95.05", "nvidia-fabricmanager"), ("570.172.08", "nvidia-fabric-manager")])
def test_the_fabric_manager_is_named_as_the_packages_here_call_it(version: str, package: str) -> None:
    here = switched("inactive")
    rocky = msgspec.structs.replace(
        here, os=Os(id="rocky", version="9.4"), driver=msgspec.structs.replace(here.driver, kernel_version=version, packages=())
    )
    (finding,) = monitoring.check(rocky, Profile())
    assert f"Install {package} of version {version};" in say_finding("en", finding, "remedy")


def test_nvswitches_on_the_bus_bring_the_fabric_manager_with_fewer_cards_too() -> None:
    planned = answered(Profile(), {"driver.branch": "580", "driver.flavor": "open", "driver.source": "distro"})
    assert driver_packages.fabric_manager(Case(switched(None), planned)) == "nvidia-fabricmanager-580"
    assert driver_packages.fabric_manager(Case(UBUNTU, planned)) is None
