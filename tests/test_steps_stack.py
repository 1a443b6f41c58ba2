"""The three steps as a person meets them: rows that fit the screen, words in both languages, and the actions they lead to."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import cast

import msgspec
import pytest

from steps import driver, frameworks, text, toolkit
from steps.compat import framework_plan
from steps.compat.case import Case
from steps.compat.driver_rules import driver_findings
from steps.compat.solve import recommend
from steps.detect.machine import detect
from steps.host.opening import open_host
from steps.managers import apt_repository
from steps.model.action import (
    AnyAction,
    AptReads,
    Command,
    ModuleBuilt,
    Packages,
    PackagesAre,
    Reboot,
    RemovePath,
    Run,
    Succeeds,
    Unqueue,
    Write,
)
from steps.model.choice import Choice
from steps.model.machine import Machine
from steps.model.offers import Offers
from steps.model.plan import Installer, Plan, Target
from steps.model.profile import Profile, answered
from steps.model.software import Package, RunFile
from steps.model.step import Step
from tests.test_compat_cases import machine, profile
from tui.cells import width as cell_len

FOLDER = Path(__file__).parent / "machines"
CAPTURES = sorted(path.stem for path in FOLDER.glob("*.json"))
LANGUAGES: tuple[text.Language, ...] = ("en", "zh_CN")
TARGET = Target(kernel="6.8.0-50-generic", installer=Installer(uv="/usr/bin/uv", pythons={"3.12": "/usr/bin/python3.12"}))


@cache
def captured(name: str) -> Machine:
    """Return the machine of a capture."""
    return detect(open_host(str(FOLDER / f"{name}.json"), None))


def steps() -> tuple[Step, ...]:
    """Return the three steps."""
    return cast("tuple[Step, ...]", tuple[ModuleType, ...]((driver, toolkit, frameworks)))


def shown(here: Machine) -> list[tuple[Step, tuple[Choice, ...]]]:
    """Return the choices of every step that applies, for the recommended answers."""
    answers = recommend(here).choices or Profile()
    return [(step, step.choices(here, answers)) for step in steps() if step.applies(here)]


def rows(groups: tuple[Choice, ...]) -> int:
    """Return how many rows the groups take: a heading has a blank line before it."""
    return sum(len(group.options) + (2 if group.title else 0) for group in groups)


@pytest.mark.parametrize("name", CAPTURES)
def test_every_row_fits_the_screen_in_both_languages(name: str) -> None:
    for _, groups in shown(captured(name)):
        assert rows(groups) <= 18
        for option in (option for group in groups for option in group.options):
            for language in LANGUAGES:
                assert cell_len(text.say(language, option.label)) <= 17
                assert 0 < cell_len(text.say(language, option.tag)) <= 11
                assert all(cell_len(text.say(language, sentence)) <= 100 for sentence in option.sentences)
                assert not any("." in text.say(language, word) and " " not in text.say(language, word) for word in (option.tag,))


@pytest.mark.parametrize("name", CAPTURES)
def test_every_finding_has_its_words_in_both_languages(name: str) -> None:
    here = captured(name)
    findings = [finding for _, groups in shown(here) for group in groups for option in group.options for finding in option.findings]
    findings += [finding for step in steps() for finding in step.check(here, Profile())]
    for finding in findings:
        for language in LANGUAGES:
            tag, sentence = text.say_finding(language, finding, "tag"), text.say_finding(language, finding, "sentence")
            assert tag != finding.code
            assert cell_len(tag) <= 11
            assert "{" not in sentence
            assert text.say_finding(language, finding, "remedy")
            assert all("because." not in text.say(language, link) and "{" not in text.say(language, link) for link in finding.because)


@pytest.mark.parametrize("name", CAPTURES)
def test_what_is_marked_impossible_cannot_be_taken_and_says_why(name: str) -> None:
    for _, groups in shown(captured(name)):
        for option in (option for group in groups for option in group.options):
            if option.mark == "bad":
                assert option.findings[0].severity == "error"
            else:
                assert not any(finding.severity == "error" for finding in option.findings)


def test_the_recommended_driver_is_first_and_the_impossible_ones_are_last() -> None:
    here = machine("5090")
    groups = driver.choices(here, recommend(here).choices or Profile())
    values, marks = [option.value for option in groups[0].options], [option.mark for option in groups[0].options]

    assert values[0] == "580-open"
    assert groups[0].taken == ("580-open",)
    assert "580-proprietary" in values
    assert marks[:-1] == sorted(marks[:-1], key=["good", "catch", "bad"].index)


def test_taking_an_option_makes_the_answers_say_so() -> None:
    here = machine("4090")
    answers = recommend(here).choices or Profile()
    for option in driver.choices(here, answers)[0].options:
        taken = answered(answers, option.patch)
        assert driver.choices(here, taken)[0].taken == (option.value,)


@pytest.mark.parametrize("name", CAPTURES)
def test_titles_and_intros_fit_their_lines(name: str) -> None:
    here = captured(name)
    answers = recommend(here).choices or Profile()
    for step in steps():
        for language in LANGUAGES:
            assert cell_len(text.say(language, step.intro(here, answers))) <= 78
            assert text.lookup(language, f"{step.KEY}.title")
            assert text.lookup(language, f"{step.KEY}.name")


def test_a_clash_offers_the_other_framework_instead() -> None:
    here = machine("4090")
    answers = recommend(here).choices or Profile()
    row = next(option for option in frameworks.choices(here, answers)[0].options if option.value == "tensorflow")
    fix = row.findings[0].fix

    assert row.mark == "bad"
    assert fix is not None
    swapped = answered(answers, fix)
    assert "torch" not in swapped.frameworks
    assert swapped.frameworks["tensorflow"] == "2.21.0"


def test_a_library_follows_the_toolkit_that_is_taken() -> None:
    here = machine("4090")
    answers = answered(recommend(here).choices or Profile(), {"toolkit.cuda": "12.8", "toolkit.cudnn": "9.10", "toolkit.nccl": "2.26"})
    row = next(option for option in toolkit.choices(here, answers)[0].options if option.value == "13.0")

    assert row.patch == {"toolkit.cuda": "13.0", "toolkit.cudnn": "9.28", "toolkit.nccl": "2.32"}


# --- actions --------------------------------------------------------------------------------------


PLAIN = {"torch": "2.14.1", "variant": "cu130", "environment_python": "3.12"}


def planned(here: Machine, answers: Profile, target: Target = TARGET) -> dict[str, AnyAction]:
    """Return the actions of the three steps by id."""
    actions = [action for step in steps() for action in step.actions(here, answers, target)]
    assert len({action.id for action in actions}) == len(actions)
    return {action.id: action for action in actions}


def packages(action: AnyAction) -> tuple[str, ...]:
    """Return what an action installs."""
    assert isinstance(action, Packages)
    return action.install


LAB = {
    "driver_branch": "570",
    "driver_flavor": "open",
    "driver_source": "nvidia-repo",
    "toolkit_cuda": "12.8",
    "toolkit_cudnn": "9.8",
    "toolkit_nccl": "2.26",
}


def test_a_debian_with_nvidias_repository() -> None:
    here = machine("t4", system="debian 12", kernel="6.1.0-40-amd64")
    actions = planned(here, profile(**LAB), Target(root="/srv/root", kernel="6.1.0-40-amd64"))

    assert packages(actions["driver.headers"]) == ("linux-headers-6.1.0-40-amd64",)
    assert packages(actions["driver.install"]) == ("nvidia-open=570.*",)
    assert ModuleBuilt(module="nvidia", kernel="6.1.0-40-amd64") in actions["driver.install"].done_when
    assert packages(actions["toolkit.cuda"]) == ("cuda-toolkit-12-8",)
    assert packages(actions["toolkit.cudnn"]) == ("libcudnn9-cuda-12", "libcudnn9-dev-cuda-12")
    assert packages(actions["toolkit.nccl"]) == ("libnccl2", "libnccl-dev")
    pins, branch = actions["toolkit.pins"], actions["repository.branch"]
    assert isinstance(pins, Write)
    assert isinstance(branch, Write)
    assert "Package: libnccl2 libnccl-dev\nPin: version 2.26.*+cuda12.?\n" in (pins.text or "")
    assert "Pin: version 570.*" in (branch.text or "")
    assert "driver.reboot" not in actions
    order = list(actions)
    assert (
        order.index("driver.headers")
        < order.index("repository.source")
        < order.index("driver.install")
        < order.index("toolkit.pins")
        < order.index("toolkit.nccl")
    )


def with_packages(here: Machine, **versions: str) -> Machine:
    """Return the machine with these packages of a driver."""
    there = tuple(Package(name=name.replace("_", "-"), version=version) for name, version in versions.items())
    return msgspec.structs.replace(here, driver=msgspec.structs.replace(here.driver, packages=there))


def back(actions: dict[str, AnyAction]) -> tuple[bool, bool]:
    """Return whether the pin brings packages back, and whether the install lets them."""
    pin, install = actions["repository.branch"], actions["driver.install"]
    assert isinstance(pin, Write)
    assert isinstance(install, Packages)
    return "Pin-Priority: 1001" in (pin.text or ""), install.may_downgrade == apt_repository.DRIVER_PACKAGES


def test_an_older_branch_from_nvidias_repository_goes_back_with_all_that_it_depends_on() -> None:
    plain = machine("t4", system="debian 12", driver="580.82.07")
    assert back(planned(with_packages(plain, nvidia_open="580.82.07-1", nvidia_driver="580.82.07-1"), profile(**LAB))) == (True, True)
    assert back(planned(with_packages(plain, nvidia_open="570.124.06-1", nvidia_settings="580.82.07-1"), profile(**LAB))) == (False, False)
    assert back(planned(with_packages(plain, nvidia_open="550.54.15-1"), profile(**LAB))) == (False, False)


def test_dnfs_packages_of_a_newer_branch_may_go_back_to_the_planned_one() -> None:
    answers = profile(driver_branch="580", driver_flavor="open", driver_source="nvidia-repo")
    for version, named in (("3:590.1-1.el10", apt_repository.DRIVER_PACKAGES), ("3:580.1-1.el10", ()), ("3:570.1-1.el10", ())):
        here = with_packages(machine("4090", system="rocky 10.0", kernel="6.12.0-55.el10.x86_64"), kmod_nvidia_open_dkms=version)
        install = planned(here, answers)["driver.install"]
        assert isinstance(install, Packages)
        assert (install.manager, install.may_downgrade) == ("dnf", named)


def test_debians_own_driver_goes_back_from_nvidias_newer_one() -> None:
    here = with_packages(machine("t4", system="debian 12", driver="580.82.07"), nvidia_driver="580.82.07-1")
    actions = planned(here, profile(driver_branch="535", driver_flavor="proprietary", driver_source="distro"))
    assert back(actions) == (True, True)
    assert actions["driver.install"].needs == ("repository.branch",)


def test_an_older_branch_of_ubuntus_is_another_package_and_nothing_goes_back() -> None:
    here = with_packages(
        machine("4090", driver="580.95.05"), nvidia_driver_580="580.95.05-0ubuntu1", libnvidia_compute_580="580.95.05-0ubuntu1"
    )
    install = planned(here, profile(driver_branch="570", driver_flavor="proprietary", driver_source="distro"))["driver.install"]
    assert isinstance(install, Packages)
    assert install.may_downgrade == ()


@pytest.mark.parametrize(("holder", "reboots"), [("nouveau", True), ("NovaCore", True), (None, False)])
def test_a_card_that_the_kernels_own_driver_holds_comes_free_at_a_reboot(holder: str | None, reboots: bool) -> None:
    here = machine("4090")
    held = tuple(msgspec.structs.replace(card, kernel_driver=holder) for card in here.accelerators)
    answers = profile(driver_branch="580", driver_flavor="open", driver_source="distro")
    assert ("driver.reboot" in planned(msgspec.structs.replace(here, accelerators=held), answers)) is reboots


def test_the_ppa_of_the_drivers_goes_with_undo_unless_it_was_there() -> None:
    added = planned(machine("4090"), profile(driver_branch="580", driver_flavor="open", driver_source="ppa"))["repository.ppa"]
    assert isinstance(added, Run)
    # It asks Launchpad; without a network what it laid there goes all the same.
    assert added.undo[0] == Command(argv=("add-apt-repository", "--yes", "--remove", "ppa:graphics-drivers/ppa"), tolerant=True)
    assert [step.path.rpartition("/")[2] for step in added.undo if isinstance(step, RemovePath)] == [
        "graphics-drivers-ubuntu-ppa-noble.sources",
        "graphics-drivers-ubuntu-ppa-noble.list",
        "graphics-drivers-ubuntu-ppa-noble.list.save",
        "graphics-drivers-ubuntu-ppa.gpg",
        "graphics-drivers_ubuntu_ppa.gpg",
    ]
    (there,) = added.done_when
    assert isinstance(there, AptReads)
    assert there.suite == "noble"
    assert "https://ppa.launchpadcontent.net/graphics-drivers/ppa/ubuntu" in there.urls


def test_nccl_is_done_only_in_the_build_for_this_cuda() -> None:
    here = machine("t4", system="debian 12")
    done = planned(here, profile(**LAB))["toolkit.nccl"].done_when

    assert done == (PackagesAre(manager="apt", packages={"libnccl2": "2.26.*+cuda12.?", "libnccl-dev": "2.26.*+cuda12.?"}),)


def test_the_archive_of_ubuntu() -> None:
    here = machine("4090")
    actions = planned(here, profile(driver_branch="580", driver_flavor="open", driver_source="distro"))

    assert packages(actions["driver.install"]) == ("nvidia-driver-580-open",)
    assert not any(name.startswith("repository.") for name in actions)


def test_a_driver_of_nvidia_s_installer_is_kept_before_its_uninstaller_runs_and_put_back_by_undo() -> None:
    here = captured("rtx4090x4-epyc")
    files = ("/lib/modules/6.8.0-50-generic/kernel/drivers/video/nvidia.ko", "/usr/bin/nvidia-smi", "/usr/bin/nvidia-uninstall")
    there = RunFile(uninstaller=files[-1], files=files, kept=("/var/lib/nvidia-installer.disabled.tar",))
    own = msgspec.structs.replace(here, driver=msgspec.structs.replace(here.driver, source="runfile", run_file=there))
    actions = planned(own, profile(driver_branch="580", driver_flavor="open", driver_source="distro"))
    order = list(actions)
    assert order.index("driver.uninstall-keep") < order.index("driver.uninstall") < order.index("driver.install")
    listed, whole, keep, away = (actions[f"driver.uninstall{part}"] for part in ("-list", "-all", "-keep", ""))
    assert isinstance(listed, Write)
    assert isinstance(whole, Run)
    assert isinstance(keep, Run)
    assert isinstance(away, Run)
    assert (listed.text, listed.path) == ("\n".join((*files, "")), "/var/lib/nvidia-installer-2.disabled.list")
    archive = "/var/lib/nvidia-installer-2.disabled.tar"
    assert {listed.path, "/var/lib/nvidia/log"} <= {*whole.argv}
    assert {archive, *(step.path for step in whole.undo if isinstance(step, RemovePath))} <= {*keep.argv}
    assert keep.undo == (RemovePath(path=archive),)
    assert away.argv == ("/usr/bin/nvidia-uninstall", "--silent")
    back, *index = (step.argv for step in away.undo if isinstance(step, Command))
    assert archive in back
    assert index == [("depmod", "6.8.0-50-generic"), ("ldconfig",)]


def test_secure_boot_takes_the_signed_modules_of_the_kernels_line() -> None:
    here = machine("4090", secure_boot=True, kernel="6.11.0-26-generic")
    actions = planned(here, profile(driver_branch="580", driver_flavor="open", driver_source="distro"))

    assert packages(actions["driver.install"]) == ("linux-modules-nvidia-580-open-generic-hwe-24.04", "nvidia-driver-580-open")
    assert "driver.headers" not in actions
    assert "driver.key" not in actions
    assert isinstance(actions["driver.reboot"], Reboot)


def test_modules_built_under_secure_boot_need_a_key() -> None:
    here = machine("t4", system="debian 12", secure_boot=True)
    key = planned(here, profile(driver_branch="580", driver_flavor="open", driver_source="nvidia-repo"))["driver.key"]

    assert isinstance(key, Run)
    assert key.interactive
    assert key.argv == ("mokutil", "--import", "/var/lib/dkms/mok.pub")
    assert key.undo == ()  # what waits already is not known
    for queued, undo in (((), (Unqueue(certificate="/var/lib/dkms/mok.pub"),)), (("another",), ())):
        waiting = msgspec.structs.replace(here, firmware=msgspec.structs.replace(here.firmware, queued_keys=queued))
        again = planned(waiting, profile(driver_branch="580", driver_flavor="open", driver_source="nvidia-repo"))["driver.key"]
        assert isinstance(again, Run)
        assert again.undo == undo


def test_a_toolkit_beside_the_archives_driver_keeps_the_repository_away_from_it() -> None:
    here = machine("4090")
    actions = planned(here, profile(driver_branch="580", driver_flavor="open", driver_source="distro", toolkit_cuda="12.8"))
    guard = actions["toolkit.keep-driver"]

    assert isinstance(guard, Write)
    assert "Pin-Priority: -10" in (guard.text or "")
    assert "repository.source" in actions


def test_a_toolkit_that_relies_on_a_newer_driver_library_brings_it_and_can_be_taken_back() -> None:
    here = machine("a100", system="ubuntu 22.04", driver="535.183.01")
    actions = planned(here, profile(toolkit_cuda="13.0", driver_source="keep"))
    order = [name for name in actions if name.startswith(("toolkit.compat", "toolkit.loader"))]
    path, before = actions["toolkit.compat-path"], actions["toolkit.loader-before"]

    assert packages(actions["toolkit.compat"]) == ("cuda-compat-13-0",)
    assert order == ["toolkit.compat", "toolkit.loader-before", "toolkit.compat-path", "toolkit.loader"]
    assert isinstance(path, Write)
    assert (path.path.rpartition("/")[0], path.text) == ("/etc/ld.so.conf.d", "/usr/local/cuda-13.0/compat\n")
    # Taken back newest first: the file goes, then the loader forgets the folder, then the package goes.
    assert isinstance(before, Run)
    assert before.undo == (Command(argv=("ldconfig",)),)
    assert "toolkit.compat" not in planned(machine("a100", system="ubuntu 22.04", driver="580.95.05"), profile(toolkit_cuda="13.0"))


def test_a_card_that_the_newest_cudnn_has_left_gets_one_that_has_not() -> None:
    def wanted(card: str, **answers: str) -> tuple[str, ...]:
        return framework_plan.requirements(Case(machine(card), profile(**answers)))

    assert "nvidia-cudnn-cu12<9.11" in wanted("p100", jax="0.12.0.1")
    assert not [one for one in wanted("4090", jax="0.12.0.1") if "cudnn" in one]
    # PyTorch pins its own.
    assert not [one for one in wanted("p100", jax="0.12.0.1", torch="2.14.1", variant="cu126") if "cudnn" in one]


def test_pytorch_comes_with_the_numpy_that_its_metadata_forgets() -> None:
    def wanted(**answers: str) -> list[str]:
        found = framework_plan.requirements(Case(machine("4090"), profile(**answers)))
        return [one for one in found if one.startswith("numpy")]

    assert wanted(torch="2.14.1", variant="cu130") == ["numpy"]
    assert wanted(torch="2.1.0", variant="cu121") == ["numpy<2"]
    assert wanted(torch="2.14.1", variant="cu130", numpy="2.2.6") == ["numpy==2.2.6"]
    assert wanted(jax="0.12.0.1") == []


@pytest.mark.parametrize("name", ["transformers", "trl", "accelerate"])
def test_what_does_nothing_without_pytorch_brings_it(name: str) -> None:
    found = recommend(machine("4090"), (name,)).choices
    assert found is not None
    assert {"torch", "variant", name} <= set(found.frameworks)


def test_the_start_file_and_the_end_of_a_run_name_the_samples_and_how_they_are_started() -> None:
    here = machine("4090", "4090")
    answers = profile(torch="2.14.1", variant="cu130", jax="0.12.0.1", environment_python="3.12")
    target = Target(installer=Installer(uv="/usr/bin/uv", pythons={"3.12": "/usr/bin/python3.12"}, home="/home/ana"))
    actions = planned(here, answers, target)
    start = actions["environment.start"]
    assert isinstance(start, Write)
    assert start.text is not None
    folder = "/home/ana/envs/dl/samples" if "/home/ana/envs/dl" in start.path else start.path.rpartition("/")[0] + "/samples"
    lines = start.text.split("# samples\n")[1].splitlines()
    assert lines == [
        f"torchrun --standalone --nproc-per-node 2 {folder}/ddp_amp.py",
        f"torchrun --standalone --nproc-per-node 2 {folder}/checkpoint_resume.py",
        f"python {folder}/jax_train.py",
    ]
    plan = Plan(made=0.0, target=target, profile=answers, actions=tuple(actions.values()))
    assert framework_plan.tries_of(plan, 2) == tuple(lines)


def test_an_environment_without_a_name_is_called_as_the_recommendation_calls_it() -> None:
    here = machine("4090")
    advised = recommend(here).choices
    assert advised is not None
    named, bare = (planned(here, profile(**answers)) for answers in (PLAIN | {"environment_name": advised.environment.name or ""}, PLAIN))
    assert named["environment.create"] == bare["environment.create"]


def test_debian_gets_its_non_free_components() -> None:
    here = machine("t4", system="debian 12")
    actions = planned(here, profile(driver_branch="535", driver_flavor="proprietary", driver_source="distro"))

    assert packages(actions["driver.install"]) == ("nvidia-kernel-dkms=535.*", "nvidia-driver=535.*", "firmware-nvidia-gsp=535.*")
    components = actions["repository.components"]
    assert components.done_when == (Succeeds(argv=("apt-cache", "show", "--no-all-versions", "nvidia-kernel-dkms")),)


DEBIAN_12 = {"driver_flavor": "proprietary", "driver_source": "distro"}
TRIXIE_TOO = ("550.163.01-2", "535.309.01-0+deb12u1")
"""What apt says of a Debian 12 whose owner has added Debian 13's archive."""


@pytest.mark.parametrize(
    ("versions", "pinned"),
    [(TRIXIE_TOO, True), (tuple(reversed(TRIXIE_TOO)), False), ((), False), (None, False)],
)
def test_lists_of_another_release_do_not_change_the_branch_of_a_driver(versions: tuple[str, ...] | None, pinned: bool) -> None:
    here = machine("t4", system="debian 12")
    names: tuple[str, ...] = ("nvidia-kernel-dkms", "nvidia-driver", "firmware-nvidia-gsp")
    lists: dict[str, tuple[str, ...]] | None = None if versions is None else dict.fromkeys(names, versions)
    actions = planned(msgspec.structs.replace(here, offers=Offers(here=lists)), profile(driver_branch="535", **DEBIAN_12))

    order = list(actions)
    assert ("repository.branch" in order) is pinned
    if pinned:
        pin = actions["repository.branch"]
        assert isinstance(pin, Write)
        assert "Pin: version 535.*" in (pin.text or "")
        assert order.index("repository.branch") < order.index("driver.install")
        assert actions["driver.install"].needs == ("repository.branch",)


@pytest.mark.parametrize(("lists", "said"), [(TRIXIE_TOO, True), (TRIXIE_TOO[1:], False), (None, False)])
def test_a_branch_that_only_another_release_has_is_refused_by_its_name(lists: tuple[str, ...] | None, said: bool) -> None:
    offers = Offers(here=None if lists is None else {"nvidia-driver": lists})
    case = Case(msgspec.structs.replace(machine("t4", system="debian 12"), offers=offers), profile(driver_branch="550", **DEBIAN_12))
    (found,) = [one for one in driver_findings(case) if one.code == "driver-not-offered"]

    assert found.severity == "error"
    reasons = [text.say("en", one) for one in found.because]
    assert any("550.163.01-2 is in the lists here, but of another release" in one for one in reasons) is said


def test_eight_cards_behind_nvswitch_get_the_fabric_manager() -> None:
    here = captured("dgx-a100")
    actions = planned(here, recommend(here).choices or Profile())

    assert packages(actions["driver.fabric"]) == ("nvidia-fabricmanager-580",)
    assert "driver.fabric" not in planned(machine("a100", "a100"), recommend(machine("a100", "a100")).choices or Profile())


def test_rocky_takes_the_repositorys_own_file_and_a_stream() -> None:
    here = machine("4090", system="rocky 9.4", kernel="5.14.0-427.el9.x86_64")
    answers = msgspec.structs.replace(answered(recommend(here).choices or Profile(), {"driver.branch": "580"}), frameworks={})
    actions = planned(here, answers, Target(kernel=here.os.kernel))

    assert packages(actions["driver.headers"]) == ("kernel-devel-5.14.0-427.el9.x86_64",)
    stream = actions["repository.stream"]
    assert isinstance(stream, Run)
    assert stream.argv[-1] == "nvidia-driver:580-open"
    assert stream.undo == (Command(argv=("dnf", "-y", "module", "reset", "nvidia-driver")),)
    assert "repository.stream-reset" not in actions
    install = actions["driver.install"]
    assert packages(install) == ("nvidia-open=580.*",)
    assert PackagesAre(manager="dnf", packages={"nvidia-open": "580.*"}) in install.done_when
    assert "driver-branch-not-held" not in {finding.code for finding in driver.check(here, answers)}


def test_another_stream_is_let_go_first_and_undo_enables_it_again_before_its_packages_come_back() -> None:
    here = machine("4090", system="rocky 9.4", kernel="5.14.0-427.el9.x86_64", driver="570.124.06")
    here = msgspec.structs.replace(here, driver=msgspec.structs.replace(here.driver, stream="570-open"))
    answers = profile(driver_branch="580", driver_flavor="open", driver_source="nvidia-repo")
    actions = planned(here, answers)
    order = list(actions)
    was = (
        Command(argv=("dnf", "-y", "module", "reset", "nvidia-driver")),
        Command(argv=("dnf", "-y", "module", "enable", "nvidia-driver:570-open")),
    )

    steps = [actions[name] for name in ("repository.stream-reset", "repository.stream", "driver.branch-seen")]
    assert [step.undo for step in steps if isinstance(step, Run)] == [was, was, was]
    assert steps[0].argv == ("dnf", "-y", "module", "reset", "nvidia-driver") if isinstance(steps[0], Run) else False
    assert order.index("repository.stream-reset") + 1 == order.index("repository.stream") < order.index("driver.install")
    assert order.index("driver.install") < order.index("driver.branch-seen")
    assert "repository.stream-reset" not in planned(
        msgspec.structs.replace(here, driver=msgspec.structs.replace(here.driver, stream="580-open")), answers
    )


def test_without_streams_dnf_is_locked_to_the_branch_and_each_part_is_named_with_it() -> None:
    here = machine("4090", system="rocky 10.0", kernel="6.12.0-55.el10.x86_64")
    answers = profile(driver_branch="580", driver_flavor="open", driver_source="nvidia-repo")
    actions = planned(here, answers)
    order = list(actions)

    install = actions["driver.install"]
    assert packages(install) == ("nvidia-open=580.*", "kmod-nvidia-open-dkms=580.*", "nvidia-driver-cuda=580.*")
    assert packages(actions["repository.lock-tool"]) == ("python3-dnf-plugin-versionlock",)
    gone, lock, seen = actions["repository.unlock"], actions["repository.lock"], actions["driver.branch-seen"]
    assert isinstance(gone, Run)
    assert isinstance(lock, Run)
    assert isinstance(seen, Run)
    assert "*nvidia*-3:570.*" in gone.argv
    assert "*nvidia*-3:580.*" not in gone.argv
    assert lock.argv == ("dnf", "-y", "versionlock", "add", "*nvidia*-3:580.*")
    back = (Command(argv=("dnf", "-y", "versionlock", "delete", "*nvidia*-3:580.*")),)
    assert (lock.undo, seen.undo) == (back, back)
    names = ["repository.lock-tool", "repository.lock-kept", "repository.unlock", "repository.lock", "driver.install", "driver.branch-seen"]
    assert [name for name in order if name in names] == names
    assert "driver-branch-not-held" not in {finding.code for finding in driver.check(here, answers)}


def test_where_no_lock_can_be_taken_back_the_branch_is_named_and_said_not_to_be_held() -> None:
    here = machine("4090", system="fedora 44", kernel="7.2.6-200.fc44.x86_64")
    answers = profile(driver_branch="580", driver_flavor="proprietary", driver_source="nvidia-repo")
    actions = planned(here, answers)
    assert packages(actions["driver.install"]) == ("cuda-drivers=580.*", "kmod-nvidia-latest-dkms=580.*", "nvidia-driver-cuda=580.*")
    assert "repository.lock" not in actions
    assert {finding.code: finding.severity for finding in driver.check(here, answers)}["driver-branch-not-held"] == "warning"


SWITCHED = ("h100",) * 8


@pytest.mark.parametrize(
    ("system", "branch", "name"),
    [
        ("rocky 9.4", "580", "nvidia-fabricmanager"),
        ("rhel 9.4", "570", "nvidia-fabric-manager"),
        ("amzn 2023", "580", "nvidia-fabricmanager"),
    ],
)
def test_on_dnf_cards_behind_nvswitch_get_the_fabric_manager_under_its_name_there(system: str, branch: str, name: str) -> None:
    here = machine(*SWITCHED, system=system, kernel="5.14.0-427.el9.x86_64")
    answers = profile(driver_branch=branch, driver_flavor="open", driver_source="nvidia-repo")
    fabric = planned(here, answers)["driver.fabric"]

    assert isinstance(fabric, Packages)
    assert (fabric.manager, fabric.install) == ("dnf", (name,))
    assert "fabric-manager-unknown" not in {finding.code for finding in driver.check(here, answers)}


def test_where_the_fabric_managers_name_is_not_known_the_plan_is_refused() -> None:
    answers = profile(driver_branch="580", driver_flavor="open", driver_source="nvidia-repo")
    here = machine(*SWITCHED, system="opensuse-leap 15.6")
    found = {finding.code: finding.severity for finding in driver.check(here, answers)}
    assert found["fabric-manager-unknown"] == "error"
    assert "driver.fabric" not in planned(here, answers)
    assert "fabric-manager-unknown" not in {finding.code for finding in driver.check(machine("h100", system="opensuse-leap 15.6"), answers)}
    kept = msgspec.structs.replace(here, driver=machine(driver="580.95.05").driver)
    assert "fabric-manager-unknown" not in {finding.code for finding in driver.check(kept, Profile())}


@pytest.mark.parametrize(("system", "name"), [("rocky 8.10", "powertools"), ("almalinux 9.4", "crb"), ("rocky 10.0", "crb")])
def test_a_system_whose_archive_lacks_dkms_is_given_epel_before_the_driver(system: str, name: str) -> None:
    here = machine("4090", system=system, kernel="5.14.0-427.el9.x86_64")
    answers = msgspec.structs.replace(answered(recommend(here).choices or Profile(), {"driver.branch": "580"}), frameworks={})
    actions = planned(here, answers, Target(kernel=here.os.kernel))

    assert packages(actions["repository.extra"]) == ("epel-release",)
    assert list(actions).index("repository.extra") < list(actions).index("repository.builders") < list(actions).index("driver.install")
    builders = actions["repository.builders"]
    assert isinstance(builders, Run)
    assert (builders.argv, builders.undo) == (("crb", "enable"), (Command(argv=("crb", "disable")),))
    assert name in text.say("en", builders.title)


def test_red_hats_own_system_takes_fedoras_release_package() -> None:
    here = machine("4090", system="rhel 9.4", kernel="5.14.0-427.el9.x86_64")
    extra = planned(here, profile(driver_branch="580", driver_flavor="open", driver_source="nvidia-repo"))["repository.extra"]

    assert isinstance(extra, Run)
    assert extra.argv == ("dnf", "-y", "install", "https://dl.fedoraproject.org/pub/epel/epel-release-latest-9.noarch.rpm")
    assert extra.undo == (Command(argv=("dnf", "-y", "remove", "epel-release")),)


@pytest.mark.parametrize(
    ("file", "on"),
    [
        ("[baseos]\nenabled=1\n\n[crb]\nname=CRB\nenabled=1\n\n[extras]\nenabled=0\n", True),
        ("[baseos]\nenabled=1\n\n[crb]\nname=CRB\nenabled=0\n\n[extras]\nenabled=1\n", False),
        ("[crb-debuginfo]\nenabled=1\n", False),
    ],
)
def test_the_repository_of_builders_counts_as_on_only_where_its_own_section_says_so(tmp_path: Path, file: str, on: bool) -> None:
    here = machine("4090", system="rocky 9.4", kernel="5.14.0-427.el9.x86_64")
    builders = planned(here, profile(driver_branch="580", driver_flavor="open", driver_source="nvidia-repo"))["repository.builders"]
    (probe,) = builders.done_when
    assert isinstance(probe, Succeeds)
    (tmp_path / "rocky.repo").write_text(file)

    assert (subprocess.run((*probe.argv[:-1], tmp_path), check=False).returncode == 0) is on


def test_where_it_is_not_known_how_dkms_comes_it_is_said_and_elsewhere_nothing_is_added() -> None:
    answers = profile(driver_branch="580", driver_flavor="open", driver_source="nvidia-repo")
    oracle = machine("4090", system="ol 9.4", kernel="5.14.0-427.el9.x86_64")
    assert "driver-dkms-unknown" in {finding.code for finding in driver.check(oracle, answers)}
    assert "repository.extra" not in planned(oracle, answers)
    for system in ("fedora 44", "ubuntu 24.04", "rocky 9.4"):
        assert "driver-dkms-unknown" not in {finding.code for finding in driver.check(machine("4090", system=system), answers)}
    assert "repository.extra" not in planned(machine("4090", system="fedora 44"), answers)


@pytest.mark.parametrize("name", ["wsl2-rtx3060", "nogpu-dell-r6515", "dgx-spark-gb10", "azure-vgpu-a10-slice", "xe9680-mi300x"])
def test_where_no_driver_belongs_none_is_installed(name: str) -> None:
    here = captured(name)

    assert not any(action.startswith("driver.") for action in planned(here, recommend(here).choices or Profile()))


@pytest.mark.parametrize(
    ("answers", "expected", "index"),
    [
        ({"torch": "2.14.1", "variant": "cu130"}, ("torch===2.14.1", "numpy"), None),
        ({"torch": "2.14.1", "variant": "cu126"}, ("torch==2.14.1+cu126", "numpy"), "https://download.pytorch.org/whl/cu126"),
        ({"torch": "2.1.2", "variant": "cu121"}, ("torch===2.1.2", "numpy<2"), None),
        ({"torch": "2.13.0", "variant": "cpu"}, ("torch==2.13.0+cpu", "numpy"), "https://download.pytorch.org/whl/cpu"),
        ({"tensorflow": "2.21.0"}, ("tensorflow[and-cuda]==2.21.0",), None),
        ({"jax": "0.12.0.1", "variant": "cu130"}, ("jax[cuda13]==0.12.0.1",), None),
    ],
)
def test_requirements_are_exact_and_come_from_the_right_index(
    answers: dict[str, str], expected: tuple[str, ...], index: str | None
) -> None:
    install = planned(machine("4090"), profile(**answers, environment_python="3.12"))["environment.install"]

    assert isinstance(install, Run)
    assert install.argv[-len(expected) :] == expected
    assert (index in install.argv) if index else not any("download.pytorch.org" in part for part in install.argv)


def test_a_cpu_build_comes_from_the_persons_own_folder_where_there_is_one() -> None:
    target = Target(installer=Installer(uv="/usr/bin/uv", pythons={"3.11": "/usr/bin/python3.11"}, find_links=("/srv/wheels",)))
    install = planned(machine(), profile(torch="2.13.0", variant="cpu", environment_python="3.11"), target)["environment.install"]

    assert isinstance(install, Run)
    assert "/srv/wheels" in install.argv
    assert not any("download.pytorch.org" in part for part in install.argv)


def test_conda_is_among_the_environments_where_the_person_has_it() -> None:
    here = machine()
    for known in (False, True):
        one = msgspec.structs.replace(here, tools={"conda": "25.5.1" if known else None})
        groups = {group.key: group for group in frameworks.choices(one, recommend(one).choices or Profile())}
        managers = [option.value.partition("-")[0] for option in groups["environment"].options]
        assert (len(managers), "conda" in managers) == (3, known)
