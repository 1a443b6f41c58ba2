"""Which texts of a machine are read for events: what was recorded, or on a real machine what its logs and services say."""

from __future__ import annotations

import re
from collections.abc import Iterator

from steps.detect import nvml
from steps.detect.probes import Probes
from steps.detect.smi import WSL_SMI
from steps.doctor.events.cleaning import unwrapped
from steps.doctor.events.reading import Reader
from steps.doctor.facts.repositories import sources
from steps.doctor.past import unfinished
from steps.host.captured import pasted, typed
from steps.host.local import NVML

_TABLES = frozenset(("dpkg", "rpm", "lsmod", "lscpu", "lsblk", "dmidecode", "env", "ps", "ip", NVML[0]))
"""Commands whose output is a table of facts and tells no events; our own question to NVML is one, and nvidia-smi says the same in words."""
_LOGS = ("/var/log/", "/var/lib/dkms/", "/var/crash/")
_KERNEL = ("dmesg",)
_KERNEL_AGAIN = ("journalctl", "-k", "-b", "--no-pager", "-o", "short-monotonic")
"""For those who may not read the kernel's ring but the journal."""
_UNITS = ("nvidia-persistenced", "nvidia-fabricmanager")
APT_SOURCES = ("apt-get", "indextargets", "--format", "$(SITE)")
"""Makes apt read its sources, and complain of them, without a lock and without the network; takes half a second."""
_SURE = (("modinfo", "nvidia"), ("systemd-detect-virt",), ("df", "-h"), ("ps", "-eo", "pid,ppid,stat,args"))
"""What every look at a machine asks for: side by side it costs as long as the slowest."""
_FILES = (
    "/var/log/apt/history.log",
    "/var/log/apt/term.log",
    "/var/log/nvidia-installer.log",
    "/var/log/cuda-installer.log",
    "/var/log/fabricmanager.log",
)
_MOST = 4 << 20
"""Of a log on a real machine, the last bytes that are read: what lies further back is another story."""


def ahead(host: Probes) -> None:
    """Start the probes that a real machine is asked for its messages."""
    if not host.host.rehearsal:
        nvml.ahead(host)
        host.ahead(_KERNEL, *(unit(name) for name in _UNITS), *_SURE, timeout=5)
        if _named_twice(host):
            host.ahead(APT_SOURCES, timeout=20)


def unit(name: str) -> tuple[str, ...]:
    """Return the question what a service wrote lately."""
    return ("journalctl", "-u", name, "-b", "-n", "200", "--no-pager", "-o", "cat")


def read(host: Probes, reader: Reader, *, now: bool = False, since: float | None = None) -> None:
    """Read everything that a machine has to tell; of a real one `now` leaves out what was written before `since`."""
    for source, text in _recorded(host) if host.host.rehearsal else _current(host, since) if now else _live(host):
        reader.read(source, text)


def _current(host: Probes, since: float | None) -> Iterator[tuple[str, str]]:
    """Yield what a machine says when it is asked now, and what its kernel said since then."""
    yield from _asked(host)
    yield "dmesg", "\n".join(_after(host, _kernel(host), since))


def _after(host: Probes, text: str, since: float | None) -> Iterator[str]:
    """Yield the lines of the kernel's log from a time on; those without a stamp belong to the line above."""
    boot = re.search(r"^btime (\d+)", host.read("/proc/stat") or "", re.MULTILINE)
    least = since - int(boot[1]) if since is not None and boot is not None else 0.0
    kept = True
    for line in text.splitlines():
        stamp = re.match(r"(?:<\d+>)?\[ *(\d+\.\d+)\]", line)
        kept = float(stamp[1]) >= least if stamp is not None else kept
        if kept:
            yield line


def _kernel(host: Probes) -> str:
    """Return the kernel's log of this boot, by whichever program may read it; what one printed before it failed rather than nothing."""
    kernel = host.run(_KERNEL, timeout=5)
    if kernel.status == 0 and kernel.stdout:
        return kernel.stdout
    journal = host.run(_KERNEL_AGAIN, timeout=5).stdout
    return journal if any(line and not line.startswith("--") for line in journal.splitlines()) else kernel.stdout


def _asked(host: Probes) -> Iterator[tuple[str, str]]:
    """Yield what apt and the driver complain of when they are asked."""
    if _named_twice(host):
        yield "apt-get", host.run(APT_SOURCES, timeout=20).stderr
    yield from _driver(host)


def _named_twice(host: Probes) -> bool:
    """Return whether two files of apt's name one archive: only then can they disagree about its key."""
    files = {(source.url.rstrip("/"), source.place.source) for source in sources(host) if source.place.source.startswith("/etc/apt/")}
    return len({url for url, _ in files}) < len(files)


def _recorded(host: Probes) -> Iterator[tuple[str, str]]:
    told_in_logs = typed(host.host)
    for argv in host.host.recorded():
        if argv and argv[0] not in _TABLES and (argv not in told_in_logs or argv[0] in ("groups", "id")):
            yield " ".join(argv), host.run(argv).text
    for pattern in ("/var/log/*", "/var/log/*/*", "/var/crash/*", "/var/lib/dkms/*/*/build/make.log", "/var/lib/dkms/*/*/*/*/log/make.log"):
        for path in host.glob(pattern):
            if path.startswith(_LOGS) and (text := host.read(path)):
                yield path, unfinished(text) if path.endswith("/term.log") else text
    for name, text in pasted(host.host).items():
        yield name, unwrapped(text)


def _driver(host: Probes) -> Iterator[tuple[str, str]]:
    """Yield what the driver's own tools complain of: of an answer that is whole only its readings count, and those are no events."""
    told = nvml.from_nvml(host.run(NVML, timeout=nvml.SECONDS))
    if told.hangs or (told.gpus and told.trouble is None):
        return
    program = WSL_SMI if host.exists(WSL_SMI) else "nvidia-smi"
    said = host.run((program, "-q"), timeout=nvml.SECONDS)
    if said.status not in (0, 127, None):
        yield program, said.text


def _live(host: Probes) -> Iterator[tuple[str, str]]:
    yield from _asked(host)
    yield "dmesg", _kernel(host)
    for name in _UNITS:
        yield f"journalctl -u {name}", host.run(unit(name), timeout=5).stdout
    for path in (*_FILES, *host.glob("/var/lib/dkms/nvidia*/*/build/make.log"), *host.glob("/var/lib/dkms/amdgpu*/*/build/make.log")):
        if text := host.read(path):
            yield path, unfinished(text[-_MOST:]) if path.endswith("/term.log") else text[-_MOST:]
