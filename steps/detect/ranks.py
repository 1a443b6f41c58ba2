"""What NCCL's ranks meet beside cards and interfaces: shared memory, limits, the firewall, and the files that NCCL reads."""

from __future__ import annotations

import re
from typing import Literal

from steps.detect import infiniband
from steps.detect.probes import Probes
from steps.model.software import Firewall, NcclFile, Ranks

UFW, FIREWALLD = ("ufw", "status", "verbose"), ("firewall-cmd", "--list-all-zones")
NFTABLES, IPTABLES = ("nft", "list", "ruleset"), ("iptables", "-S", "INPUT")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def ranks(host: Probes, memory_bytes: int | None) -> Ranks:
    """Return the facts; `memory_bytes` is the main memory, of which a tmpfs without a size takes half."""
    return Ranks(
        shm_bytes=_shm(host, memory_bytes),
        memlock=_memlock(host),
        firewall=firewall(host),
        files=_files(host),
        kept=_kept(host),
        rdma=_rdma(host),
        peermem=_peermem(host),
    )


def _shm(host: Probes, memory_bytes: int | None) -> int | None:
    """Return how much /dev/shm may hold; its default is half of the main memory (tmpfs in the kernel's documentation)."""
    mounts = host.read("/proc/self/mounts") or host.read("/proc/mounts") or ""
    found = list(re.finditer(r"^\S+ /dev/shm (\S+) (\S+)", mounts, re.MULTILINE))
    if not found:
        return _df(host)
    if found[-1][1] != "tmpfs":
        return None
    size = re.search(r"(?:^|,)size=(\d{1,15})([kmgt%]?)(?:,|$)", found[-1][2])
    if size is None:
        return memory_bytes // 2 if memory_bytes is not None else None
    if size[2] == "%":
        return memory_bytes * int(size[1]) // 100 if memory_bytes is not None else None
    return int(size[1]) * _UNITS[size[2]]


def _df(host: Probes) -> int | None:
    """Return the size of /dev/shm as a recorded `df -h` has it; a real machine has told by its mounts."""
    for argv in host.host.recorded():
        if argv[0] == "df":
            line = re.search(r"^\S+\s+(\d+(?:\.\d+)?)([KMGT]?)\s.*\s/dev/shm$", host.run(argv).stdout, re.MULTILINE)
            if line:
                return round(float(line[1]) * _UNITS[line[2].lower()])
    return None


def _memlock(host: Probes) -> int | Literal["unlimited"] | None:
    """Return how much memory a process may lock, by our own limit or by a recorded `ulimit -l` (which counts in KiB)."""
    line = re.search(r"^Max locked memory\s+(\d{1,20}|unlimited)\s", host.read("/proc/self/limits") or "", re.MULTILINE)
    if line:
        return "unlimited" if line[1] == "unlimited" else int(line[1])
    told = host.run(("ulimit", "-l")).stdout.strip() if ("ulimit", "-l") in host.host.recorded() else ""
    if told == "unlimited":
        return "unlimited"
    return int(told) << 10 if re.fullmatch(r"\d{1,15}", told) else None


def _peermem(host: Probes) -> bool | None:
    """Return whether the module is loaded that lets InfiniBand cards reach GPU memory; `None` when modules could not be listed."""
    if host.exists("/sys/module/nvidia_peermem") or host.exists("/sys/module/nv_peer_mem"):
        return True
    modules = host.read("/proc/modules")
    if modules is None:
        modules = host.run(("lsmod",)).stdout if ("lsmod",) in host.host.recorded() else ""
    return bool(re.search(r"^(?:nvidia_peermem|nv_peer_mem)\s", modules, re.MULTILINE)) if modules else None


def _rdma(host: Probes) -> bool | None:
    """Return whether there are RDMA devices; `None` when nobody could look."""
    devices = host.listdir(infiniband.RDMA)
    if devices is None:
        return False if host.exists(infiniband.RDMA) is False else None
    return bool(devices)


def _paths(host: Probes) -> tuple[str, ...]:
    """Return where configuration files of NCCL may be: the system's, then people's."""
    return ("/etc/nccl.conf", "/root/.nccl.conf", *host.glob("/home/*/.nccl.conf"))


def _files(host: Probes) -> tuple[NcclFile, ...]:
    """Return the configuration files that NCCL reads, as far as we may read them."""
    return tuple(NcclFile(path=path, text=text) for path in _paths(host) if (text := host.read(path)) is not None)


def _kept(host: Probes) -> dict[str, Literal["unreadable", "encoding"]]:
    """Return the files whose content is not known byte for byte; a recording leaves such a file out and is not judged."""
    found: dict[str, Literal["unreadable", "encoding"]] = {}
    for path in _paths(host):
        content = host.read_bytes(path)
        if content is None and host.exists(path) and not host.host.rehearsal:
            found[path] = "unreadable"
        try:
            (content or b"").decode()
        except UnicodeDecodeError:
            found[path] = "encoding"
    return found


# --- the firewall -----------------------------------------------------------------------------------


def firewall(host: Probes) -> Firewall | None:
    """Return what lets connections in, by the tool that a person would use here; `None` when nothing told of one.

    ufw and firewalld write rules for nftables or iptables, so they are asked first; only root sees the rules themselves.
    """
    for look in (_ufw, _firewalld, _nftables, _iptables):
        found = look(host)
        if found is not None and found.active is not False:
            return found
    return None


def _ufw(host: Probes) -> Firewall | None:
    enabled = re.search(r"^ENABLED=(yes|no)", host.read("/etc/ufw/ufw.conf") or "", re.MULTILINE)
    status = host.run(UFW).stdout if host.exists("/usr/sbin/ufw") or UFW in host.host.recorded() else ""
    said = re.search(r"^Status: (active|inactive)", status, re.MULTILINE)
    if enabled is None and said is None:
        return None
    active = said[1] == "active" if said else enabled is not None and enabled[1] == "yes"
    policy = re.search(r"^Default: (\w+) \(incoming\)", status, re.MULTILINE)
    default = re.search(r'^DEFAULT_INPUT_POLICY="?(\w+)', host.read("/etc/default/ufw") or "", re.MULTILINE)
    word = policy[1] if policy else default[1].lower() if default else None
    drops = None if word is None else word in ("deny", "reject", "drop")
    rules = host.read("/etc/ufw/user.rules") or ""
    opened = list(re.findall(r"^### tuple ### allow any any 0\.0\.0\.0/0 any (\S+) in", rules, re.MULTILINE))
    opened += re.findall(r"^### tuple ### allow any any 0\.0\.0\.0/0 any 0\.0\.0\.0/0 in_(\S+)", rules, re.MULTILINE)
    opened += re.findall(r"^Anywhere(?: on (?:\S+))?\s+ALLOW(?: IN)?\s+(\d\S+)\s*$", status, re.MULTILINE)
    opened += re.findall(r"^Anywhere on (\S+)\s+ALLOW(?: IN)?\s+Anywhere\s*$", status, re.MULTILINE)
    return Firewall(tool="ufw", active=active, drops=drops, open=tuple(dict.fromkeys(opened)))


def _firewalld(host: Probes) -> Firewall | None:
    """Return firewalld's zones: a zone that accepts all opens its interfaces and sources, every other one drops what it does not name."""
    if not (host.exists("/usr/bin/firewall-cmd") or FIREWALLD in host.host.recorded()):
        return None
    listed = host.run(FIREWALLD)
    text = listed.stdout
    if "not running" in listed.text:
        return Firewall(tool="firewalld", active=False)
    if listed.status not in (0, None) or not text.strip():
        return None
    opened: list[str] = []
    for zone in re.split(r"\n(?=\S)", text):
        if re.search(r"^\s+target: ACCEPT\s*$", zone, re.MULTILINE):
            opened += [word for line in re.findall(r"^\s+(?:interfaces|sources): *(.*)$", zone, re.MULTILINE) for word in line.split()]
    return Firewall(tool="firewalld", active=True, drops=True, open=tuple(dict.fromkeys(opened)))


_TYPED = re.compile(r"(?!ip6 )[\w.-]+(?: [\w.-]+){2}")
"""A chain for the addresses that ranks use, whose name a person may type: a ruleset in somebody's capture may hold any word."""


def _nftables(host: Probes) -> Firewall | None:
    """Return the rules of nftables' input chains: what a jump leads to is not followed, so a chain with jumps drops "perhaps"."""
    if not (host.exists("/usr/sbin/nft") or NFTABLES in host.host.recorded()):
        return None
    listed = host.run(NFTABLES)
    if listed.status not in (0, None) or not listed.stdout.strip():
        return None
    placed = {place: chain for place, chain in _chains(listed.stdout) if re.search(r"type filter hook input\b", chain)}
    inputs = list(placed.values())
    if not inputs:
        return Firewall(tool="nftables", active=False)
    dropping = [
        chain
        for chain in inputs
        if re.search(r"policy drop;|^\s*(?:counter(?: packets \d+ bytes \d+)? )?(?:drop|reject\b.*)\s*$", chain, re.MULTILINE)
    ]
    jumping = any(re.search(r"\b(?:jump|goto) ", chain) for chain in inputs)
    opened = [
        word
        for chain in dropping
        for word in re.findall(r"^\s*ip saddr (\d[\d./]+) (?:counter packets \d+ bytes \d+ )?accept\s*$", chain, re.MULTILINE)
    ]
    opened += [
        word
        for chain in dropping
        for word in re.findall(r'^\s*iifname "([^"\s]+)" (?:counter packets \d+ bytes \d+ )?accept\s*$', chain, re.MULTILINE)
    ]
    return Firewall(
        tool="nftables",
        active=bool(dropping or jumping),
        drops=True if dropping and not jumping else None if jumping else False,
        open=tuple(opened),
        chain=next((place for place, chain in placed.items() if chain in (dropping or inputs) and _TYPED.fullmatch(place)), None),
    )


def _chains(ruleset: str) -> list[tuple[str, str]]:
    """Return the chains of a ruleset, which may be cut off, with their family, table and name."""
    tables = re.findall(r"^table (\S+ \S+) \{\n(.*?)(?:^\}|\Z)", ruleset, re.MULTILINE | re.DOTALL)
    return [
        (f"{table} {name}", rules)
        for table, body in tables
        for name, rules in re.findall(r"^\s*chain (\S+) \{\n(.*?)^\s*\}", body, re.MULTILINE | re.DOTALL)
    ]


def _iptables(host: Probes) -> Firewall | None:
    if not (host.exists("/usr/sbin/iptables") or IPTABLES in host.host.recorded()):
        return None
    listed = host.run(IPTABLES)
    policy = re.search(r"^-P INPUT (ACCEPT|DROP)", listed.stdout, re.MULTILINE)
    if policy is None:
        return None
    ending = re.search(r"^-A INPUT -j (?:DROP|REJECT\b.*)$", listed.stdout, re.MULTILINE)
    drops = policy[1] == "DROP" or ending is not None
    jumping = re.search(r"^-A INPUT (?:.* )?-j (?!ACCEPT|DROP|REJECT|LOG)\S+", listed.stdout, re.MULTILINE) is not None
    opened = re.findall(r"^-A INPUT -s (\S+) -j ACCEPT$", listed.stdout, re.MULTILINE) + re.findall(
        r"^-A INPUT -i (\S+) -j ACCEPT$", listed.stdout, re.MULTILINE
    )
    return Firewall(tool="iptables", active=drops or jumping, drops=None if jumping else drops, open=tuple(opened))
