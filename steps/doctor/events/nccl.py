"""What NCCL, and what carries data for it, says."""

from __future__ import annotations

import ipaddress
import re
from typing import Literal

from steps.doctor.events.base import Event, parses, spoken
from steps.doctor.told import Place


class NcclLine(Event):
    """A program uses NCCL: it said so."""


@parses(r"NCCL (?:INFO|WARN|version)|ncclCommInit\w*|ncclSystemError|ncclUnhandledCudaError|ProcessGroupNCCL|NCCL failure", "NCCL", "nccl")
def nccl_line(found: re.Match[str], at: Place) -> NcclLine:
    """Recognise a line of NCCL's log, or a framework's about it."""
    return NcclLine(place=at)


_STUCK = "(?:hangs?|hung|stuck|freezes?|deadlocks?)"


class Hangs(Event):
    """A collective does not end: a watchdog says so, or a person's note."""


@parses(
    r"Watchdog caught collective operation timeout|NCCL watchdog .{0,40}tim(?:ed|e) ?out|"
    r"nothing (?:is )?(?:printed|happens?) after|"
    rf"{_STUCK}\b.{{0,60}}(?:nccl|all_?reduce|DDP|collective|init|barrier|multi-?gpu)|"
    rf"(?:nccl\w*|all_?reduce\w*|DDP|collective|barrier|multi-?gpu).{{0,60}}{_STUCK}\b|"
    r"(?:GPU|SM|gpu)[ -]?util\w*\D{0,12}100 ?%.{0,60}mem\w*.{0,20}\b0 ?%",
    "Watchdog caught", "NCCL watchdog", "nothing printed", "nothing is printed", "nothing happens", "hangs", "hung", "stuck", "freezes",
    "deadlock",
    "tilisation", "tilization", "-util", "-Util",
    flags=re.IGNORECASE,
)  # fmt: skip
def hangs(found: re.Match[str], at: Place) -> Hangs:
    """Recognise PyTorch's watchdog, and how people put it."""
    return Hangs(place=at)


# --- shared memory --------------------------------------------------------------------------------


class SharedMemoryFailed(Event):
    """A segment of shared memory could not be had; `reason` is "full" or "missing", or "refused" by CUDA, which could not use it."""

    reason: Literal["full", "missing", "refused"]
    unsaid: bool = False
    """Whether the line gives no error number: a segment that cannot be made or extended mostly has no room."""


@parses(
    r"(?:(?P<verb>attaching|attach|open(?:ing)?) (?:to )?(?:the )?shared memory segment|(?:creat|extend|allocat)\w* .{0,30}shared memory|"
    r"failed to extend \S*/dev/shm/\S+|posix_fallocate failed|unable to (?:create|write|open|resize) .{0,60}(?:shm|shared memory|/torch_)|"
    r"shm_open\w{0,20}\b|/dev/shm/\S{1,80}|Call to (?:f?truncate|mmap|shm_open\w*) failed)"
    r".{0,120}?(?P<why>No space left on device|\(28\)|error 28|No such file or directory|\(2\)(?!\d)|Cannot allocate memory)",
    "shared memory", "/shm/nccl", "posix_fallocate", "shm_open", "/torch_",
    lines=2,
    flags=re.DOTALL | re.IGNORECASE,
)  # fmt: skip
def shared_memory_failed(found: re.Match[str], at: Place) -> SharedMemoryFailed | None:
    """Recognise NCCL's and PyTorch's failures; the number says whether room or the segment is what lacks."""
    missing = found["why"].startswith(("No such", "(2"))
    return SharedMemoryFailed(place=at, reason="missing" if missing else "full")


@parses(
    r"(?P<full>failed to extend \S*/dev/shm/\S+ to \d+ bytes|[Ee]rror while creating shared memory segment \S+ \(size \d+\)|"
    r"unable to write to file </torch_\w+>)(?!, error|: \w)|"
    r"shmutils\.cc:\d+ NCCL WARN Cuda failure",
    "failed to extend", "creating shared memory segment", "shmutils.cc", "unable to write to file </torch_",
)  # fmt: skip
def shared_memory_unmade(found: re.Match[str], at: Place) -> SharedMemoryFailed:
    """Recognise NCCL from 2.14 to 2.21 and PyTorch before 1.10, which leave the error number out."""
    return SharedMemoryFailed(place=at, reason="full" if found["full"] else "refused", unsaid=True)


@parses(
    r"\[Errno 28\] No space left on device[^\n]{0,40}(?:/dev/shm|/psm_|/torch_|/sem\.)|"
    r"DataLoader worker .{0,60}Bus error|workers are out of shared memory|insufficient shared memory \(shm\)",
    "[Errno 28]",
    "Bus error",
    "out of shared memory",
    "insufficient shared memory",
)
def loader_starved(found: re.Match[str], at: Place) -> SharedMemoryFailed:
    """Recognise Python's and PyTorch's data loader that ran out of shared memory."""
    return SharedMemoryFailed(place=at, reason="full")


# --- connections ----------------------------------------------------------------------------------

ConnectReason = Literal["refused", "no-route", "timeout", "unreachable", "aborted"]


class ConnectFailed(Event):
    """A rank could not reach a peer; `bridge` when the address is one of a container bridge's default ranges."""

    address: str
    reason: ConnectReason
    bridge: bool


CONNECT_REASONS: tuple[tuple[str, ConnectReason], ...] = (
    ("refused", "refused"),
    ("no route to host", "no-route"),
    ("113", "no-route"),
    ("timed out", "timeout"),
    ("timeout", "timeout"),
    ("110", "timeout"),
    ("network is unreachable", "unreachable"),
    ("101", "unreachable"),
    ("111", "refused"),
    ("abort", "aborted"),
    ("103", "aborted"),
)


@parses(
    r"(?:[Cc]onnect(?:ing|\(\))?(?: to)?(?: address)?|remote=|peer) ?"
    r"\[?(?P<address>(?:\d{1,3}\.){3}\d{1,3}|[0-9a-f]{1,4}(?::[0-9a-f]{0,4}){3,7}(?:%\w+)?)\]?(?:<\d+>|:\d+)?"
    r".{0,80}?(?P<why>Connection refused|No route to host|Connection timed out|timed out|Network is unreachable|connection abort|"
    r"returned (?:113|110|111|101)|errno: (?:113|110|111|101))",
    "onnect to ", "onnect() to ", "onnecting to ", "onnect returned", "onnectFullMesh", "remote=[", "peer [",
    lines=2,
    flags=re.DOTALL,
)  # fmt: skip
def connect_failed(found: re.Match[str], at: Place) -> ConnectFailed | None:
    """Recognise NCCL's, gloo's and Open MPI's messages with the address and the reason."""
    why = spoken(found["why"])
    reason: ConnectReason | None = next((named for words, named in CONNECT_REASONS if words in why), None)
    return ConnectFailed(place=at, address=found["address"], reason=reason, bridge=of_bridge(found["address"])) if reason else None


@parses(
    r"client socket has timed out after \d+m?s while trying to connect to [(\[]*(?P<address>(?:\d{1,3}\.){3}\d{1,3})[\])]*[,:]",
    "client socket has timed out",
)
def store_timed_out(found: re.Match[str], at: Place) -> ConnectFailed | None:
    """Recognise PyTorch's store, which gives the reason first; within one host it is no matter of networks."""
    if found["address"].startswith("127."):
        return None
    return ConnectFailed(place=at, address=found["address"], reason="timeout", bridge=of_bridge(found["address"]))


class ConnectUnnamed(Event):
    """A connection failed, and the line does not say to which address."""

    reason: ConnectReason


@parses(
    r"(?:connect returned|Call to connect(?: (?:failed|timeout) ?:| returned)|"
    r"client socket has failed to connect to \[[^\]]*[A-Za-z][^\]]*\]:\d+ \()"
    r" ?(?:errno: \d+ - )?(?P<why>Connection refused|No route to host|Connection timed out|Network is unreachable)",
    "onnect returned", "Call to connect", "client socket has failed",
)  # fmt: skip
def connect_unnamed(found: re.Match[str], at: Place) -> ConnectUnnamed:
    """Recognise NCCL's retries, its first releases, and PyTorch's store that is named and not numbered."""
    why = spoken(found["why"])
    return ConnectUnnamed(place=at, reason=next(named for words, named in CONNECT_REASONS if words in why))


_BRIDGES = ("172.17.0.0/16", "172.18.0.0/15", "172.20.0.0/14", "10.88.0.0/16", "10.89.0.0/16")
"""Docker's first networks (its pool begins at 172.17 and goes on by /16) and podman's."""


def of_bridge(address: str) -> bool:
    """Whether an address is of a network that a container engine makes by itself."""
    try:
        return any(ipaddress.ip_address(address) in ipaddress.ip_network(one) for one in _BRIDGES)
    except ValueError:
        return False


class NoInterface(Event):
    """NCCL found no interface that it could use."""


@parses(
    r"no socket interface found|NET/Socket ?: ?No (?:usable )?interface|No (?:usable )?(?:listening )?(?:network )?interface found|"
    r"Socket creation failed ?: ?Address family not supported by protocol|No interface found in the same subnet|"
    r"no \w+_SOCKET_IFNAME interface found|connecting to address [^\n]{0,60}with family \d+ is neither AF_INET|"
    r"Unable to find (?:address|interface) for: ?\S+|makeDeviceFor(?:Interface|Hostname)\(\): unsupported gloo device",
    "socket interface found", "nterface found", "Address family not supported", "No usable", "No interface", "is neither AF_INET",
    "Unable to find address", "Unable to find interface", "unsupported gloo device",
)  # fmt: skip
def no_interface(found: re.Match[str], at: Place) -> NoInterface:
    """Recognise NCCL's and gloo's start without an interface."""
    return NoInterface(place=at)


class SocketUsed(Event):
    """An interface that NCCL takes; `local` when no other node is behind it: a loopback, a bridge of containers, one's own tunnel."""

    name: str
    local: bool


_LOCAL = re.compile(r"lo|(?:docker|virbr|ip6tnl|tunl|cni|podman|lxcbr|vmnet)\d.*|(?:veth|cali|flannel)\w.*|br-[0-9a-f]{8,}")


@parses(
    r"NCCL INFO (?:Bootstrap ?:|NET(?:/Socket)? ?:) Using "
    r"(?P<list>(?:(?:interface |\[\d+\])?[\w.@-]+:[0-9A-Fa-f.:]+(?:%[\w.-]+)?<\d+> ?)+)",
    "Using ",
)
def socket_used(found: re.Match[str], at: Place) -> SocketUsed:
    """Recognise NCCL's list of its interfaces; of several the one that leads nowhere."""
    names: list[str] = re.findall(r"(?:^|\]|interface |> )([A-Za-z][\w.@-]*):", found["list"])
    astray = next((name for name in names if _LOCAL.fullmatch(name)), None)
    return SocketUsed(place=at, name=astray or (names or [""])[0], local=astray is not None)


class Interfaces(Event):
    """Which interfaces NCCL was told to take, or to leave out ("^…")."""

    value: str


@parses(r"(?:NCCL|GLOO)_SOCKET_IFNAME['\"]?\]? ?(?:[=:]|set (?:by environment )?to) ?['\"]?(?P<value>[\w^=,.\-]+)", "_SOCKET_IFNAME")
def interfaces(found: re.Match[str], at: Place) -> Interfaces:
    """Recognise the variable in an environment, a script or NCCL's log."""
    return Interfaces(place=at, value=found["value"])


# --- InfiniBand, NVLink ---------------------------------------------------------------------------


class RegistrationFailed(Event):
    """An RDMA device could not lock memory."""


@parses(
    r"(?:ibv_(?:reg_(?:dmabuf_)?mr\w*|create_[cq][qp]|alloc_pd)\b(?:(?=.{0,40}(?:err|fail)).{0,300}?|.{0,120}?)|"
    r"(?:\bfi_mr_reg\w*\b|\brdma_reg_\w+\b|[Ff]ailed to register memory\b).{0,80}?)"
    r"(?:Cannot allocate memory|ENOMEM|(?:errno|code)[ =:]*12\b)|"
    r"RLIMIT_MEMLOCK is \d+ bytes|set max locked memory|memlock limits are set too low",
    "ibv_", "RLIMIT_MEMLOCK", "max locked memory", "fi_mr_reg", "rdma_reg_", "ailed to register memory", "memlock limits",
    lines=8,
    flags=re.DOTALL,
)  # fmt: skip
def registration_failed(found: re.Match[str], at: Place) -> RegistrationFailed:
    """Recognise NCCL's, UCX's, Open MPI's, libfabric's and libibverbs' words, and those of programs that call them."""
    return RegistrationFailed(place=at)


class RdmaUnnamed(Event):
    """An RDMA device refused memory or a queue, and the line does not say why."""


@parses(r"Call to ibv_(?:reg_mr\w*|create_[cq][qp]|alloc_pd) failed *$", "Call to ibv_")
def rdma_unnamed(found: re.Match[str], at: Place) -> RdmaUnnamed:
    """Recognise NCCL's first releases."""
    return RdmaUnnamed(place=at)


class MulticastFailed(Event):
    """NVLink SHARP could not be set up; `code` is CUDA's error."""

    code: int | None = None


@parses(
    r"(?:NVLS|NVLink SHARP|[Mm]ulticast)[^\n]{0,160}?(?:: ?\n\W{0,40})?(?:CUDA error|Cuda failure|error|failure)\D{0,4}(?P<code>\d{1,3})?|"
    r"nvls\.cc:\d+[^\n]{0,40}(?:WARN|Cuda failure)\D{0,20}(?P<other>\d{1,3})?",
    "NVLS", "NVLink SHARP", "ulticast", "nvls.cc",
    lines=2,
)  # fmt: skip
def multicast_failed(found: re.Match[str], at: Place) -> MulticastFailed:
    """Recognise NCCL's binding of multicast memory that fails."""
    code = found["code"] or found["other"]
    return MulticastFailed(place=at, code=int(code) if code else None)


class NcclVersion(Event):
    """The release of NCCL that a program loads."""

    version: str


@parses(
    r"NCCL version (?P<version>2\.\d+\.\d+)|nccl_?version\D{1,6}(?P<other>2\.\d+\.\d+)|nvidia-nccl-cu1[123]\W{1,12}(?P<wheel>2\.\d+\.\d+)",
    "NCCL version",
    "ccl_version",
    "nvidia-nccl",
)
def nccl_version(found: re.Match[str], at: Place) -> NcclVersion:
    """Recognise NCCL's first line, and the wheel."""
    return NcclVersion(place=at, version=found["version"] or found["other"] or found["wheel"])
