"""A log that anybody may have written names a cause at most: no path, program or option in it comes into a command of root's."""

from __future__ import annotations

import shlex

import pytest

from steps.doctor.diagnosis import Diagnosis
from steps.doctor.evidence import Evidence
from steps.doctor.judge import judge
from steps.doctor.repairs.base import aside, install
from steps.doctor.repairs.plain import are_packages, is_name, is_path, is_word
from steps.host.captured import Capture
from steps.managers.shown import shown
from steps.model.action import Keep, Write
from tests.doctor.live import AnsweringHost

_UBUNTU = {
    "/etc/os-release": 'ID=ubuntu\nVERSION_ID="24.04"\n',
    "/proc/sys/kernel/osrelease": "6.8.0-60-generic\n",
}
_MISMATCH = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.90\n"
_LOADED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Release Build\n"


def session(**asked: str) -> str:
    """Return a pasted terminal: `asked` are what was printed, by the command, whose blanks are underscores."""
    return "".join(f"user@box:~$ {line}\n{output}" for line, output in asked.items()) + "user@box:~$ \n"


def cause(log: str, files: dict[str, str] | None = None) -> Diagnosis:
    """Return the cause where a real machine is handed a log."""
    host = AnsweringHost(Capture(schema="bringup/capture", version=1, files={**_UBUNTU, **(files or {})}))
    seen = Evidence(host, [("log x", (log.encode(),))])
    try:
        found = judge(seen).cause
    finally:
        seen.close()
    assert found is not None
    return found


def done(found: Diagnosis) -> str:
    """Return every command that a run would do, and every path that it would touch."""
    actions = [action for step in found.repair.steps for action in step.actions]
    paths = [action.path for action in actions if isinstance(action, (Keep, Write))]
    return "\n".join((*(shlex.join(shown(action)) for action in actions), *paths))


HOSTILE = {
    "driver-blocked-by-prime-profile": {
        "grep -r nvidia /etc/modprobe.d": "/etc/passwd:alias nvidia off\n",
        "modprobe nvidia": "modprobe: ERROR: could not insert 'off': No such device\n",
    },
    "vfio-owns-gpu": {
        "grep -r vfio /etc/modprobe.d": "/etc/passwd:options vfio-pci ids=10de:2204\n",
        "lspci -nnk": "01:00.0 VGA compatible controller [0300]: NVIDIA Corporation GA102 [GeForce RTX 3090] [10de:2204] (rev a1)\n"
        "\tKernel driver in use: vfio-pci\n",
    },
    "userspace-from-other-install": {
        "which -a nvidia-smi": "/usr/local/../../etc/passwd/nvidia-smi\n",
        "nvidia-smi": _MISMATCH,
        "cat /proc/driver/nvidia/version": _LOADED,
    },
    "no-module-for-running-kernel": {
        "dkms status": "nvidia/../../../tmp/passwd: added\n",
        "find /lib/modules -name 'nvidia*'": "/lib/modules/6.5.0-1-generic/updates/dkms/nvidia.ko\n",
        "modprobe nvidia": "modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.8.0-60-generic\n",
    },
    "module-from-other-install": {
        "ls -l /usr/bin/nvidia-uninstall": "/tmp/passwd/nvidia-uninstall\n",
        "modinfo nvidia": "filename:       /lib/modules/6.8.0-60-generic/kernel/drivers/video/nvidia.ko\nversion:        550.54.14\n",
        "dpkg -l": "ii  libnvidia-compute-550 550.90.07-0ubuntu1 amd64 x\n",
        "nvidia-smi": _MISMATCH,
        "cat /proc/driver/nvidia/version": _LOADED,
    },
    "cdi-spec-not-usable": {
        "cat /x/cdi/../../etc/passwd": " hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.535.54.03\n",
        "podman run --device nvidia.com/gpu=all x": "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all\n",
    },
}


@pytest.mark.parametrize("id", HOSTILE)
def test_root_does_nothing_on_the_word_of_a_log(id: str) -> None:
    found = cause(session(**HOSTILE[id]))
    assert found.id == id
    assert "passwd" not in done(found)


def test_what_the_machine_itself_has_is_repaired_all_the_same() -> None:
    settings = {"/etc/modprobe.d/gpu.conf": "options snd index=1\noptions vfio-pci ids=10de:2204\nblacklist nvidia\n"}
    found = cause(session(**HOSTILE["vfio-owns-gpu"]), settings)
    (write,) = (action for step in found.repair.steps for action in step.actions if isinstance(action, Write))
    assert write.path == "/etc/modprobe.d/gpu.conf"
    assert write.text == "options snd index=1\n# bringup: options vfio-pci ids=10de:2204\n# bringup: blacklist nvidia\n"


def test_no_option_way_up_or_second_word_is_plain() -> None:
    assert [text for text in ("", "-o", "a b", "a\nb", "a;b", "$(x)") if is_word(text)] == []
    assert [text for text in ("", "..", ".", "a/b", "-a") if is_name(text)] == []
    assert [text for text in ("a", "/a/../b", "/a b", "/a\n", "//a", "/a/") if is_path(text)] == []
    assert [text for text in ("-oX=1", "./a.deb", "/a.deb", "a b", "a=1;b", "") if are_packages(text)] == []
    assert are_packages("nvidia-driver-550", "libnvidia-gl-550:i386=1:550.90.07-0ubuntu0.24.04.1~x", "cuda=12.*", "nvidia-dkms-535-")


def test_a_step_with_a_name_or_a_path_that_is_none_is_a_persons() -> None:
    assert install("headers", "apt", "-oDPkg::Pre-Invoke::=x", kernel="6.8").actions == ()
    assert aside("module-away", "/lib/modules/../../etc/shadow").actions == ()
