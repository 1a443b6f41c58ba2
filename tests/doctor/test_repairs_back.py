"""A repair touches only what was seen to be broken, and takes back only what it made."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from steps.catalog.diagnoses import diagnoses
from steps.catalog.repairs import repair_rows
from steps.doctor.diagnosis import Step, Verdict
from steps.doctor.evidence import Evidence
from steps.doctor.judge import judge
from steps.doctor.repairs import all as all_repairs
from steps.doctor.repairs.all import repair_of
from steps.doctor.rules.base import Candidate
from steps.engine.ledger import paths_of
from steps.host.captured import Capture, Recorded
from steps.model.action import AnyAction, Command, FileIs, Keep, RemovePath, Run
from steps.model.base import phrase
from steps.text import say
from tests.doctor import live

_UBUNTU = {"/etc/os-release": 'ID=ubuntu\nVERSION_ID="24.04"\n', "/proc/sys/kernel/osrelease": "6.8.0-60-generic\n"}
_KERNEL = "6.8.0-60-generic"


def seen(commands: dict[str, str], files: dict[str, str] | None = None, log: str = "", absent: tuple[str, ...] = ()) -> Evidence:
    """Return what is seen of a machine that answers so, and that lacks these paths."""
    answers = {line: Recorded(stdout=text, status=0) for line, text in commands.items()}
    answers |= {f"test -e {path}": Recorded(status=1) for path in absent}
    host = live.AnsweringHost(Capture(schema="bringup/capture", version=1, files={**_UBUNTU, **(files or {})}, commands=answers))
    return Evidence(host, (("pasted.log", (log.encode(),)),) if log else ())


def steps(told: Evidence, id: str, variant: str = "", **params: str) -> tuple[Step, ...]:
    return repair_of(told, diagnoses()[id], Candidate(strength=0.9, params=dict(params), variant=variant)).steps


def actions(found: tuple[Step, ...], key: str) -> list[AnyAction]:
    return [action for step in found if step.says.key in (f"repair.step.{key}", f"driver.action.{key}") for action in step.actions]


def takes_back(action: AnyAction) -> list[tuple[str, ...]]:
    assert isinstance(action, Run)
    return [step.argv for step in action.undo if isinstance(step, Command)]


# --- modules ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "back"),
    [
        (f"nvidia/570.1, {_KERNEL}, x86_64: installed\n", []),
        (f"nvidia/570.1, {_KERNEL}, x86_64: built\n", [("dkms", "uninstall", "nvidia/570.1", "-k", _KERNEL)]),
        ("nvidia/570.1, 6.8.0-59-generic, x86_64: installed\n", [("dkms", "uninstall", "nvidia/570.1", "-k", _KERNEL)]),
    ],
)
def test_a_module_that_was_installed_before_its_build_stays_when_that_is_taken_back(status: str, back: list[tuple[str, ...]]) -> None:
    told = seen({"dkms status": status, "dpkg -l": "ii  nvidia-dkms-570 570.1-0ubuntu1 amd64 x\n"})
    (build,) = actions(steps(told, "no-module-for-running-kernel"), "build")
    assert takes_back(build) == back


_CONF = "/var/lib/dkms/nvidia/550.1/source/dkms.conf"
_STALE = f"Error! Could not locate dkms.conf file.\nFile: {_CONF} does not exist.\n"
_HEALTHY = f"nvidia/550.1, {_KERNEL}, x86_64: installed\n"


def verdict(told: Evidence) -> Verdict:
    try:
        return judge(told)
    finally:
        told.close()


def test_an_old_line_about_an_entry_that_has_its_sources_is_ruled_out() -> None:
    said = verdict(seen({"dkms status": _HEALTHY}, {_CONF: 'PACKAGE_NAME="nvidia"\n'}, _STALE))
    assert "dkms-tree-stale-entry" not in [one.id for one in said.diagnoses]
    said = verdict(seen({"dkms status": _HEALTHY}, log=_STALE))
    assert "dkms-tree-stale-entry" not in [one.id for one in said.diagnoses]


def test_an_entry_that_has_no_sources_here_is_moved_out_of_the_tree() -> None:
    told = seen({"dkms status": "nvidia/550.1: broken\n"}, {"/var/lib/dkms/nvidia/550.1/x": ""}, _STALE, absent=(_CONF,))
    (cause,) = (one for one in verdict(told).diagnoses if one.primary)
    assert cause.id == "dkms-tree-stale-entry"
    (keep,) = actions(cause.repair.steps, "entry-away")
    assert isinstance(keep, Keep)
    assert (keep.path, keep.moves, keep.kept("1130-a")) == (
        "/var/lib/dkms/nvidia/550.1",
        True,
        "/var/lib/.dkms-nvidia-550.1.1130-a.disabled",
    )


@pytest.mark.parametrize("files", [{}, {_CONF: "x"}], ids=["not here", "whole"])
def test_an_entry_that_nobody_saw_broken_is_left_alone(files: dict[str, str]) -> None:
    told = seen({"dkms status": "nvidia/570.1: added\n"}, files)
    found = steps(told, "dkms-tree-stale-entry", module="nvidia", version="550.1")
    assert [action for step in found for action in step.actions] == []


# --- cards ------------------------------------------------------------------------------------------

_Q = """
GPU 00000000:41:00.0
    MIG Mode
        Current                           : Enabled
        Pending                           : Enabled
    MIG Device
        Index                             : 0
        GPU Instance ID                   : 0
GPU 00000000:81:00.0
    MIG Mode
        Current                           : Enabled
        Pending                           : Enabled
    MIG Devices                           : None
GPU 00000000:C1:00.0
    MIG Mode
        Current                           : Disabled
        Pending                           : Disabled
    MIG Devices                           : None
"""


def test_only_the_card_that_is_split_into_nothing_gets_an_instance_and_none_goes_with_undo() -> None:
    (step,) = steps(seen({"nvidia-smi -q": _Q}), "mig-enabled-without-instances")
    (action,) = step.actions
    assert isinstance(action, Run)
    assert (action.argv, action.undo) == (("nvidia-smi", "mig", "-i", "0000:81:00.0", "-cgi", "0", "-C"), ())


_HARMLESS = {
    # Until the next boot, or the next start.
    "restart-fabric", "restart-docker", "reload", "load", "load-uvm", "load-gdrdrv", "device-links", "reset-all", "cards.resets",
    # Derived, or written anew as it was.
    "refresh", "ldconfig", "depmod", "reinstall", "build", "build-all", "build-akmod",
    # Its environment was kept as a whole just before; dpkg's half-done packages: `stays` is filled in behind the call.
    "environments.pip", "finish",
}  # fmt: skip
"""Steps that leave nothing to take back, with the reason; "module.function" where the step has no one name."""


def one_way() -> set[str]:
    """Return the steps of all builders and of the table whose command has neither a way back nor words for what stays.

    Read from the builders' source: no machine has to be made up on which each of them is taken.
    """
    found: set[str] = set()
    for path in Path(all_repairs.__file__).parent.glob("*.py"):
        for function in (node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)):
            for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
                keywords = {one.arg for one in call.keywords}
                if isinstance(call.func, ast.Name) and call.func.id == "run" and not keywords & {"undo", "stays"}:
                    named = call.args[0].value if isinstance(call.args[0], ast.Constant) else f"{path.stem}.{function.name}"
                    found.add(str(named))
    rows = (step for row in repair_rows().values() for step in row.steps)
    return found | {step.says for step in rows if step.run and not step.undo and not step.keeps}


def test_a_command_of_a_repair_has_a_way_back_or_says_what_stays_or_leaves_nothing() -> None:
    assert one_way() == _HARMLESS


def test_what_has_no_way_back_says_what_stays() -> None:
    (instance,) = actions(steps(seen({"nvidia-smi -q": _Q}), "mig-enabled-without-instances"), "mig-instances")
    assert isinstance(instance, Run)
    assert "-dci -dgi" in say("en", instance.stays)
    told = seen({}, log="[  9.1] Loading of module with unavailable key is rejected\n", absent=("/var/lib/shim-signed/mok/MOK.der",))
    (made,) = actions(steps(told, "mok-not-enrolled"), "make-key")
    assert isinstance(made, Run)
    assert made.stays == phrase("repair.undo.made-key", path="/var/lib/shim-signed/mok/MOK.der")


def test_instances_are_a_persons_where_the_card_is_not_known() -> None:
    (step,) = steps(seen({"nvidia-smi -q": _Q.partition("GPU 00000000:81")[0]}), "mig-enabled-without-instances")
    assert (step.actions, (step.command or ())[:4]) == ((), ("nvidia-smi", "mig", "-i", "ADDRESS"))


# --- packages ---------------------------------------------------------------------------------------

_HALF = "ii  nvidia-utils-550 550.1-1 amd64 x\niU  nvidia-driver-570 570.1-1 amd64 x\n"
_DEB = "/var/cache/apt/archives/nvidia-utils-550_550.1-1_amd64.deb"


def test_a_package_that_is_removed_by_force_comes_back_out_of_apts_cache() -> None:
    found = steps(seen({"dpkg -l": _HALF}, {_DEB: ""}), "driver-package-file-conflict", package="nvidia-utils-550")
    (away,) = actions(found, "other-branch-away")
    assert takes_back(away) == [("dpkg", "--install", "--force-overwrite", _DEB)]
    assert actions(found, "keep-package") == []


def test_its_file_is_fetched_before_it_is_removed_where_apt_has_none() -> None:
    found = steps(seen({"dpkg -l": _HALF}), "driver-package-file-conflict", package="nvidia-utils-550")
    assert [step.says.key.rpartition(".")[2] for step in found][:2] == ["keep-package", "other-branch-away"]
    ((fetch,), (away,)) = actions(found, "keep-package"), actions(found, "other-branch-away")
    assert isinstance(fetch, Run)
    assert (fetch.argv[-1], fetch.undo) == ("nvidia-utils-550:amd64=550.1-1", (RemovePath(path=_DEB),))
    assert takes_back(away)[0][-1] == _DEB


# --- what is kept, and what was there already -------------------------------------------------------

_UNINSTALLER = "/usr/bin/nvidia-uninstall"


@pytest.mark.parametrize(
    ("there", "name"),
    [((), "/var/lib/nvidia-installer"), (("/var/lib/nvidia-installer.disabled.tar",), "/var/lib/nvidia-installer-2")],
    ids=["first", "second"],
)
def test_what_an_earlier_repair_keeps_of_the_installer_is_not_written_over(there: tuple[str, ...], name: str) -> None:
    files = {_UNINSTALLER: "#!/bin/sh\n", **dict.fromkeys(there, "")}
    found = steps(seen({}, files), "module-from-other-install", loaded="550.54.14")
    keep = actions(found, "uninstall-keep")
    (uninstall,) = actions(found, "uninstall")
    assert [path for action in keep for path in paths_of(action)] == [f"{name}.disabled.{what}" for what in ("list", "all", "tar")]
    assert f"{name}.disabled.tar" in takes_back(uninstall)[0]


def test_a_module_that_is_loaded_already_is_not_unloaded_by_undo() -> None:
    (load,) = actions(steps(seen({}), "nvidia-uvm-not-ready"), "load-uvm")
    assert load.done_when == (FileIs(path="/sys/module/nvidia_uvm"),)
