"""What Linux was told and by whom: each boot loader's own command, parameters merged and not forgotten, one writer of the governor."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from steps import checklist, tuning, verify
from steps.catalog import linux
from steps.compat import boot_plan, governor_plan
from steps.compat.firmware import judge_firmware, translated
from steps.detect.configuration import from_lspci
from steps.detect.machine import detect
from steps.documents import machine as document
from steps.model.action import AnyAction, Command, Manual, Reboot, Run, Service, Write
from steps.model.hardware import Bridge, Cpu, IdleState
from steps.model.machine import Machine
from steps.model.plan import Target
from steps.model.profile import Profile
from steps.model.software import Os, Told
from tests.test_detect_facts import captured
from tests.test_steps_guide import AMPERE, GOOD, varied
from tests.test_verify import FakeHost

UBUNTU = Os(id="ubuntu", version="22.04", arch="x86_64", virtualization="none", container="none", wsl=False)
LOADER_INFO = "/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"


def told(**changed: Any) -> Machine:
    """Return two cards behind a translating IOMMU, with slow sleep and governor, and what the system was told."""
    states = (IdleState(name="POLL", latency_us=0, enabled=True), IdleState(name="C1", latency_us=1, enabled=True))
    deep = IdleState(name="C6", latency_us=290, enabled=True)
    cpu = Cpu(governor="powersave", idle_driver="intel_idle", idle_states=(*states, deep))
    made = varied(accelerators=AMPERE, firmware_iommu="on", os=UBUNTU, cpu=cpu)
    return msgspec.structs.replace(made, told=Told(**changed))


def made(machine: Machine, *items: str, target: Target | None = None) -> tuple[AnyAction, ...]:
    return tuning.actions(machine, msgspec.convert({"firmware": {"linux": items}}, Profile), target or Target())


def runs(actions: tuple[AnyAction, ...]) -> list[str]:
    return [" ".join(action.argv) for action in actions if isinstance(action, Run)]


def undone(actions: tuple[AnyAction, ...]) -> list[str]:
    """Return what undo runs, newest action first."""
    steps = [step for action in reversed(actions) if isinstance(action, Run) for step in action.undo]
    return [" ".join(step.argv) for step in steps if isinstance(step, Command)]


def written(actions: tuple[AnyAction, ...]) -> dict[str, str]:
    return {action.path: action.text or "" for action in actions if isinstance(action, Write)}


# --- the kernel's command line ------------------------------------------------------------------------


def test_a_parameter_is_changed_in_its_place_and_the_others_stay() -> None:
    assert boot_plan.merged(("root=/dev/sda1", "quiet"), ("iommu=pt", "quiet")) == ("root=/dev/sda1", "quiet", "iommu=pt")
    assert boot_plan.merged(("iommu=nopt", "ro", "iommu=off"), ("iommu=pt",)) == ("iommu=pt", "ro")


def test_a_second_plan_keeps_the_first_ones_parameters_and_everything_else_in_the_file() -> None:
    first = boot_plan.appended("GRUB_TIMEOUT=5", ("iommu=pt",))
    second = boot_plan.appended(first, ("intel_idle.max_cstate=1", "iommu=pt"))
    assert first == 'GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT iommu=pt"\n'
    assert second == 'GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT iommu=pt intel_idle.max_cstate=1"\n'


@pytest.mark.parametrize(
    ("loader", "done", "back"),
    [
        ("ostree", ["rpm-ostree kargs --append-if-missing=iommu=pt"], ["rpm-ostree kargs --delete-if-present=iommu=pt"]),
        ("grubby", ["grubby --update-kernel=ALL --args=iommu=pt"], ["grubby --update-kernel=ALL --remove-args=iommu=pt"]),
        ("kernelstub", ["kernelstub --add-options iommu=pt"], ["kernelstub --delete-options iommu=pt"]),
        (
            "suse",
            ["update-bootloader --config", "update-bootloader --add-option iommu=pt", "update-bootloader --config"],
            ["update-bootloader --del-option iommu=pt", "update-bootloader --config"],
        ),
        ("debian-grub", ["update-grub", "update-grub"], ["update-grub"]),
        ("transactional", ["transactional-update grub.cfg"] * 2, ["transactional-update grub.cfg"]),
        ("grub", ["grub-mkconfig -o /boot/grub/grub.cfg"] * 2, ["grub-mkconfig -o /boot/grub/grub.cfg"]),
        ("proxmox-grub", ["proxmox-boot-tool refresh"] * 2, ["proxmox-boot-tool refresh"]),
    ],
)
def test_each_boot_loader_is_told_by_its_own_command_and_undo_ends_with_it(loader: str, done: list[str], back: list[str]) -> None:
    actions = made(told(loader=loader), "iommu-pt")
    assert runs(actions) == done
    assert undone(actions) == back
    assert isinstance(actions[-1], Reboot)
    path = linux.loader(loader).edits
    assert set(written(actions)) == ({path} if path else set())


def test_proxmox_and_systemd_boot_keep_one_line_which_is_edited_and_never_made_up() -> None:
    line = "root=ZFS=rpool/ROOT/pve-1 boot=zfs intel_iommu=on\n"
    texts = {"/etc/kernel/cmdline": line}
    proxmox = made(told(loader="proxmox", texts=texts), "iommu-pt")
    assert written(proxmox) == {"/etc/kernel/cmdline": "root=ZFS=rpool/ROOT/pve-1 boot=zfs intel_iommu=on iommu=pt\n"}
    assert undone(proxmox) == ["proxmox-boot-tool refresh"]
    kernels = ("6.1.0-25-amd64", "6.1.0-31-amd64")
    plain = made(told(loader="systemd-boot", texts=texts, kernels=kernels), "iommu-pt")
    assert runs(plain)[:2] == [f"kernel-install add {kernel} /boot/vmlinuz-{kernel}" for kernel in kernels]
    assert [type(action) for action in made(told(loader="proxmox", texts={"/etc/kernel/cmdline": "\n"}), "iommu-pt")] == [Manual]
    assert [type(action) for action in made(told(loader="systemd-boot", texts=texts), "iommu-pt")] == [Manual]
    assert [type(action) for action in made(told(loader="by-hand"), "iommu-pt")] == [Manual]


def test_what_the_kernel_was_given_already_is_not_asked_for_and_not_taken_away_by_undo() -> None:
    assert made(told(loader="grubby", parameters=("ro", "iommu=pt")), "iommu-pt") == ()


def test_without_systemd_every_tick_is_a_parameter_and_all_are_set_at_once() -> None:
    actions = made(told(loader="debian-grub", systemd=False), "iommu-pt", "c-states", "governor")
    wanted = "iommu=pt intel_idle.max_cstate=1 cpufreq.default_governor=performance"
    assert written(actions) == {
        "/etc/default/grub.d/90-bringup.cfg": f'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT {wanted}"\n'
    }


def _efi(name: str) -> dict[str, str]:
    return {"base64": base64.b64encode(b"\x06\0\0\0" + f"{name}\0".encode("utf-16-le")).decode()}


@pytest.mark.parametrize(
    ("files", "loader"),
    [
        ({"/run/ostree-booted": "", "/usr/bin/grubby": ""}, "ostree"),
        ({"/etc/kernel/proxmox-boot-uuids": "A\n", LOADER_INFO: _efi("systemd-boot 252.5"), "/usr/sbin/update-grub": ""}, "proxmox"),
        ({"/etc/kernel/proxmox-boot-uuids": "A\n", LOADER_INFO: _efi("GRUB 2.12"), "/usr/sbin/update-grub": ""}, "proxmox-grub"),
        ({"/usr/sbin/grubby": "", "/usr/bin/grub-mkconfig": ""}, "grubby"),
        ({"/usr/sbin/transactional-update": "", "/proc/self/mounts": "/dev/vda2 / btrfs ro,relatime 0 0\n"}, "transactional"),
        (
            {
                "/usr/sbin/transactional-update": "",
                "/usr/sbin/update-bootloader": "",
                "/proc/self/mounts": "/dev/vda2 / btrfs rw,relatime 0 0\n",
            },
            "suse",
        ),
        (
            {
                "/etc/kernel/cmdline": "root=/dev/sda1",
                "/usr/bin/kernel-install": "",
                LOADER_INFO: _efi("systemd-boot 255"),
                "/usr/sbin/update-grub": "",
            },
            "systemd-boot",
        ),
        ({LOADER_INFO: _efi("systemd-boot 255"), "/sys/firmware/efi/fw_platform_size": "64", "/usr/sbin/update-grub": ""}, "by-hand"),
        ({"/usr/sbin/update-grub": "", "/usr/sbin/grub-mkconfig": "", "/etc/default/grub": "", "/boot/grub/grub.cfg": ""}, "debian-grub"),
        ({"/usr/bin/grub-mkconfig": "", "/etc/default/grub": "", "/boot/grub/grub.cfg": ""}, "grub"),
        ({"/etc/os-release": "ID=void\n"}, None),
    ],
)
def test_the_boot_loader_is_known_by_its_tools_and_by_its_own_name(files: dict[str, Any], loader: str | None) -> None:
    assert detect(captured(files=files)).told.loader == loader


# --- who sets the governor ------------------------------------------------------------------------------

TLP = "/etc/tlp.conf"


@pytest.mark.parametrize(
    ("owner", "texts", "done", "back"),
    [
        (
            "tuned",
            {"/etc/tuned/active_profile": "balanced\n", "/etc/tuned/profile_mode": "manual\n"},
            "tuned-adm profile throughput-performance",
            "tuned-adm profile balanced",
        ),
        (
            "tuned",
            {"/etc/tuned/active_profile": "balanced\n", "/etc/tuned/profile_mode": "auto\n"},
            "tuned-adm profile throughput-performance",
            "tuned-adm auto_profile",
        ),
        ("tuned", {}, "tuned-adm profile throughput-performance", "tuned-adm off"),
        ("power-profiles-daemon", {}, "powerprofilesctl set performance", "powerprofilesctl set balanced"),
        (
            "power-profiles-daemon",
            {"/var/lib/power-profiles-daemon/state.ini": "[State]\nProfile=power-saver\n"},
            "powerprofilesctl set performance",
            "powerprofilesctl set power-saver",
        ),
        ("tuned-ppd", {"/etc/tuned/ppd_base_profile": "balanced\n"}, "powerprofilesctl set performance", "powerprofilesctl set balanced"),
        ("auto-cpufreq", {}, "auto-cpufreq --force=performance", "auto-cpufreq --force=reset"),
        ("tlp", {TLP: ""}, "tlp start", "tlp start"),
        ("cpufrequtils", {}, "systemctl restart cpufrequtils.service", "systemctl restart cpufrequtils.service"),
    ],
)
def test_the_service_that_sets_the_governor_is_told_and_nothing_of_ours_beside_it(
    owner: str, texts: dict[str, str], done: str, back: str
) -> None:
    behind = ("tuned",) if owner == "tuned-ppd" else ()
    actions = made(told(governors=(owner, *behind), texts=texts), "governor")
    assert set(runs(actions)) == {done}
    assert undone(actions) == [back]
    assert not any(isinstance(action, Service) for action in actions)


def test_a_main_file_that_says_something_is_edited_and_one_that_does_not_is_left_alone() -> None:
    silent = made(told(governors=("tlp",), texts={TLP: "#CPU_SCALING_GOVERNOR_ON_AC=powersave\n"}), "governor")
    assert written(silent) == {"/etc/tlp.d/90-bringup.conf": 'CPU_SCALING_GOVERNOR_ON_AC="performance"\n'}
    said = "TLP_ENABLE=1\nCPU_SCALING_GOVERNOR_ON_AC=powersave\nNMI_WATCHDOG=0\n"
    edited = made(told(governors=("tlp",), texts={TLP: said}), "governor")
    assert written(edited) == {TLP: 'TLP_ENABLE=1\nCPU_SCALING_GOVERNOR_ON_AC="performance"\nNMI_WATCHDOG=0\n'}
    assert governor_plan.assigned('GOVERNOR="ondemand"', "GOVERNOR", "performance") == 'GOVERNOR="performance"'


def test_two_that_fight_already_and_one_that_cannot_be_asked_are_left_to_the_person() -> None:
    for governors in (("tuned", "tlp"), ("cpupower",)):
        (action,) = made(told(governors=governors), "governor")
        assert isinstance(action, Manual)
        option = next(one for one in _options(told(governors=governors)) if one.value == "governor")
        assert not any(note.label == "leads-to" for note in option.notes)
        assert any(note.label == "because" for note in option.notes)


def test_ubuntus_unit_that_lowers_the_clock_a_minute_later_is_kept_from_starting_and_undo_lets_it_again() -> None:
    actions = made(told(governors=("ondemand",)), "governor")
    assert runs(actions) == ["systemctl disable ondemand.service"]
    assert undone(actions) == ["systemctl enable ondemand.service"]
    assert [action.unit for action in actions if isinstance(action, Service)] == ["bringup-governor.service"]


def test_a_daemon_of_power_profiles_does_not_count_where_the_kernel_chooses_the_clock() -> None:
    machine = told(governors=("power-profiles-daemon",))
    schedutil = msgspec.structs.replace(machine, cpu=msgspec.structs.replace(machine.cpu, governor="schedutil"))
    assert [action.unit for action in made(schedutil, "governor") if isinstance(action, Service)] == ["bringup-governor.service"]
    assert governor_plan.held(told(governors=("power-profiles-daemon",), preference="performance"))
    assert not governor_plan.held(told(governors=(), preference="performance"))


def test_a_mounted_system_is_not_asked_to_talk_to_its_daemons() -> None:
    mounted = Target(root="/mnt")
    assert [type(one) for one in made(told(governors=("tlp",), texts={TLP: ""}), "governor", target=mounted)] == [Manual]
    assert runs(made(told(governors=("tuned",)), "governor", target=mounted)) == ["tuned-adm profile throughput-performance"]


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"/etc/systemd/system/multi-user.target.wants/tuned.service": ""}, ("tuned",)),
        ({"/etc/systemd/system/multi-user.target.wants/ssh.service": "", "/etc/rc2.d/S01cpufrequtils": ""}, ("cpufrequtils",)),
        ({"/etc/systemd/system/multi-user.target.wants/ssh.service": ""}, ()),
        ({"/var/lib/dpkg/status": "Package: tlp\nStatus: install ok installed\nVersion: 1.5.0-2\n\n"}, ("tlp",)),
        ({"/etc/hostname": "x"}, None),
    ],
)
def test_who_sets_the_governor_is_seen_by_what_starts_at_boot(files: dict[str, str], found: tuple[str, ...] | None) -> None:
    assert detect(captured(files=files)).told.governors == found


# --- what an earlier plan switched ----------------------------------------------------------------------


def test_a_second_sleep_plan_keeps_the_first_ones_states_and_undo_goes_back_to_them() -> None:
    first = written(made(told(), "c-states"))
    texts = {path: text for path, text in first.items() if path.endswith(".conf")}
    machine = told(texts=texts)
    states = (
        *(machine.cpu.idle_states or ())[:2],
        IdleState(name="C6", latency_us=290, enabled=False),
        IdleState(name="C8", latency_us=600, enabled=True),
    )
    machine = msgspec.structs.replace(machine, cpu=msgspec.structs.replace(machine.cpu, idle_states=states))
    second = made(machine, "c-states")
    path = "/sys/devices/system/cpu/cpu*/cpuidle"
    assert written(second)["/etc/bringup/idle-on.conf"] == f"w {path}/state2/disable - - - - 1\nw {path}/state3/disable - - - - 1\n"
    assert written(second)["/etc/bringup/idle-off.conf"] == f"w {path}/state2/disable - - - - 0\nw {path}/state3/disable - - - - 0\n"
    assert runs(second) == ["systemctl start bringup-idle.service", "systemctl restart bringup-idle.service"]
    # Stopped by the new files, started by the old ones, which are back by then.
    assert undone(second) == ["systemctl stop bringup-idle.service", "systemctl start bringup-idle.service"]
    assert runs(made(machine, "c-states", target=Target(root="/mnt"))) == []


def test_the_governor_of_before_the_first_plan_is_the_one_that_comes_back() -> None:
    first = written(made(told(governors=()), "governor"))
    machine = told(governors=(), texts=first)
    again = msgspec.structs.replace(machine, cpu=msgspec.structs.replace(machine.cpu, governor="schedutil"))
    assert written(made(again, "governor"))["/etc/bringup/governor-off.conf"].endswith(" powersave\n")


# --- ACS, and an IOMMU that translates for some ---------------------------------------------------------


def switched(**changed: Any) -> Machine:
    """Return two cards below one switch whose ports send copies up to the processor."""
    above = "0000:00:01.0", "0000:01:00.0"
    cards = tuple(
        msgspec.structs.replace(card, bridges=(*above, port)) for card, port in zip(AMPERE, ("0000:02:00.0", "0000:02:01.0"), strict=True)
    )
    words = {"0000:02:00.0": 0x1D, "0000:02:01.0": 0x5F}
    bridges = tuple(Bridge(address=at, redirects=at in words, isolation=words.get(at, 0)) for at in (*above, *words))
    return varied(accelerators=cards, bridges=bridges, os=UBUNTU, **changed)


def test_acs_is_cleared_port_by_port_after_a_look_and_the_former_words_come_back() -> None:
    actions = made(switched(), "acs-off")
    assert runs(actions) == [f"setpci -s 0000:02:0{port}.0 ECAP_ACS+0x6.w" for port in (0, 1)]
    unit = written(actions)["/etc/systemd/system/bringup-acs.service"]
    assert "ExecStart=-/usr/bin/env setpci -s 0000:02:01.0 ECAP_ACS+0x6.w=0000\n" in unit
    assert "ExecStop=-/usr/bin/env setpci -s 0000:02:00.0 ECAP_ACS+0x6.w=001d\n" in unit
    assert "ExecStop=-/usr/bin/env setpci -s 0000:02:01.0 ECAP_ACS+0x6.w=005f\n" in unit
    assert isinstance(actions[-1], Service)


def test_a_second_acs_plan_keeps_the_first_ones_port_and_its_former_word() -> None:
    unit = "/etc/systemd/system/bringup-acs.service"
    first = written(made(switched(), "acs-off"))[unit]
    machine = switched()
    bridges = tuple(
        msgspec.structs.replace(one, redirects=False, isolation=0) if one.address == "0000:02:00.0" else one for one in machine.bridges
    )
    later = msgspec.structs.replace(machine, bridges=bridges, told=Told(texts={unit: first}))
    assert written(made(later, "acs-off"))[unit] == first


def test_acs_is_cleared_until_the_next_start_where_no_service_can_hold_it() -> None:
    actions = made(msgspec.structs.replace(switched(), told=Told(systemd=False)), "acs-off")
    assert runs(actions)[2:] == [f"setpci -s 0000:02:0{port}.0 ECAP_ACS+0x6.w=0000" for port in (0, 1)]
    assert undone(actions) == ["setpci -s 0000:02:01.0 ECAP_ACS+0x6.w=005f", "setpci -s 0000:02:00.0 ECAP_ACS+0x6.w=001d"]


def test_acs_is_offered_where_its_word_is_known_and_the_kernel_lets_it_be_written() -> None:
    def offered(machine: Machine) -> bool:
        return any(one.value == "acs-off" for one in _options(machine))

    assert offered(switched())
    assert not offered(switched(firmware_secure_boot="enabled"))
    unread = switched()
    hidden = tuple(msgspec.structs.replace(one, isolation=None) for one in unread.bridges)
    assert not offered(msgspec.structs.replace(unread, bridges=hidden))
    alone = switched()
    assert not offered(msgspec.structs.replace(alone, accelerators=alone.accelerators[:1]))


def test_lspci_shows_the_whole_word() -> None:
    text = "00:01.1 PCI bridge: X\n\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-\n"
    assert from_lspci(text)["0000:00:01.1"].isolation == 0x1D
    assert from_lspci(text)["0000:00:01.1"].redirects is True


def _p2p(machine: Machine) -> bool:
    return any(one.code == "iommu-breaks-p2p" for one in judge_firmware(machine))


def test_what_the_cards_own_domain_is_decides_where_the_system_mixes() -> None:
    first, second = (card.address or "" for card in AMPERE)
    passed = told(domains={first: "identity", second: "identity"})
    mixed = told(domains={first: "identity", second: "DMA-FQ"})
    assert (translated(passed), translated(mixed), translated(told())) == (False, True, True)
    assert (_p2p(passed), _p2p(mixed), _p2p(told())) == (False, True, True)
    answers = msgspec.convert({"firmware": {"linux": ("iommu-pt",)}}, Profile)
    assert (tuning.missing(passed, answers), tuning.missing(mixed, answers)) == ((), ("iommu-pt",))
    seen = checklist.seen(
        msgspec.structs.replace(mixed, firmware=msgspec.structs.replace(mixed.firmware, iommu_groups={"DMA-FQ": 30, "identity": 4})),
        "iommu",
    )
    assert seen.measured == ("DMA-FQ: 30, identity: 4",)


def test_the_proof_fails_while_a_tick_is_not_true_and_passes_when_it_is() -> None:
    def state(machine: Machine, item: str) -> str | None:
        answers = msgspec.convert({"firmware": {"linux": (item,)}}, Profile)
        return next((rung.state for rung in verify.prove(FakeHost(), machine, answers, Target()) if rung.id == "switches"), None)

    assert state(switched(), "acs-off") == "failed"
    off = switched()
    done = tuple(msgspec.structs.replace(one, redirects=False) for one in off.bridges)
    assert state(msgspec.structs.replace(off, bridges=done), "acs-off") == "passed"
    assert state(told(), "governor") == "failed"
    assert state(GOOD, "governor") == "passed"


def test_what_the_system_was_told_is_no_part_of_the_detect_document() -> None:
    assert "told" not in document(told(), "en")


def _options(machine: Machine) -> tuple[Any, ...]:
    question = tuning.question(machine, Profile())
    return question.options if question else ()
