"""A log of another machine, beside a machine that is well or has a fault of its own."""

from __future__ import annotations

from tests.doctor.test_past import DIFFERS, FELL_OFF, LOST, verdict

OTHER = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n" + LOST
OWN = LOST.replace("[ 9000.1]", "[ 9100.2]").replace(
    "79, pid=1, GPU has fallen off the bus.", "48, pid=1, An uncorrectable double bit error (DBE)"
)


def test_the_machines_own_fault_goes_before_that_of_a_foreign_log() -> None:
    said = verdict(OTHER, dmesg=OWN)
    assert said.cause is not None
    assert said.foreign is not None
    assert (said.healthy, said.cause.id, said.foreign.beside) == (False, "uncorrectable-memory-error", True)
    beside = [one for one in said.diagnoses if one.id == "gpu-fell-off-bus"]
    assert [(one.part, one.repair.steps) for one in beside] == [("beside", ())]
    alone = verdict(OTHER)
    assert alone.cause is not None
    assert (alone.cause.id, alone.foreign is not None and alone.foreign.beside) == ("gpu-fell-off-bus", False)


def test_a_session_from_wsl_says_nothing_of_bare_metal() -> None:
    wsl = "me@pc:~$ systemd-detect-virt\nwsl\nme@pc:~$ uname -r\n5.15.153.1-microsoft-standard-WSL2\nme@pc:~$ ls /dev/dxg\n/dev/dxg\n"
    said = verdict(wsl)
    assert said.foreign is not None
    assert (said.foreign.what, said.foreign.there) == ("system", "WSL")
    assert said.cause is None or said.cause.repair.steps == ()


def test_a_session_from_another_release_is_of_another_machine() -> None:
    said = verdict('$ cat /etc/os-release\nNAME="Fedora Linux"\nID=fedora\nVERSION_ID=41\n$ dmesg\n' + LOST)
    assert said.foreign is not None
    assert (said.foreign.what, said.foreign.there) == ("system", "fedora 41")


def test_the_versions_that_a_session_prints_tell_whose_it_is() -> None:
    version = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Fri May 31 09:35:42 UTC 2024\n"
    other = verdict(f"$ cat /proc/driver/nvidia/version\n{version.format('550.90.07')}$ dmesg\n{LOST}")
    assert other.foreign is not None
    assert (other.foreign.what, other.foreign.there) == ("driver", "550.90.07")
    assert verdict(f"$ cat /proc/driver/nvidia/version\n{version.format('535.288.01')}$ dmesg\n{LOST}").foreign is None


def test_a_mismatch_of_a_log_is_of_then_where_the_driver_serves_now() -> None:
    said = verdict(f"{DIFFERS}NVML library version: 535.288\n")
    assert said.cause is not None
    assert (said.cause.id, said.cause.known, said.cause.repair.steps) == ("driver-library-mismatch", False, ())


def test_an_old_log_of_the_same_machine_is_still_its_own() -> None:
    assert verdict(FELL_OFF).foreign is None
