"""Taking out of a recording what names a person, a machine or a place, the same value always by the same stand-in."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable

from steps.host.base import Host
from steps.host.credentials import without_credentials

_UUID = re.compile(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b")
_KNOWN_UUIDS = frozenset(("8be4df61-93ca-11d2-aa0d-00e098032b8c", "605dab50-e046-4300-abb6-3dd810dd8b23"))
"""Names of EFI variables, the same on every machine."""
_HARDWARE = re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{2}:){5}(?:(?:[0-9a-fA-F]{2}:){14})?[0-9a-fA-F]{2}(?![\w:])")
_SERIAL = re.compile(
    r"^\s*(?:Serial Number|Serial|Asset Tag|Chassis Serial Number|GPU PDI|node_guid|sys_image_guid|(?:Node|Port|System image) GUID)\s*[:=]"
    r"\s*(\S.*?)\s*$|\bSerialNumber: (\S+)\s*$|<serial>\s*([^<\s]+)\s*</serial>"
    r"|\bDevice Serial Number ([0-9a-f]{2}(?:-[0-9a-f]{2}){7})\s*$",
    re.MULTILINE | re.IGNORECASE,
)
_MACHINE_ID = re.compile(r"(?<![\w.])[0-9a-f]{32}(?![\w.])")
"""What systemd calls a machine, a boot or a medium."""
_ADDRESS = re.compile(
    r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d|-[A-Za-z])|(?<![\w.:])(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}(?![\w:])"
)
"""What may be an address; four numbers with a word behind them (`5.15.167.4-microsoft-standard-WSL2`) are a version."""
_NO_SERIAL = re.compile(
    r"(\[?n/a\]?|not (specified|present|available|provided)|unknown|none|to be filled.*|default string|\W*|0+|no asset .*|.{1,3})",
    re.IGNORECASE,
)
_NAMED_BY_ADDRESS = re.compile(r"(?<!\w)((?:en|wl)x)([0-9a-f]{12})(?!\w)")
"""An interface that is called by its hardware address."""
_NOBODYS = ("/usr/", "/opt/rocm", "/sys/", "/proc/", "/lib/", "/bin/", "/sbin/")
_SERIAL_FILES = ("product_serial", "product_uuid", "board_serial", "chassis_serial", "chassis_asset_tag", "board_asset_tag")
_COMMON = frozenset(
    (
        "ubuntu",
        "debian",
        "fedora",
        "centos",
        "rhel",
        "rocky",
        "almalinux",
        "opensuse",
        "suse",
        "arch",
        "linux",
        "kernel",
        "nvidia",
        "cuda",
        "amd",
        "intel",
        "gpu",
        "root",
        "localhost",
        "host",
        "docker",
        "server",
        "vm",
        "kvm",
        "qemu",
        "lxc",
        "admin",
        "user",
        "test",
        "none",
        "unknown",
        "disk",
        "ssd",
        "node",
        "module",
        "system",
    )
)
"""Words that mean something else in what a machine prints: as a name they are only taken out where a name stands."""


class Redaction:
    """The stand-ins for one recording; literal values are those of the host, patterns find those that only outputs name."""

    def __init__(self, host: Host, outputs: Iterable[str], addressed: Iterable[str] = ()) -> None:
        """Learn what to take out; what looks like an address in the `addressed` texts is one, and no version of four numbers."""
        self._stand_ins: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._names: list[tuple[re.Pattern[str], str]] = []
        self._paths: list[tuple[re.Pattern[str], str]] = []
        everything = "\n".join(outputs)
        for name, kind in ((host.name, "host"), *((user, "user") for user in _users(host, everything))):
            self._add_name(name, kind)
        for file in _SERIAL_FILES:
            self._add_serial(host.read(f"/sys/class/dmi/id/{file}") or "")
        for values in _SERIAL.findall(everything):
            self._add_serial("".join(values))
        for address in _addresses(host, everything):
            self._add_address(address)
        for text in addressed:
            for address in _ADDRESS.findall(text):
                self._add_address(address)

    def _next(self, kind: str) -> int:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return self._counts[kind]

    def _add_name(self, name: str, kind: str) -> None:
        """Take a host or user name out wherever it stands as a word; a common word only where a name is expected."""
        short = name.partition(".")[0] if kind == "host" else name
        if not short or short == "root":
            return
        number = self._next(kind)
        stand_in = kind if number == 1 else f"{kind}{number}"
        self._paths.append((re.compile(rf"(?<=/home/){re.escape(short)}(?![\w.-])"), stand_in))
        if kind == "host":
            # Where only the name of a machine stands: `uname`, the journal, and the key that a distribution makes for its modules.
            for pattern in (r"(?<=^Linux ){}(?= )", r"(?<=\d\] ){}(?= kernel: )", r"(?<![\w.-]){}(?= Secure Boot Module Signature key)"):
                self._names += [(re.compile(pattern.format(re.escape(spelled)), re.MULTILINE), stand_in) for spelled in (name, short)]
        if short.lower() in _COMMON or len(short) < 3:
            self._names.extend(self._paths[-1:])
            return
        for spelled in dict.fromkeys((name, short)):
            self._names.append((re.compile(rf"(?<![\w.]){re.escape(spelled)}(?![\w])"), stand_in))
        self._paths.append((re.compile(rf"(?<![\w.-]){re.escape(short)}(?![\w.-])"), stand_in))

    def _add_serial(self, value: str) -> None:
        value = value.strip()
        if value and not _NO_SERIAL.fullmatch(value) and value not in self._stand_ins and not _UUID.fullmatch(value):
            self._stand_ins[value] = f"SERIAL{self._next('serial'):04d}"

    def _add_address(self, address: str) -> None:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return
        if parsed.is_loopback or parsed.is_unspecified or parsed.is_multicast or address in self._stand_ins:
            return
        if parsed.version == 4:
            self._stand_ins[address] = f"198.51.100.{self._next('v4') % 250 + 1}"
        elif parsed.is_link_local:
            self._stand_ins[address] = f"fe80::{self._next('v6'):x}"
        else:
            self._stand_ins[address] = f"2001:db8::{self._next('v6'):x}"

    def _stand_in(self, value: str, make: Callable[[], str]) -> str:
        key = value.lower()
        if key not in self._stand_ins:
            self._stand_ins[key] = make()
        return self._stand_ins[key]

    def _uuid(self, found: re.Match[str]) -> str:
        if found[0].lower() in _KNOWN_UUIDS:
            return found[0]
        return self._stand_in(found[0], lambda: f"00000000-0000-4000-8000-{self._next('uuid'):012x}")

    def _hardware(self, found: re.Match[str]) -> str:
        octets = found[0].count(":") + 1
        if set(found[0].lower()) <= set("0:") or set(found[0].lower()) <= set("f:"):
            return found[0]

        def made() -> str:
            number = self._next("mac")
            return ":".join(["02", *["00"] * (octets - 3), f"{number >> 8 & 255:02x}", f"{number & 255:02x}"])

        return self._stand_in(found[0], made)

    def _interface(self, found: re.Match[str]) -> str:
        spelled = ":".join(found[2][at : at + 2] for at in range(0, 12, 2))
        return found[1] + _HARDWARE.sub(self._hardware, spelled).replace(":", "")

    def text(self, text: str) -> str:
        """Return `text` with everything taken out."""
        text = without_credentials(text)
        text = _NAMED_BY_ADDRESS.sub(self._interface, text)
        text = _UUID.sub(self._uuid, text)
        text = _MACHINE_ID.sub(lambda found: self._stand_in(found[0], lambda: f"{self._next('id'):032x}"), text)
        text = _HARDWARE.sub(self._hardware, text)
        # The longest first: an address may be the beginning of another.
        for value in sorted((value for value in self._stand_ins if value in text), key=len, reverse=True):
            text = re.sub(rf"(?<![\w.]){re.escape(value)}(?![\w]|\.\d)", self._stand_ins[value], text)
        for pattern, stand_in in self._names:
            text = pattern.sub(stand_in, text)
        return text

    def path(self, path: str) -> str:
        """Return a path or command line with names of people and machines taken out.

        Where programs and devices live no person has a folder: somebody called git must not rename /usr/bin/git.
        """
        path = _NAMED_BY_ADDRESS.sub(self._interface, path)
        if path.startswith(_NOBODYS):
            return path
        for pattern, stand_in in self._paths:
            path = pattern.sub(stand_in, path)
        return path


def _users(host: Host, outputs: str) -> tuple[str, ...]:
    """Return the names of people's accounts: of this machine's list, and of home folders, for a directory service has others."""
    found = [*(host.listdir("/home") or ()), *re.findall(r"/home/([\w.-]+)", outputs)]
    found += [host.run(("printenv", name)).stdout.strip() for name in ("USER", "LOGNAME", "SUDO_USER")]
    for line in (host.read("/etc/passwd") or "").splitlines():
        cells = line.split(":")
        if len(cells) > 5 and re.fullmatch(r"[0-9]{1,10}", cells[2]) and (1000 <= int(cells[2]) < 60000 or cells[5].startswith("/home/")):
            found.append(cells[0])
    return tuple(dict.fromkeys(name for name in found if name not in ("", "nobody", "lost+found")))


def _addresses(host: Host, outputs: str) -> tuple[str, ...]:
    """Return the network addresses of the host: those that `ip` printed and those the kernel lists."""
    found = re.findall(r'"(?:local|address|broadcast|gateway|dst)":\s*"([0-9a-fA-F.:]+)"', outputs)
    found += re.findall(r"\b(\d{1,3}(?:\.\d{1,3}){3})/\d+\b", outputs)
    found += re.findall(r"\b(\d{1,3}(?:\.\d{1,3}){3})\n\s+/32 host LOCAL", host.read("/proc/net/fib_trie") or "")
    return tuple(dict.fromkeys(found))
