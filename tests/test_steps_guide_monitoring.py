"""The monitoring step: what can be had is installed honestly, what cannot says why."""

from __future__ import annotations

import msgspec
import pytest

from steps import monitoring
from steps.catalog import guide
from steps.model.action import Packages, Run, Service
from steps.model.choice import Option
from steps.model.machine import Accelerator, Machine, Os
from steps.model.plan import Installer, Target
from steps.model.profile import ContainerAnswers, MonitoringAnswers, Profile, ToolkitAnswers, answered
from steps.text import Language, say, say_finding

UBUNTU = Machine(
    os=Os(id="ubuntu", version="24.04", init="systemd", arch="x86_64", container="none", wsl=False),
    accelerators=(Accelerator(vendor="nvidia", name="NVIDIA GeForce RTX 4090"),),
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


def test_each_tool_that_can_be_had_becomes_actions_and_the_one_that_cannot_does_not() -> None:
    actions = {action.id: action for action in monitoring.actions(UBUNTU, ALL, WITH_UV)}
    assert "monitoring.dcgm-exporter" not in actions
    nvitop, persistence = actions["monitoring.nvitop"], actions["monitoring.persistence"]
    docker, toolkit = actions["monitoring.docker"], actions["monitoring.container-toolkit"]
    assert isinstance(nvitop, Run)
    assert (nvitop.by, nvitop.lane, nvitop.argv) == (
        "user",
        "python",
        ("/usr/bin/uv", "tool", "install", "--find-links", "/srv/wheels", "nvitop"),
    )
    assert isinstance(persistence, Service)
    assert (persistence.unit, persistence.by) == ("nvidia-persistenced.service", "root")
    assert isinstance(docker, Packages)
    assert (docker.manager, docker.install) == ("apt", ("docker.io",))
    assert isinstance(toolkit, Packages)
    assert toolkit.install == ("nvidia-container-toolkit",)


def test_nvidias_repository_is_added_for_the_container_toolkit_unless_another_step_adds_it() -> None:
    wanted = Profile(containers=ContainerAnswers(nvidia_container_toolkit=True))
    assert "repository.source" in {action.id for action in monitoring.actions(UBUNTU, wanted, WITH_UV)}
    with_toolkit = msgspec.structs.replace(wanted, toolkit=ToolkitAnswers(cuda="12.8"))
    assert [action.id for action in monitoring.actions(UBUNTU, with_toolkit, WITH_UV)] == ["monitoring.container-toolkit"]


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
        (UBUNTU, "dcgm-exporter", "unknown", "by hand"),
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
    (finding,) = monitoring.check(UBUNTU, Profile(monitoring=MonitoringAnswers(dcgm_exporter=True)))
    assert (finding.code, finding.severity, finding.fix) == ("monitoring-by-hand", "info", {"monitoring.dcgm_exporter": None})


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
