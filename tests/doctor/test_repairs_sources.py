"""Repairs of package sources fetch only what the tables name, and leave what others put there."""

from __future__ import annotations

from fnmatch import fnmatch

import pytest

from steps import medical
from steps.doctor.diagnosis import Repair
from steps.model.action import Run, Write
from steps.text import say
from tests.doctor import kit
from tests.doctor.test_repairs_system import keys, repaired, seen

CUDA = "developer.download.nvidia.com/compute/cuda/repos"
_MISSING = "W: GPG error: {} InRelease: The following signatures couldn't be verified: NO_PUBKEY A4B469963BF863CC\n"
_WEAK = (
    "W: OpenPGP signature verification failed: {} InRelease: Sub-process /usr/bin/sqv returned an error code (1), error message is: "
    "Signing key on EB693B3035CD5710E231E123A4B469963BF863CC is not bound: No binding signature at time 2026-01-29T20:38:07Z "
    "because: SHA1 is not considered secure since 2026-02-01T00:00:00Z\n"
)
UBUNTU, DEBIAN = 'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="{}"\n', 'ID=debian\nVERSION_ID="{}"\n'


def judged(log: str, release: str, files: dict[str, str] | None = None) -> tuple[str, Repair]:
    told = {"/etc/os-release": release, **(files or {})}
    cause = kit.judged(files=told, logs={"apt.log": log}, commands={"uname -m": "x86_64\n", "dpkg -l": "ii  apt 2.7 amd64 x\n"}).cause
    assert cause is not None
    return cause.id, cause.repair


def fetched(repair: Repair) -> list[str]:
    """Return every address that a command or a file of the repair holds."""
    texts = [
        " ".join(action.argv) if isinstance(action, Run) else action.text or ""
        for step in repair.steps
        for action in step.actions
        if isinstance(action, Run | Write)
    ]
    return [word for text in texts for word in text.split() if "://" in word]


# --- the key of NVIDIA's repository -----------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        f"http://evil.example/{CUDA}/ubuntu2404/x86_64",
        f"https://{CUDA.replace('/', '.evil.example/', 1)}/ubuntu2404/x86_64",
        f"https://{CUDA.split('/', maxsplit=1)[0]}@evil.example/{CUDA}/ubuntu2404/x86_64",
        f"ftp://{CUDA}/ubuntu2404/x86_64",
    ],
)
def test_a_key_is_never_fetched_from_where_a_log_says(address: str) -> None:
    id, repair = judged(_MISSING.format(address), UBUNTU.format("24.04"))
    assert id == "apt-repo-key-rotated"
    assert fetched(repair) == []
    assert keys(repair) == ["key-by-hand", "refresh"]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_key_of_this_systems_repository_is_fetched_from_nvidia_by_https(scheme: str) -> None:
    _, repair = judged(_MISSING.format(f"{scheme}://{CUDA}/ubuntu2404/x86_64"), UBUNTU.format("24.04"))
    assert keys(repair) == ["repository-anew"]
    assert fetched(repair)
    assert all(address.startswith(f"https://{CUDA}/ubuntu2404/x86_64/") for address in fetched(repair))


def test_a_repository_of_nvidias_that_is_neither_this_systems_nor_here_is_not_added() -> None:
    line = _MISSING.format(f"https://{CUDA}/wsl-ubuntu/x86_64")
    _, absent = judged(line, UBUNTU.format("24.04"))
    there = {"/etc/apt/sources.list.d/cuda.list": f"deb https://{CUDA}/wsl-ubuntu/x86_64 /\n"}
    _, present = judged(line, UBUNTU.format("24.04"), there)
    assert fetched(absent) == []
    assert keys(present) == ["entry-aside", "repository-anew"]
    assert all(address.startswith(f"https://{CUDA}/wsl-ubuntu/x86_64/") for address in fetched(present))


# --- a key that SHA-1 binds -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "token", "id"),
    [
        (UBUNTU.format("22.04"), "debian12", "repo-for-other-distro"),
        (DEBIAN.format("13"), "debian12", "repo-for-other-distro"),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"\nVERSION_ID="22"\n', "debian12", "repo-for-other-distro"),
        (DEBIAN.format("12"), "debian12", "apt-repo-key-rotated"),
        (UBUNTU.format("24.04"), "ubuntu2404", "apt-repo-key-rotated"),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"\nVERSION_ID="22"\n', "ubuntu2404", "apt-repo-key-rotated"),
    ],
)
def test_debians_repository_is_not_ubuntus(release: str, token: str, id: str) -> None:
    said, repair = judged(_WEAK.format(f"https://{CUDA}/{token}/x86_64"), release)
    assert said == id
    if token == "debian12":
        assert not any("debian12" in address for address in fetched(repair))


def test_no_keyring_is_offered_where_the_vendor_has_no_younger_key() -> None:
    _, repair = judged(_WEAK.format(f"https://{CUDA}/debian12/x86_64"), DEBIAN.format("12"))
    assert keys(repair) == ["key-policy", "refresh"]
    assert not repair.steps[0].actions


def test_the_key_of_a_repository_with_a_younger_one_is_taken_anew() -> None:
    _, repair = judged(_WEAK.format(f"https://{CUDA}/debian13/x86_64"), DEBIAN.format("13"))
    assert keys(repair) == ["repository-anew"]


def test_the_place_of_another_releases_entry_is_taken_by_this_systems() -> None:
    there = {"/etc/apt/sources.list.d/cuda.list": f"deb https://{CUDA}/debian12/x86_64 /\n"}
    _, repair = judged(_WEAK.format(f"https://{CUDA}/debian12/x86_64"), DEBIAN.format("13"), there)
    assert keys(repair) == ["entry-aside", "repository-anew"]
    assert all(address.startswith(f"https://{CUDA}/debian13/x86_64/") for address in fetched(repair))


# --- one driver, two archives -----------------------------------------------------------------------


def pinned(rows: str, chosen: str) -> list[tuple[str, str]]:
    """Return the pin's globs and its priority, one pair for each pin."""
    repair = repaired(seen({"dpkg -l": rows}), "two-repos-same-branch", wanted="550.120-0ubuntu1", chosen=chosen)
    texts = [action.text or "" for step in repair.steps for action in step.actions if isinstance(action, Write)]
    return [(text.split("Package: ")[1].splitlines()[0], text.split("Pin-Priority: ")[1].strip()) for text in texts]


_OF_UBUNTU, _OF_NVIDIA = "550.120-0ubuntu0.22.04.1", "550.90.07-0ubuntu1"


@pytest.mark.parametrize(
    ("installed", "chosen", "priority"),
    [
        ((_OF_NVIDIA,), _OF_UBUNTU, "900"),
        ((_OF_UBUNTU,), _OF_NVIDIA, "-1"),
        ((), _OF_UBUNTU, "-1"),
        ((), _OF_NVIDIA, "900"),
        ((_OF_NVIDIA, _OF_UBUNTU), _OF_UBUNTU, None),
    ],
)
def test_the_driver_stays_with_the_archive_that_it_is_from(installed: tuple[str, ...], chosen: str, priority: str | None) -> None:
    names = ("nvidia-driver-550", "libnvidia-compute-550")
    rows = "".join(f"ii  {name} {version} amd64 x\n" for name, version in zip(names, installed * 2, strict=False)) or "ii  bash 5 amd64 x\n"
    assert [one for _, one in pinned(rows, chosen)] == ([] if priority is None else [priority])


def test_only_the_drivers_own_packages_are_pinned() -> None:
    globs = pinned("ii  bash 5 amd64 x\n", _OF_UBUNTU)[0][0].split()

    def taken(name: str) -> bool:
        return any(fnmatch(name, glob) for glob in globs)

    driver = (
        "nvidia-driver-550 nvidia-driver-550-server-open nvidia-dkms-550 nvidia-kernel-source-550 nvidia-kernel-common-550 "
        "nvidia-utils-550 nvidia-headless-no-dkms-550 nvidia-compute-utils-550 nvidia-firmware-550-550.120 libnvidia-compute-550 "
        "libnvidia-cfg1-550 libnvidia-common-550 libnvidia-decode-550 libnvidia-encode-550 libnvidia-extra-550 libnvidia-fbc1-550 "
        "libnvidia-gl-550 cuda-drivers cuda-drivers-550 nvidia-open nvidia-open-580 libcuda1 nvidia-driver-cuda libnvidia-ml1 "
        "libnvidia-ptxjitcompiler1 libnvidia-nvvm4 xserver-xorg-video-nvidia-550 linux-modules-nvidia-550-generic "
        "nvidia-persistenced nvidia-modprobe nvidia-settings libxnvctrl0"
    )
    others = (
        "nvidia-container-toolkit nvidia-container-toolkit-base nvidia-container-runtime libnvidia-container1 "
        "libnvidia-container-tools nvidia-fabricmanager-550 cuda-drivers-fabricmanager-550 libnvidia-nscq-550 nvidia-imex-550 "
        "nvidia-docker2 nvidia-cuda-toolkit cuda-toolkit-12-8 libnccl2 libcudnn9-cuda-12 libnvidia-egl-wayland1 nvidia-prime nvidia-fs "
        "nvidia-gds nvidia-cudnn nvidia-peermem-dkms"
    )
    assert [name for name in driver.split() if not taken(name)] == []
    assert [name for name in others.split() if taken(name)] == []


# --- by hand ----------------------------------------------------------------------------------------


def test_a_printed_repair_is_followed_line_by_line() -> None:
    told = {"/etc/os-release": UBUNTU.format("24.04")}
    log = _MISSING.format(f"https://{CUDA}/ubuntu2404/x86_64")
    verdict = kit.judged(files=told, logs={"apt.log": log}, commands={"uname -m": "x86_64\n", "dpkg -l": "ii  apt 2.7 amd64 x\n"})
    assert verdict.cause is not None
    shown = [line.strip() for line in medical.repair(verdict.cause, "en") if line.strip().startswith(("$ ", "> "))]
    order = [
        "download-file",
        "dpkg-deb --extract",
        "cuda-archive-keyring.* /etc/apt/keyrings",
        "> /etc/apt/sources.list.d",
        "> /etc/apt/pref",
    ]
    assert [next(at for at, line in enumerate(shown) if words in line) for words in (*order, "apt-get update")] == list(range(6))
    step = medical.document(verdict, "en")["diagnoses"][0]["fix"][0]
    assert [tuple(part) for part in step["parts"]] == [("command",)] * 3 + [("path", "text")] * 2 + [("command",)]


def test_an_archive_that_is_there_gets_no_second_entry() -> None:
    there = {
        "/etc/apt/sources.list.d/old.list": f"deb https://{CUDA}/ubuntu2204/x86_64 /\n",
        "/etc/apt/sources.list.d/cuda.list": f"deb [signed-by=/usr/share/keyrings/k.gpg] https://{CUDA}/ubuntu2404/x86_64/ /\n",
    }
    _, repair = judged(_MISSING.format(f"https://{CUDA}/ubuntu2204/x86_64"), UBUNTU.format("24.04"), there)
    assert keys(repair) == ["entry-aside", "refresh"]


# --- two keys ---------------------------------------------------------------------------------------

_CONFLICT = "Conflicting values set for option Signed-By regarding source"


@pytest.mark.parametrize(
    ("keys_named", "because"),
    [
        ("/usr/share/keyrings/a.gpg != ", "one with /usr/share/keyrings/a.gpg, the other with none."),
        ("/usr/share/keyrings/a.gpg !=", "one with /usr/share/keyrings/a.gpg, the other with none."),
        (" != /usr/share/keyrings/a.gpg", "one with /usr/share/keyrings/a.gpg, the other with none."),
        ("/a.gpg !=\n/b.gpg", "one with /a.gpg, the other with /b.gpg."),
        (
            "/a.gpg != A4B469963BF863CC!",
            "one with /a.gpg, the other with A4B469963BF863CC!.",
        ),
    ],
)
@pytest.mark.parametrize("words", [_CONFLICT, "In Konflikt stehende Werte für Signed-By bei"])
def test_a_key_that_is_not_named_is_none_and_not_the_next_line(words: str, keys_named: str, because: str) -> None:
    log = f"E: {words} https://{CUDA}/debian12/x86_64/ /: {keys_named}\nE: The list of sources could not be read.\n"
    cause = kit.judged(files={}, logs={"apt.log": log}, commands={}).cause
    assert cause is not None
    assert cause.id == "apt-signed-by-conflict"
    assert say("en", cause.because).endswith(because)
