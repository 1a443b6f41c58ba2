"""What AMD's and Habana's drivers and tools say."""

from __future__ import annotations

import re
from typing import Literal

from steps.doctor.events.base import Event, parses, spoken
from steps.doctor.told import Place

# --- AMD ------------------------------------------------------------------------------------------

KfdTrouble = Literal["permission", "memory", "invalid", "absent"]


class KfdClosed(Event):
    """/dev/kfd could not be opened."""

    trouble: KfdTrouble


_KFD: tuple[tuple[str, KfdTrouble], ...] = (
    ("permission denied", "permission"),
    ("operation not permitted", "permission"),
    ("cannot allocate memory", "memory"),
    ("invalid argument", "invalid"),
    ("no such file", "absent"),
    ("no such device", "absent"),
    ("eacces", "permission"),
    ("eperm", "permission"),
    ("enomem", "memory"),
    ("einval", "invalid"),
    ("enoent", "absent"),
    ("enxio", "absent"),
)


@parses(
    r"/dev/kfd\b.{0,80}?(?P<why>Permission denied|Operation not permitted|Cannot allocate memory|Invalid argument|No such file|"
    r"No such device|"
    r"\b(?:EACCES|EPERM|ENOMEM|EINVAL|ENOENT|ENXIO)\b)",
    "/dev/kfd",
    lines=2,
    flags=re.DOTALL | re.IGNORECASE,
)  # fmt: skip
def kfd_closed(found: re.Match[str], at: Place) -> KfdClosed:
    """Recognise rocminfo's line, and strace's, which names the errno whatever the language; the errno decides."""
    why = spoken(found["why"])
    return KfdClosed(place=at, trouble=next(trouble for words, trouble in _KFD if words == why))


class NotInGroup(Event):
    """A tool says that the user is not in the group that may compute; "nogroup" is one that has no number here."""

    group: str


@parses(
    r"(?:not (?:a )?member of|not in(?: the)?|is not in) [\"']?(?P<group>render|video|nogroup|nobody)[\"']? group|"
    r"user .{0,40}not .{0,20}[\"'](?P<other>render|video)[\"']|"
    r"permissions not set up properly\b.{0,60}\badd you user account to the (?P<asked>render|video) group|"
    r"User is missing the following required groups: (?P<missing>render|video)\b|"
    r"/dev/dri/\w+: Permission denied; owner=\S+?:(?P<owner>render|video)\b",
    "member of", "not in the", 'not in "', "permissions not set up properly", "missing the following required", "denied; owner=",
)  # fmt: skip
def not_in_group(found: re.Match[str], at: Place) -> NotInGroup:
    """Recognise rocminfo's hint, ollama's and what amd-smi says since ROCm 7."""
    named = (found[name] for name in ("group", "other", "asked", "missing", "owner"))
    return NotInGroup(place=at, group=next(name for name in named if name))


class Groups(Event):
    """The groups of the user, by `groups` or `id`."""

    names: tuple[str, ...]


@parses(
    r"^(?:uid=\d+\S* .*?groups=(?P<ids>\S.*)|\S+ : (?P<named>[a-z_][\w -]*)|"
    r"(?P<plain>(?:[a-z_][\w-]*|\d+)(?: (?:[a-z_][\w-]*|\d+))+))$",
    "groups=", "nogroup", " render", " video", " sudo", "video ", "render ",
)  # fmt: skip
def groups(found: re.Match[str], at: Place) -> Groups | None:
    """Recognise a line that lists groups; prose is none."""
    if found["ids"]:
        return Groups(place=at, names=tuple(re.findall(r"\(([^)]+)\)", found["ids"])))
    names = tuple((found["named"] or found["plain"] or "").split())
    known = {"nogroup", "render", "video", "sudo", "docker", "adm", "wheel", "root", "users", "plugdev"}
    asked = at.source.partition(" ")[0] in ("groups", "id")
    return Groups(place=at, names=names) if asked or len(known & set(names)) >= min(2, len(names)) else None


class KfdUnsupported(Event):
    """The kernel says that a chip cannot compute; `chip` is its name, "" where it is not told."""

    chip: str = ""


@parses(
    r"kfd[^\n]{0,40}?(?P<chip>[A-Z][A-Z0-9_]{3,20})? *not supported in kfd|"
    r"kfd: (?:amdgpu: )?skipped device [0-9a-f:]+, PCI rejects atomics|"
    r"kfd not supported on this ASIC|DID (?P<id>[0-9a-f]{4}) is missing in supported_devices|"
    r"GPU (?:device )?[0-9a-f:]* ?(?:is )?not supported by (?:amd)?kfd",
    "not supported in kfd",
    "PCI rejects atomics",
    "not supported on this ASIC",
    "missing in supported_devices",
    "not supported by",
)
def kfd_unsupported(found: re.Match[str], at: Place) -> KfdUnsupported:
    """Recognise amdkfd's refusal of a chip."""
    return KfdUnsupported(place=at, chip=found["chip"] or found["id"] or "")


class Gfx(Event):
    """The instruction set of an AMD card (`gfx1031`)."""

    name: str


@parses(
    r"amdgcn-amd-amdhsa--(?P<isa>gfx[0-9a-f]{3,4})|^\s*Name: +(?P<name>gfx[0-9a-f]{3,4})\s*$|"
    r"GPU arch(?:itecture)? ?: ?(?P<arch>gfx[0-9a-f]{3,4})",
    "gfx",
)
def gfx(found: re.Match[str], at: Place) -> Gfx:
    """Recognise rocminfo's names."""
    return Gfx(place=at, name=found["isa"] or found["name"] or found["arch"])


class TensileMissing(Event):
    """rocBLAS found no kernels of its own for the card; `gfx` where the message names it."""

    gfx: str | None = None


@parses(
    r"rocBLAS error: ?(?:Cannot read|Could not (?:load|initialize|open))[^\n]{0,300}|TensileLibrary\w*\.dat[^\n]{0,120}|"
    r"amdgpu \[\d+\] gfx\w+ is not supported by \S+ \[[^\n]*|"
    r"amdgpu is not supported[^\n]{0,20}supported types: ?\[gfx[^\n]*gpu_type=gfx\w+|"
    r"amdgpu is not supported\"?[^\n]{0,40}gpu_type=gfx\w+[^\n]{0,160}supported_types=\"?\[gfx",
    "rocBLAS error",
    "TensileLibrary",
    "amdgpu ",
    flags=re.IGNORECASE,
)
def tensile_missing(found: re.Match[str], at: Place) -> TensileMissing:
    """Recognise rocBLAS's error in its spellings, and ollama's comparison with what its rocBLAS brings."""
    named = re.search(r"gpu_type=(gfx\w+)", found[0]) or re.search(r"(gfx[0-9a-f]{3,4})", found[0])
    return TensileMissing(place=at, gfx=named[1] if named else None)


# --- Habana ---------------------------------------------------------------------------------------


class AcquireFailed(Event):
    """A program could not take a Gaudi card; `number` is synapse's status, `None` where only the words stand."""

    number: int | None = None
    acquired: bool = False
    """Whether it says that the card is taken already."""


@parses(
    r"synStatus[ =]*(?P<number>\d+)(?P<words> \[[^\]]*\])?|synDeviceAcquire\b[^\n]{0,120}?synapse error:? ?(?P<other>\d+)|"
    r"Device a(?:lready acquired|cquire failed)|habanalabs[^\n]{0,60}Can't open \S+ because another user is|"
    r"(?:Failed to acquire|acquire failed)[^\n]{0,80}(?:busy|in use)",
    "synStatus", "synDeviceAcquire", "already acquired", "acquire failed", "Failed to acquire", "because another user",
)  # fmt: skip
def acquire_failed(found: re.Match[str], at: Place) -> AcquireFailed | None:
    """Recognise synapse's status of an acquire; a graph that does not compile has one too."""
    number = found["number"] or found["other"]
    text = found[0].lower()
    if found["number"] and "compile failed" in at.text:
        return None
    taken = any(word in text for word in ("already acquired", "busy", "in use", "another user"))
    return AcquireFailed(place=at, number=int(number) if number else None, acquired=taken)


class ServerType(Event):
    """The communication library does not know the machine's type: the cards are of another generation than the software."""


@parses(r"[Ii]nvalid server type|[Uu]nsupported (?:server|device) type|[Uu]nknown server type", "server type", "device type")
def server_type(found: re.Match[str], at: Place) -> ServerType:
    """Recognise hcl's refusal."""
    return ServerType(place=at)


class HabanaRelease(Event):
    """A release (major.minor) of Gaudi's software or of its driver."""

    part: Literal["software", "driver"]
    release: str


@parses(
    r"(?:gaudi-docker|habanalabs|synapse(?:ai)?)[/:](?P<image>\d+\.\d+)\.\d+|habana[-_](?:torch|tensorflow|pyhlml)[\w-]*\W{1,12}(?P<wheel>\d+\.\d+)\.\d+|"
    r"\+Gaudi-(?P<vllm>\d+\.\d+)\.\d+|habana-frameworks v(?P<frameworks>\d+\.\d+)\S* was found|"
    r"validated for SynapseAI v(?P<wanted>\d+\.\d+)(?=\S* but the driver version)|"
    r"(?:Driver Version: ?|HPU driver version: ?|driver_ver(?:sion)?: ?|driver version is v)(?P<driver>\d+\.\d+)\.\d+|"
    r"HL-SMI Version: ?hl-(?P<smi>\d+\.\d+)\.\d+|hl-(?P<fw>\d+\.\d+)\.\d+-fw",
    "gaudi-docker", "habana", "synapse", "Driver Version", "HL-SMI Version", "hl-", "Gaudi-", "SynapseAI", "river version", "driver_ver",
)  # fmt: skip
def habana_release(found: re.Match[str], at: Place) -> HabanaRelease | None:
    """Recognise image tags, wheels and hl-smi; NVIDIA's driver has another counting."""
    software = found["image"] or found["wheel"] or found["vllm"] or found["frameworks"] or found["wanted"]
    driver = found["driver"] or found["smi"] or found["fw"]
    if driver and int(driver.partition(".")[0]) > 9:
        return None
    return HabanaRelease(place=at, part="software" if software else "driver", release=software or driver or "")


class HabanaRdmaMissing(Event):
    """A Gaudi card's InfiniBand device is not there."""


@parses(
    r"find matching Habana IB device|habanalabs_ib'?: (?:Unknown symbol|disagrees about version)|no hlib_\d+|[Cc]ould not find hlib|"
    r"Module habanalabs_ib not found",
    "Habana IB device",
    "habanalabs_ib",
    "hlib",
)
def habana_rdma_missing(found: re.Match[str], at: Place) -> HabanaRdmaMissing:
    """Recognise hcl's and the kernel's words."""
    return HabanaRdmaMissing(place=at)


class NoPorts(Event):
    """A Gaudi card has no network interface of its own."""


@parses(r"no (?:habanalabs network )?interfaces were detected", "interfaces were detected")
def no_ports(found: re.Match[str], at: Place) -> NoPorts:
    """Recognise Habana's script that looks for them."""
    return NoPorts(place=at)


class HabanaDead(Event):
    """The driver could not start a Gaudi card; `card` is its name in the kernel."""

    card: str = ""


@parses(
    r"habanalabs[ ,:]*(?:accel\w*|hl)?(?P<card>\d+)?:? ?[^\n]{0,60}"
    r"(?:CPU-CP timeout|failed to initialize CPU|Failed to load firmware|[Ff]ailed to communicate with [Dd]evice CPU)|"
    r"Failed to initialize (?P<other>\S+)\. Device(?: \S+)? is NOT usable|[Dd]evice boot (?:error|timeout)[^\n]{0,40}hl|"
    r"habanalabs[^\n]{0,40}(?:Device boot error - |CPU boot ready (?:status )?timeout|Device CPU packet timeout)",
    "CPU-CP timeout", "NOT usable", "initialize CPU H/W", "communicate with Device CPU", "Device boot", "CPU boot ready",
    "CPU packet timeout",
)  # fmt: skip
def habana_dead(found: re.Match[str], at: Place) -> HabanaDead:
    """Recognise habanalabs' words for a card whose processor does not answer."""
    return HabanaDead(place=at, card=found["card"] or found["other"] or "")
