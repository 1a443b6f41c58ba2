"""Known-good and known-bad combinations: what each rule says, and that it says nothing where nothing is wrong."""

from __future__ import annotations

import msgspec
import pytest

from steps.compat.solve import judge
from steps.model.hardware import Accelerator, Firmware
from steps.model.machine import Machine
from steps.model.profile import Profile, answered
from steps.model.software import Driver, Os

CARDS = {
    "k80": ("Tesla K80", "GK210", "kepler", "3.7"),
    "gtx980": ("NVIDIA GeForce GTX 980", "GM204", "maxwell", "5.2"),
    "p40": ("Tesla P40", "GP102", "pascal", "6.1"),
    "p100": ("Tesla P100-PCIE-16GB", "GP100", "pascal", "6.0"),
    "v100": ("Tesla V100-SXM2-16GB", "GV100", "volta", "7.0"),
    "t4": ("Tesla T4", "TU104", "turing", "7.5"),
    "a100": ("NVIDIA A100-SXM4-40GB", "GA100", "ampere", "8.0"),
    "3090": ("NVIDIA GeForce RTX 3090", "GA102", "ampere", "8.6"),
    "4090": ("NVIDIA GeForce RTX 4090", "AD102", "ada", "8.9"),
    "gh200": ("NVIDIA GH200 480GB", "GH100", "hopper", "9.0"),
    "5090": ("NVIDIA GeForce RTX 5090", "GB202", "blackwell", "12.0"),
    "gtx580": ("NVIDIA GeForce GTX 580", "GF110", "fermi", "2.0"),
    "gtx680": ("NVIDIA GeForce GTX 680", "GK104", "kepler", "3.0"),
    "h100": ("NVIDIA H100 80GB HBM3", "GH100", "hopper", "9.0"),
    "b200": ("NVIDIA B200", "GB100", "blackwell", "10.0"),
    "b300": ("NVIDIA B300", "GB110", "blackwell", "10.3"),
    "pro6000": ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "GB202", "blackwell", "12.0"),
    "gb10": ("NVIDIA GB10", "GB20B", "blackwell", "12.1"),
}


def machine(
    *cards: str,
    system: str = "ubuntu 24.04",
    arch: str = "x86_64",
    driver: str | None = None,
    secure_boot: bool = False,
    gcc: str | None = None,
    glibc: str | None = None,
    kernel: str = "6.8.0-50-generic",
    wsl: bool = False,
    container: str = "none",
) -> Machine:
    """Return a machine with these cards."""
    found = tuple(
        Accelerator(
            address=f"0000:0{at + 1}:00.0",
            vendor="nvidia",
            pci_id="10de:0000",
            name=CARDS[card][0],
            chip=CARDS[card][1],
            architecture=CARDS[card][2],
            compute_capability=CARDS[card][3],
        )
        for at, card in enumerate(cards)
    )
    name, _, version = system.partition(" ")
    return Machine(
        os=Os(id=name, version=version or None, kernel=kernel, arch=arch, gcc=gcc, glibc=glibc, wsl=wsl, container=container),
        firmware=Firmware(secure_boot="enabled" if secure_boot else "disabled"),
        accelerators=found,
        driver=Driver(state="working", kernel_version=driver, library_version=driver) if driver else Driver(state="absent"),
    )


def profile(**answers: str) -> Profile:
    """Return answers; `driver_branch="580"` sets `driver.branch`, a name without a table is a framework's."""
    tables = ("driver", "toolkit", "environment")
    patch = {}
    for key, value in answers.items():
        table, _, name = key.partition("_")
        patch[f"{table}.{name}" if table in tables and name else f"frameworks.{key.replace('_', '-')}"] = value
    return answered(Profile(), patch)


def errors(found: Machine, answers: Profile) -> set[str]:
    """Return the codes of severity error."""
    return {finding.code for finding in judge(found, answers) if finding.severity == "error"}


def severity(found: Machine, answers: Profile, code: str) -> str | None:
    """Return the severity of one finding, `None` when it is not found."""
    return next((finding.severity for finding in judge(found, answers) if finding.code == code), None)


OPEN = {"driver_flavor": "open"}
CLOSED = {"driver_flavor": "proprietary"}


@pytest.mark.parametrize(
    ("cards", "answers", "code"),
    [
        pytest.param(("5090",), {"driver_branch": "580", **CLOSED}, "gpu-needs-open-module", id="blackwell-closed"),
        pytest.param(("gb10",), {"driver_branch": "580", **CLOSED}, "gpu-needs-open-module", id="gb10-closed"),
        pytest.param(("gh200",), {"driver_branch": "580", **CLOSED}, "gpu-needs-open-module", id="grace-hopper-closed"),
        pytest.param(("p100",), {"driver_branch": "580", **OPEN}, "gpu-lacks-open-module", id="pascal-open"),
        pytest.param(("v100",), {"driver_branch": "580", **OPEN}, "gpu-lacks-open-module", id="volta-open"),
        pytest.param(("gtx980",), {"driver_branch": "595", **CLOSED}, "gpu-unsupported-by-driver", id="maxwell-595"),
        pytest.param(("v100",), {"driver_branch": "590", **CLOSED}, "gpu-unsupported-by-driver", id="volta-590"),
        pytest.param(("k80",), {"driver_branch": "535", **CLOSED}, "gpu-unsupported-by-driver", id="kepler-535"),
        pytest.param(("5090",), {"driver_branch": "550", **OPEN}, "gpu-too-new-for-driver", id="blackwell-550"),
        pytest.param(("4090",), {"driver_branch": "515", **CLOSED}, "gpu-too-new-for-driver", id="ada-515"),
        pytest.param(("3090", "k80"), {"driver_branch": "470", **CLOSED}, None, id="ampere-and-kepler-470"),
        pytest.param(("4090", "k80"), {}, "gpus-need-different-drivers", id="ada-and-kepler"),
        pytest.param(("5090", "p40"), {}, "gpus-need-different-drivers", id="blackwell-and-pascal"),
        pytest.param(("4090",), {"driver_branch": "620", **CLOSED, "driver_source": "nvidia-repo"}, "driver-not-offered", id="620-closed"),
        pytest.param(("k80",), {"driver_branch": "470", **OPEN}, "driver-not-offered", id="470-open"),
        pytest.param(("4090",), {"driver_branch": "620", **OPEN, "driver_source": "distro"}, "driver-not-offered", id="620-from-noble"),
        pytest.param(("p40",), {"toolkit_cuda": "13.0"}, "gpu-unsupported-by-cuda", id="pascal-cuda13"),
        pytest.param(("k80",), {"toolkit_cuda": "12.0"}, "gpu-unsupported-by-cuda", id="kepler-cuda12"),
        pytest.param(("3090", "p40"), {"toolkit_cuda": "13.0"}, "gpu-unsupported-by-cuda", id="mixed-cuda13"),
        pytest.param(("5090",), {"toolkit_cuda": "12.6"}, "gpu-too-new-for-cuda", id="blackwell-cuda126"),
        pytest.param(("gb10",), {"toolkit_cuda": "12.8"}, "gpu-too-new-for-cuda", id="gb10-cuda128"),
        pytest.param(("4090",), {"driver_branch": "550", **OPEN, "toolkit_cuda": "13.0"}, "driver-too-old-for-cuda", id="550-cuda13"),
        pytest.param(("4090",), {"toolkit_cuda": "12.4"}, "cuda-not-for-distro", id="noble-cuda124"),
        pytest.param(("v100",), {"toolkit_cuda": "12.9", "toolkit_cudnn": "9.11"}, "gpu-unsupported-by-cudnn", id="volta-cudnn911"),
        pytest.param(("4090",), {"toolkit_cuda": "13.0", "toolkit_cudnn": "9.10"}, "cudnn-cuda-mismatch", id="cudnn910-cuda13"),
        pytest.param(("4090",), {"toolkit_cuda": "13.0", "toolkit_nccl": "2.26"}, "nccl-cuda-mismatch", id="nccl226-cuda13"),
        pytest.param(("4090",), {"toolkit_cudnn": "9.10", "toolkit_cuda": "none"}, "cudnn-cuda-mismatch", id="cudnn-without-cuda"),
        pytest.param(("5090",), {"torch": "2.6.0", "variant": "cu124"}, "wheel-lacks-gpu-kernels", id="blackwell-cu124"),
        pytest.param(("5090",), {"torch": "2.14.1", "variant": "cu126"}, "wheel-lacks-gpu-kernels", id="blackwell-cu126"),
        pytest.param(("p40",), {"torch": "2.7.1", "variant": "cu128"}, "wheel-lacks-gpu-kernels", id="pascal-cu128"),
        pytest.param(("v100",), {"torch": "2.14.1"}, "wheel-lacks-gpu-kernels", id="volta-default-wheel"),
        pytest.param(("v100",), {"torch": "2.7.1", "variant": "cu128"}, "wheel-lacks-gpu-kernels", id="volta-271-cu128"),
        pytest.param(("v100",), {"torch": "2.15.0", "variant": "cu130"}, "wheel-lacks-gpu-kernels", id="volta-215"),
        pytest.param(("k80",), {"torch": "2.7.1", "variant": "cu126"}, "wheel-lacks-gpu-kernels", id="kepler-cu126"),
        pytest.param(("4090",), {"torch": "2.14.1", "variant": "cu118"}, "no-such-variant", id="214-cu118"),
        pytest.param(("4090",), {"torch": "2.8.0", "environment_python": "3.14"}, "no-wheel-for-python", id="28-python314"),
        pytest.param(("4090",), {"tensorflow": "2.21.0", "environment_python": "3.14"}, "no-wheel-for-python", id="tf-python314"),
        pytest.param(("4090",), {"jax": "0.12.0.1", "environment_python": "3.11"}, "no-wheel-for-python", id="jax-python311"),
        pytest.param(("4090",), {"tensorflow_gpu": "2.12.0"}, "framework-discontinued", id="tensorflow-gpu"),
        pytest.param(("4090",), {"torch": "2.15.0", "variant": "cu132", "tensorflow": "2.21.0"}, "frameworks-conflict", id="torch13-tf12"),
        pytest.param(("4090",), {"torch": "2.10.0", "variant": "cu128", "tensorflow": "2.21.0"}, "frameworks-conflict", id="nccl-pins"),
        pytest.param(("4090",), {"torch": "2.15.0", "variant": "cu132", "vllm": "0.33.0"}, "frameworks-conflict", id="vllm-pins-torch"),
        pytest.param(("4090",), {"torch": "2.1.0", "numpy": "2.0.2"}, "numpy-too-new", id="numpy2-torch21"),
        pytest.param(("4090",), {"torch": "2.7.1", "torchvision": "0.21.0"}, "vision-audio-mismatch", id="vision"),
        pytest.param(("4090",), {"torch": "2.7.1", "torchaudio": "2.6.0"}, "vision-audio-mismatch", id="audio"),
        # --- and the good neighbours of the bad ones
        pytest.param(("5090",), {"driver_branch": "580", **OPEN, "torch": "2.14.1", "variant": "cu130"}, None, id="blackwell-good"),
        pytest.param(("5090",), {"torch": "2.7.0", "variant": "cu128"}, None, id="blackwell-cu128"),
        pytest.param(("p100",), {"driver_branch": "580", **CLOSED, "torch": "2.14.1", "variant": "cu126"}, None, id="pascal-good"),
        pytest.param(
            ("p40",), {"toolkit_cuda": "12.9", "toolkit_cudnn": "9.10", "toolkit_nccl": "2.27"}, None, id="pascal-cuda129-cudnn910"
        ),
        pytest.param(("v100",), {"torch": "2.10.0", "variant": "cu128"}, None, id="volta-210-cu128"),
        pytest.param(("3090", "5090"), {"driver_branch": "580", **OPEN, "torch": "2.14.1", "variant": "cu130"}, None, id="3090-and-5090"),
        pytest.param(("3090", "p40"), {"driver_branch": "580", **CLOSED, "torch": "2.14.1", "variant": "cu126"}, None, id="3090-and-p40"),
        pytest.param(("t4",), {"driver_branch": "620", **OPEN, "driver_source": "nvidia-repo", "torch": "2.14.1"}, None, id="turing-620"),
        pytest.param(
            ("4090",), {"torch": "2.14.1", "variant": "cu130", "jax": "0.12.0.1", "environment_python": "3.12"}, None, id="torch-and-jax"
        ),
        pytest.param(("4090",), {"tensorflow": "2.21.0", "environment_python": "3.12"}, None, id="tensorflow-alone"),
        pytest.param(("4090",), {"torch": "2.14.0", "torchvision": "0.29.0", "torchaudio": "2.11.0"}, None, id="trio"),
        pytest.param(("4090",), {"torch": "2.1.0", "numpy": "1.26.4", "environment_python": "3.11"}, None, id="numpy1-torch21"),
    ],
)
def test_the_combination_is_judged(cards: tuple[str, ...], answers: dict[str, str], code: str | None) -> None:
    found = errors(machine(*cards), profile(**answers))

    assert found == set() if code is None else code in found


@pytest.mark.parametrize(
    ("installed", "wheel", "forbidden"),
    [("535.183.01", ("2.14.1", "cu130"), True), ("535.183.01", ("2.14.1", "cu126"), False), ("470.256.02", ("2.7.1", "cu118"), False)],
)
def test_an_installed_driver_is_held_against_the_wheel(installed: str, wheel: tuple[str, str], forbidden: bool) -> None:
    found = errors(machine("3090", driver=installed), profile(torch=wheel[0], variant=wheel[1]))

    assert ("driver-too-old-for-wheel" in found) is forbidden


def test_the_stack_of_the_2023_article_is_valid() -> None:
    found = machine("3090", system="ubuntu 20.04", driver="515.105.01", gcc="9.4.0")
    answers = profile(torch="2.0.1", variant="cu117", toolkit_cuda="11.7", toolkit_cudnn="8.9", environment_python="3.9")

    assert errors(found, answers) == set()


@pytest.mark.parametrize(
    ("system", "gcc", "glibc", "cuda", "code"),
    [
        ("debian 13", None, None, "12.9", "host-glibc-too-new"),
        ("ubuntu 24.04", "14.2.0", None, "12.5", "host-compiler-too-new"),
        ("ubuntu 24.04", "13.3.0", None, "12.5", None),
        ("ubuntu 22.04", "11.4.0", None, "12.8", None),
        ("debian 12", "12.2.0", "2.36", "12.8", None),
    ],
)
def test_the_toolkit_must_compile_here(system: str, gcc: str | None, glibc: str | None, cuda: str, code: str | None) -> None:
    found = errors(machine("3090", system=system, gcc=gcc, glibc=glibc), profile(toolkit_cuda=cuda))

    assert found == set() if code is None else code in found


@pytest.mark.parametrize(
    ("glibc", "framework", "version", "code"),
    [
        ("2.27", "torch", "2.7.0", "glibc-too-old"),
        ("2.31", "torch", "2.14.1", None),
        ("2.17", "torch", "2.6.0", None),
        ("2.17", "tensorflow", "2.21.0", "glibc-too-old"),
        ("2.31", "vllm", "0.20.2", "glibc-too-old"),
    ],
)
def test_the_c_library_must_be_new_enough(glibc: str, framework: str, version: str, code: str | None) -> None:
    found = errors(machine("3090", glibc=glibc), profile(**{framework: version}))

    assert ("glibc-too-old" in found) is (code is not None)


def test_a_wheel_that_lacks_one_of_two_cards_is_a_warning() -> None:
    answers = profile(torch="2.14.1", variant="cu130", driver_branch="580", driver_flavor="proprietary")

    assert severity(machine("3090", "p40"), answers, "wheel-lacks-gpu-kernels") == "warning"


def test_minor_version_compatibility_is_a_warning() -> None:
    answers = profile(driver_branch="580", driver_flavor="open", toolkit_cuda="13.2")

    assert severity(machine("4090"), answers, "minor-version-compatibility") == "warning"


@pytest.mark.parametrize(
    ("card", "driver", "cuda", "codes"),
    [
        ("a100", "535.183.01", "13.0", {"cuda-forward-compat-only"}),
        ("a100", "570.172.08", "13.2", {"cuda-forward-compat-only"}),
        # 525 and 545 are on no list of CUDA 13; which drivers the package of 13.5 works on is not known.
        ("a100", "525.147.05", "13.0", {"driver-too-old-for-cuda"}),
        ("a100", "535.183.01", "13.5", {"driver-too-old-for-cuda"}),
        ("a100", "470.256.02", "12.8", {"cuda-forward-compat-only"}),
        ("a100", "580.95.05", "13.2", {"minor-version-compatibility"}),
        ("4090", "535.183.01", "13.0", {"driver-too-old-for-cuda"}),
        ("4090", "580.95.05", "13.0", set()),
    ],
)
def test_forward_compatibility_is_for_data_center_cards_and_listed_drivers(card: str, driver: str, cuda: str, codes: set[str]) -> None:
    here = machine(card, system="ubuntu 22.04", driver=driver)
    about = {"cuda-forward-compat-only", "driver-too-old-for-cuda", "minor-version-compatibility"}

    assert {one.code for one in judge(here, profile(toolkit_cuda=cuda))} & about == codes


def test_what_a_newer_driver_library_bears_counts_for_wheels_too() -> None:
    here = machine("a100", system="ubuntu 22.04", driver="535.183.01")
    wheel = {"torch": "2.14.1", "variant": "cu130"}

    assert "driver-too-old-for-wheel" in errors(here, profile(**wheel))
    assert errors(here, profile(**wheel, toolkit_cuda="13.0")) == set()


def test_a_branch_past_its_end_is_a_warning() -> None:
    assert severity(machine("4090"), profile(driver_branch="570", driver_flavor="open"), "driver-end-of-life") == "warning"
    assert severity(machine("4090"), profile(driver_branch="580", driver_flavor="open"), "driver-end-of-life") is None


def test_secure_boot_wants_signed_modules() -> None:
    found = machine("4090", secure_boot=True)
    answers = {"driver_branch": "580", "driver_flavor": "open"}

    assert severity(found, profile(**answers, driver_source="nvidia-repo"), "secure-boot-unsigned-module") == "warning"
    assert severity(found, profile(**answers, driver_source="distro"), "secure-boot-unsigned-module") is None


def test_no_linux_driver_goes_into_wsl_or_a_container() -> None:
    answers = profile(driver_branch="580", driver_flavor="open")

    assert "wsl-no-linux-driver" in errors(machine("3090", system="ubuntu 22.04", wsl=True), answers)
    assert "container-uses-host-driver" in errors(machine("3090", container="docker"), answers)


def test_a_kernel_newer_than_the_driver_knows_is_an_error() -> None:
    found = machine("3090", system="debian 13", kernel="7.3.0-1-amd64")

    assert "kernel-too-new-for-driver" in errors(found, profile(driver_branch="580", driver_flavor="open", driver_source="nvidia-repo"))


def test_mixed_installs_and_missing_headers_are_said() -> None:
    mixed = machine("3090", driver="580.95.05")
    mixed = msgspec.structs.replace(mixed, driver=msgspec.structs.replace(mixed.driver, source="mixed"))

    assert severity(mixed, Profile(), "mixed-driver-install") == "warning"


def test_what_is_unknown_is_said_and_never_guessed() -> None:
    odd = Machine(
        os=Os(id="plan9", version="4", arch="x86_64", container="none"),
        accelerators=(Accelerator(address="0000:01:00.0", vendor="nvidia", pci_id="10de:3f01"),),
        driver=Driver(state="absent"),
    )
    answers = profile(driver_branch="999", driver_flavor="open", toolkit_cuda="14.0", torch="9.9.9", environment_python="3.99")
    found = {(finding.code, finding.severity) for finding in judge(odd, answers)}

    assert {("unknown-hardware", "info"), ("unknown-distro", "info"), ("unknown-version", "info")} <= found
    assert not {code for code, how in found if how == "error"}


def test_aarch64_has_its_own_kernels() -> None:
    assert errors(machine("gb10", arch="aarch64"), profile(torch="2.14.1", variant="cu130", environment_python="3.12")) == set()
    assert errors(machine("gh200", arch="aarch64"), profile(torch="2.14.1", variant="cu130", environment_python="3.12")) == set()
    assert "no-wheel-for-platform" in errors(machine("3090", arch="riscv64"), profile(torch="2.14.1"))


def test_every_finding_says_why_and_where_it_is_written() -> None:
    found = judge(
        machine("5090"), profile(driver_branch="580", driver_flavor="proprietary", torch="2.6.0", variant="cu124", toolkit_cuda="12.6")
    )
    serious = [finding for finding in found if finding.severity == "error"]

    assert len(serious) >= 3
    assert all(finding.because and finding.source and finding.subject for finding in serious)
