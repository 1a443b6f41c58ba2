"""Before a reboot is asked for: which kernels may start, what each of them has, and what is said of it."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from steps import boot_proof, planning
from steps.compat import next_boot
from steps.detect.boot import entries, nouveau_comes
from steps.host import boot_menu, initramfs
from steps.host.captured import CapturedHost, parse_capture
from steps.host.rooted import RootedHost
from steps.model.action import Reboot, Run
from steps.model.finding import Finding
from steps.model.hardware import Accelerator, Firmware
from steps.model.machine import Machine
from steps.model.plan import Target
from steps.model.software import BootEntry, Driver, KernelModule
from steps.text import say_finding

NEW, OLD = "6.8.0-51-generic", "6.8.0-45-generic"
GRUB = f"""
if [ "${{next_entry}}" ] ; then
   set default="${{next_entry}}"
   set next_entry=
else
   set default="DEFAULT"
fi
function savedefault {{
  if [ -z "${{boot_once}}" ]; then
    save_env saved_entry
  fi
}}
menuentry 'Ubuntu' --class ubuntu $menuentry_id_option 'gnulinux-simple-1' {{
	recordfail
	linux	/vmlinuz-{NEW} root=UUID=1 ro quiet
	initrd	/initrd.img-{NEW}
}}
submenu 'Advanced options for Ubuntu' $menuentry_id_option 'gnulinux-advanced-1' {{
	menuentry 'Ubuntu, with Linux {NEW}' --class ubuntu $menuentry_id_option 'gnulinux-{NEW}-advanced-1' {{
		linux	/vmlinuz-{NEW} root=UUID=1 ro quiet
		initrd	/initrd.img-{NEW}
	}}
	menuentry 'Ubuntu, with Linux {OLD}' --class ubuntu $menuentry_id_option 'gnulinux-{OLD}-advanced-1' {{
		linux	/vmlinuz-{OLD} root=UUID=1 ro modprobe.blacklist=nouveau
		initrd	/microcode.cpio /initrd.img-{OLD}
	}}
}}
menuentry 'UEFI Firmware Settings' $menuentry_id_option 'uefi-firmware' {{
	fwsetup
}}
"""


def captured(**parts: Any) -> CapturedHost:
    return CapturedHost(parse_capture(json.dumps({"schema": "bringup/capture", "version": 1, **parts}).encode()))


class Tree:
    """Some files."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files

    def read(self, path: str) -> str | None:
        return self._files.get(path)

    def listdir(self, path: str) -> tuple[str, ...] | None:
        return tuple(sorted(name.rpartition("/")[2] for name in self._files if name.rpartition("/")[0] == path)) or None


def menu(files: Mapping[str, str]) -> tuple[BootEntry, ...] | None:
    told = boot_menu.menu(Tree(files)).stdout
    return entries(captured(commands={"bringup boot-menu": {"stdout": told, "status": 0}}))


def default(files: Mapping[str, str]) -> list[str | None]:
    return [entry.kernel for entry in menu(files) or () if entry.default]


@pytest.mark.parametrize(
    ("said", "environment", "kernel"),
    [
        ("0", "", NEW),
        ("1>1", "", OLD),
        (f"gnulinux-advanced-1>gnulinux-{OLD}-advanced-1", "", OLD),
        (f"Advanced options for Ubuntu>Ubuntu, with Linux {OLD}", "", OLD),
        ("${saved_entry}", f"saved_entry=gnulinux-advanced-1>gnulinux-{OLD}-advanced-1\n", OLD),
        ("${saved_entry}", "", NEW),
        ("0", "next_entry=1>1\n", OLD),
        ("gone", "", NEW),
    ],
)
def test_grub_starts_what_its_script_and_its_variables_name(said: str, environment: str, kernel: str) -> None:
    files = {"/boot/grub/grub.cfg": GRUB.replace("DEFAULT", said), "/boot/grub/grubenv": f"# GRUB Environment Block\n{environment}"}
    assert default(files) == [kernel]
    assert [entry.kernel for entry in menu(files) or ()] == [NEW, NEW, OLD]


def test_an_entry_names_its_image_as_the_running_system_sees_it() -> None:
    found = list(menu({"/boot/grub/grub.cfg": GRUB.replace("DEFAULT", "0")}) or ())
    assert [entry.initramfs for entry in found] == [f"/boot/initrd.img-{NEW}", f"/boot/initrd.img-{NEW}", f"/boot/initrd.img-{OLD}"]
    assert "blacklist" in found[2].options


BLOCKS = {
    f"/boot/loader/entries/{id}-{kernel}.conf": f"title Rocky ({kernel})\nversion {kernel}\nlinux /vmlinuz-{kernel}\n"
    f"initrd /initramfs-{kernel}.img $tuned_initrd\noptions root=x $kernelopts\n"
    for id, kernel in (("aa", "5.14.0-9.el9.x86_64"), ("aa", "5.14.0-70.el9.x86_64"))
}


def test_loader_entries_are_ordered_newest_first_and_grubs_saved_entry_chooses() -> None:
    script = {"/boot/grub2/grub.cfg": 'set default="${saved_entry}"\ninsmod blscfg\nblscfg\n', **BLOCKS}
    assert default(script) == ["5.14.0-70.el9.x86_64"]
    assert default({**script, "/boot/grub2/grubenv": "saved_entry=aa-5.14.0-9.el9.x86_64\n"}) == ["5.14.0-9.el9.x86_64"]
    assert default({**script, "/boot/grub2/grubenv": "saved_entry=1\n"}) == ["5.14.0-9.el9.x86_64"]
    found = list(menu({**script, "/boot/grub2/grubenv": "kernelopts=quiet rd.driver.blacklist=nouveau\n"}) or ())
    assert "rd.driver.blacklist=nouveau" in found[0].options


def test_systemd_boot_starts_what_its_file_names_or_the_newest() -> None:
    assert default(BLOCKS) == ["5.14.0-70.el9.x86_64"]
    assert default({**BLOCKS, "/boot/loader/loader.conf": "timeout 3\ndefault aa-5.14.0-9*\n"}) == ["5.14.0-9.el9.x86_64"]


@pytest.mark.parametrize("files", [{}, {"/boot/grub/grub.cfg": ""}, {"/boot/grub/grub.cfg": "menuentry 'x' {\n}}}}\n"}])
def test_a_menu_that_cannot_be_read_is_not_known(files: Mapping[str, str]) -> None:
    assert menu(files) is None


# --- the image ---------------------------------------------------------------------------------------


def archive(*names: str) -> bytes:
    made = b""
    for name in (*names, "TRAILER!!!"):
        head = b"070701" + b"".join(b"%08x" % number for number in (1, 0o100644, 0, 0, 1, 0, 3, 0, 0, 0, 0, len(name) + 1, 0))
        made += head + name.encode() + b"\0"
        made += bytes(-len(made) % 4) + (b"abc\0" if name != "TRAILER!!!" else b"")
    return made + bytes(512 - len(made) % 512)


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress, lzma.compress])
def test_the_names_in_an_image_are_read_behind_the_microcode(pack: type[bytes]) -> None:
    image = archive("kernel/x86/microcode/GenuineIntel.bin") + pack(archive("usr/lib/modules/6.8/nouveau.ko.zst", "etc/modprobe.d/x.conf"))
    assert initramfs.names_in(image) == [
        "kernel/x86/microcode/GenuineIntel.bin",
        "usr/lib/modules/6.8/nouveau.ko.zst",
        "etc/modprobe.d/x.conf",
    ]


@pytest.mark.parametrize("image", [b"\x28\xb5\x2f\xfd zstd", b"\x1f\x8b torn", b"noise"])
def test_an_image_that_cannot_be_unpacked_is_not_known(image: bytes) -> None:
    assert initramfs.names_in(image) is None


def test_a_torn_image_gives_what_was_whole() -> None:
    assert initramfs.names_in(archive("a/nouveau.ko", "b")[:150]) == ["a/nouveau.ko"]


def comes(names: list[str] | None, *, options: str = "", conf: str = "") -> bool | None:
    entry = BootEntry(kernel=NEW, options=options, initramfs="/boot/i")
    told = {"bringup initramfs /boot/i": {"stdout": json.dumps({"names": names}), "status": 0}}
    return nouveau_comes(captured(commands=told, files={"/etc/modprobe.d/nvidia.conf": conf}), entry)


def test_nouveau_comes_only_where_the_image_has_it_and_nothing_keeps_it_out() -> None:
    here = ["usr/lib/modules/6.8/kernel/drivers/gpu/drm/nouveau/nouveau.ko.zst", "etc/modprobe.d/nvidia.conf"]
    assert comes(here) is True
    assert comes(here, conf="blacklist nouveau\n") is False
    assert comes(here, options="quiet modprobe.blacklist=nouveau") is False
    assert comes(["etc/modprobe.d/nvidia.conf"]) is False
    nova = ["usr/lib/modules/6.18/kernel/drivers/gpu/nova-core/nova_core.ko.zst", "etc/modprobe.d/nvidia.conf"]
    assert comes(nova, conf="blacklist nouveau\n", options="modprobe.blacklist=nouveau") is True
    assert comes(nova, conf="blacklist nova_core\n") is False
    assert comes(nova, options="modprobe.blacklist=nouveau,nova-core") is False
    assert comes([*here, *nova], options="modprobe.blacklist=nova_core") is True
    assert comes(None) is None


def test_a_mounted_system_answers_for_its_own_menu(tmp_path: Path) -> None:
    (tmp_path / "boot/grub").mkdir(parents=True)
    (tmp_path / "boot/grub/grub.cfg").write_text(GRUB.replace("DEFAULT", "0"))
    (tmp_path / "boot" / f"initrd.img-{NEW}").write_bytes(archive("lib/modules/x/nouveau.ko"))
    host = RootedHost(str(tmp_path), captured())
    found = entries(host)
    assert found is not None
    assert found[0].kernel == NEW
    assert nouveau_comes(host, found[0]) is True


# --- the rules ---------------------------------------------------------------------------------------

CARD = Accelerator(address="0000:01:00.0", vendor="nvidia", name="RTX 4090", pci_id="10de:2684")
MODULE = KernelModule(kernel=NEW, present=True, version="580.95.05", signer="gpu01 Secure Boot Module Signature key")
UBUNTU = "Canonical Ltd. Kernel Module Signing"
MENU = (BootEntry(kernel=NEW, default=True), BootEntry(kernel=OLD))


def machine(module: KernelModule = MODULE, older: KernelModule | None = None, **firmware: object) -> Machine:
    known = Firmware(**{"secure_boot": "enabled", "enrolled_keys": (MODULE.signer,), "queued_keys": (), **firmware})  # type: ignore[arg-type]
    modules = (older, module) if older is not None else (module,)
    return Machine(accelerators=(CARD,), firmware=known, driver=Driver(library_version="580.95.05", modules=modules), boot=MENU)


def said(found: tuple[Finding, ...]) -> list[tuple[str, str, str]]:
    return [(one.severity, one.code.removeprefix("next-boot-"), one.subject) for one in found]


@pytest.mark.parametrize(
    ("looked_at", "nouveau", "expected"),
    [
        (machine(), {NEW: False}, [("ok", "ready", NEW)]),
        (machine(), {NEW: None}, []),
        (machine(), {NEW: True}, [("error", "nouveau", NEW)]),
        (machine(KernelModule(kernel=NEW, present=False)), {NEW: False}, [("error", "no-module", NEW)]),
        (machine(KernelModule(kernel=NEW)), {NEW: False}, []),
        (machine(older=KernelModule(kernel=OLD, present=False)), {NEW: False}, [("ok", "ready", NEW), ("warning", "no-module", OLD)]),
        (
            machine(KernelModule(kernel=NEW, present=True, version="570.1", signer=MODULE.signer)),
            {NEW: False},
            [("error", "versions-differ", NEW)],
        ),
        (machine(KernelModule(kernel=NEW, present=True, version="580.95.05")), {NEW: False}, [("error", "unsigned", NEW)]),
        (machine(KernelModule(kernel=NEW, present=True)), {NEW: False}, [("ok", "ready", NEW)]),
        (machine(enrolled_keys=()), {NEW: False}, [("warning", "key-unknown", NEW)]),
        (machine(enrolled_keys=None), {NEW: False}, [("ok", "ready", NEW)]),
        (
            machine(enrolled_keys=(), queued_keys=(MODULE.signer,)),
            {NEW: False},
            [("info", "key-queued", NEW), ("ok", "ready", NEW)],
        ),
        (
            machine(
                KernelModule(kernel=NEW, present=True, version="580.95.05", signer="Canonical Ltd. Kernel Module Signing"), enrolled_keys=()
            ),
            {NEW: False},
            [("ok", "ready", NEW)],
        ),
        (
            machine(KernelModule(kernel=NEW, present=True, version="580.95.05"), secure_boot="disabled"),
            {NEW: False},
            [("ok", "ready", NEW)],
        ),
    ],
)
def test_each_kernel_is_judged_by_what_is_known_of_it(
    looked_at: Machine, nouveau: dict[str, bool | None], expected: list[tuple[str, str, str]]
) -> None:
    found = next_boot.findings(looked_at, nouveau)
    assert said(found) == expected
    for one in found:
        assert NEW in say_finding("en", one, "sentence") or OLD in say_finding("en", one, "sentence") or one.severity == "info"
        assert "{" not in say_finding("zh_CN", one, "sentence")


def test_the_proof_passes_only_what_was_read() -> None:
    def state(found: tuple[Finding, ...]) -> str:
        return boot_proof.rung(found).state

    assert state(next_boot.findings(machine(), {NEW: False})) == "passed"
    assert state(next_boot.findings(machine(), {NEW: True})) == "failed"
    assert state(next_boot.findings(machine(), {})) == "skipped"
    unread = Machine(accelerators=(CARD,), driver=Driver(library_version="1"), boot=None)
    assert state(next_boot.findings(unread, {})) == "skipped"


def test_nobody_is_sent_into_a_reboot_that_was_not_looked_at() -> None:
    install = Run(id="driver.install", title="t", argv=("true",))
    reboot = Reboot(id="driver.reboot", title="t", reason="r", needs=("driver.install",))
    looked = planning._look_before_reboot((install, reboot), Target())
    assert [action.id for action in looked] == ["driver.install", "next-boot", "driver.reboot"]
    assert looked[1].id in looked[2].needs
    assert planning._look_before_reboot((install, reboot), Target(root="/mnt")) == (install, reboot)
    assert planning._look_before_reboot((reboot,), Target()) == (reboot,)


def test_a_question_that_nobody_answered_is_not_known() -> None:
    assert entries(captured()) is None
