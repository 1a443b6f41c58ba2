"""Whose the driver's files are: told by the package manager, the installer's own list, and where a file lies."""

from __future__ import annotations

from steps import medical
from steps.detect.probes import Probes
from steps.doctor.facts.owners import Owners, owners
from steps.host.base import Result
from steps.host.captured import Capture, CapturedHost

_LIBRARY = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so"
_MODULE = "/lib/modules/6.8.0-60-generic"
_FOLDER = "/usr/lib/x86_64-linux-gnu"
_PACKAGED = (
    f"libnvidia-compute-570:amd64: {_LIBRARY}.570.124.06\nnvidia-utils-570: /usr/bin/nvidia-smi\n"
    f"libnvidia-container1:amd64: {_FOLDER}/libnvidia-container.so.1.17.4\n"
)


class Debian(CapturedHost):
    """A machine whose dpkg knows three of the files."""

    def __init__(self, *paths: str, texts: dict[str, str] | None = None) -> None:
        files = {**dict.fromkeys(("/var/lib/dpkg/status", *paths), ""), **(texts or {})}
        super().__init__(Capture(schema="bringup/capture", version=1, files=dict(files)))
        self.rehearsal = False

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        return Result(stdout=_PACKAGED, status=1) if argv[:2] == ("dpkg", "--search") else super().run(argv, timeout=timeout)


def seen(*paths: str, texts: dict[str, str] | None = None) -> Owners:
    return owners(Probes(Debian(*paths, texts=texts)))


def test_each_kind_of_owner_is_told_apart() -> None:
    found = seen(
        f"{_LIBRARY}.570.124.06",
        "/usr/lib/x86_64-linux-gnu/libnvidia-container.so.1.17.4",
        f"{_MODULE}/updates/dkms/nvidia.ko.zst",
        f"{_MODULE}/kernel/drivers/video/nvidia-uvm.ko",
        "/usr/local/bin/nvidia-top",
        "/opt/env/lib/python3.12/site-packages/compat/lib/libcuda.so.1",
    )
    owner = {file.path.rpartition("/")[2]: (file.owner, file.name) for file in found.files}
    assert owner == {
        "libnvidia-ml.so.570.124.06": ("package", "libnvidia-compute-570"),
        "libnvidia-container.so.1.17.4": ("container-toolkit", "libnvidia-container1"),
        "nvidia.ko.zst": ("dkms", None),
        "nvidia-uvm.ko": ("installer", None),
        "nvidia-top": ("unknown", None),
        "libcuda.so.1": ("wheel", "compat"),
    }
    assert found.conflicts == ()


def test_a_library_of_the_installer_beside_a_packages_is_a_conflict_and_its_own_tool_the_clean_up() -> None:
    listed = {"/var/lib/nvidia/log": f"1: {_LIBRARY}.550.54.14\n", "/usr/bin/nvidia-uninstall": ""}
    found = seen(f"{_LIBRARY}.570.124.06", f"{_LIBRARY}.550.54.14", texts=listed)
    assert [(one.what, len(one.files)) for one in found.conflicts] == [("libnvidia-ml.so", 2)]
    assert [file.owner for file in found.conflicts[0].files] == ["installer", "package"]
    assert medical.clean_up(found) == (("/usr/bin/nvidia-uninstall", "--silent"),)


def test_without_its_uninstaller_only_what_is_in_a_packages_way_is_taken_aside() -> None:
    found = seen("/usr/bin/nvidia-smi", "/usr/local/bin/nvidia-smi", "/usr/local/bin/nvidia-top")
    assert medical.clean_up(found) == (("mv", "--", "/usr/local/bin/nvidia-smi", "/usr/local/bin/nvidia-smi.disabled"),)
    shown = "\n".join(medical.owner_lines(found, "en"))
    assert "package nvidia-utils-570" in shown
    assert "/usr/local/bin/nvidia-smi  nobody known" in shown


def test_two_modules_for_one_kernel_are_a_conflict_and_for_two_kernels_none() -> None:
    other = "/lib/modules/6.8.0-59-generic"
    assert seen(f"{_MODULE}/updates/dkms/nvidia.ko", f"{other}/updates/dkms/nvidia.ko").conflicts == ()
    twice = seen(f"{_MODULE}/updates/dkms/nvidia.ko", f"{_MODULE}/kernel/drivers/video/nvidia.ko")
    assert [one.what for one in twice.conflicts] == ["6.8.0-60-generic nvidia"]
    assert medical.clean_up(twice) == (
        ("mv", "--", f"{_MODULE}/kernel/drivers/video/nvidia.ko", f"{_MODULE}/kernel/drivers/video/nvidia.ko.disabled"),
    )
