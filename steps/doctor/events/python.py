"""What Python frameworks say of the cards: whether their build is made for them, and whether they see any."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place

# --- kernels for the card -------------------------------------------------------------------------


class CardUnfit(Event):
    """A framework holds a card against what its build was made for; capabilities are (major, minor), `None` where they are not told."""

    card: str | None = None
    capability: tuple[int, int] | None = None
    least: tuple[int, int] | None = None
    most: tuple[int, int] | None = None
    left_out: bool = False
    """Whether the framework itself counted and found no code for the card, also where it lies between the least and the most."""
    relative: tuple[int, int] | None = None
    """The nearest capability below the card's, of its own major, that the build has code for: such code runs."""
    wheel: str | None = None
    """The version of PyTorch that was found wanting, where the message names it in place of what it was built for."""


@parses(
    r"(?:(?P<card>\S[^\n]{2,60}?) )?with CUDA capability sm_(?P<own>\d{2,3})[a-z]? "
    r"is not compatible with the current PyTorch installation"
    r"(?:.{0,80}?supports CUDA capabilities (?P<list>(?:(?:sm|compute)_\d+[a-z]? ?)+))?",
    "is not compatible with the current PyTorch",
    lines=4,
    flags=re.DOTALL,
)  # fmt: skip
def not_compatible(found: re.Match[str], at: Place) -> CardUnfit:
    """Recognise PyTorch's warning with the list of its build."""
    listed = [_capability(one) for one in re.findall(r"_(\d+)", found["list"] or "")]
    least, most = (min(listed), max(listed)) if listed else (None, None)
    card = re.sub(r"^.*(?:Warning|WARNING)\b:?\s*", "", found["card"] or "") or None
    return CardUnfit(place=at, card=card, capability=_capability(found["own"]), least=least, most=most)


def _capability(digits: str) -> tuple[int, int]:
    return int(digits[:-1] or 0), int(digits[-1])


_LISTED = re.compile(r"-\s+(\d+\.\d+)\s+which\s+supports\s+hardware\s+CC")


@parses(
    r"Found GPU\d+ (?P<card>[^\n]+?) which is of (?:cuda|compute) capability (?:\(CC\) )?\(?(?P<major>\d+)\.(?P<minor>\d+)\)?"
    r"(?:(?P<list>[^\n]*\n[^\n]*the CCs this version of PyTorch was built for[^\n]*"
    r"(?:\n[ \t]*- \d+\.\d+ which supports hardware CC[^\n]*)+)|"
    r".{0,160}?[Mm]inimum (?:cuda|compute) capability supported by this (?:library|version of PyTorch) is (?P<least>\d+\.\d+)|"
    r".{0,40}?Minimum and Maximum cuda capability supported by this version of PyTorch is "
    r"\((?P<low>\d+\.\d+)\) ?- ?\((?P<high>\d+\.\d+)\)|"
    r".{0,20}?Your installed torch==(?P<wheel>\d[\w.+]*) does not include kernels)?",
    "which is of cuda capability", "which is of compute capability",
    lines=16,
    flags=re.DOTALL,
)  # fmt: skip
def capability_told(found: re.Match[str], at: Place) -> CardUnfit:
    """Recognise PyTorch's warning with the least, the least and the most, every capability that it was built for, or its own version."""
    own = (int(found["major"]), int(found["minor"]))
    if found["list"]:
        listed = sorted(_dotted(one) for one in _LISTED.findall(found["list"]))
        place = Place(source=at.source, text=at.text.partition("\n")[0], order=at.order, seconds=at.seconds)
        relative = next((one for one in reversed(listed) if one[0] == own[0] and one <= own), None)
        return CardUnfit(
            place=place, card=found["card"], capability=own, least=listed[0], most=listed[-1], left_out=True, relative=relative
        )
    least, most = found["least"] or found["low"], found["high"]
    return CardUnfit(
        place=at,
        card=found["card"],
        capability=own,
        least=_dotted(least) if least else None,
        most=_dotted(most) if most else None,
        wheel=found["wheel"],
    )


def _dotted(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor)


class NoKernelImage(Event):
    """A program found no machine code for the card; `hip` for AMD's runtime."""

    hip: bool = False


@parses(
    r"(?P<hip>hipErrorNoBinaryForGpu|hipErrorInvalidDeviceFunction|HIP error: invalid device function|invalid device function.{0,40}hip|"
    r"Unable to find code object for all current devices)|"
    r"no kernel image is available for execution|cudaErrorNoKernelImageForDevice|CUDA_ERROR_NO_BINARY_FOR_GPU|invalid device function|"
    r"nvrtc: error: invalid value for --gpu-architecture|was not compiled for (?:this GPU|compute capability)|"
    r"ptxas fatal *: *Value 'sm_\d+[a-z]?' is not defined for option 'gpu-name'",
    "no kernel image", "NoKernelImage", "NO_BINARY_FOR_GPU", "NoBinaryForGpu", "invalid device function",
    "InvalidDeviceFunction", "code object for all", "invalid value for --gpu-arch",
    "was not compiled for", "is not defined for option 'gpu-name'",
)  # fmt: skip
def no_kernel_image(found: re.Match[str], at: Place) -> NoKernelImage:
    """Recognise the runtime's error, and the compilers' word that they do not know the card."""
    return NoKernelImage(place=at, hip=found["hip"] is not None)


# --- which cards a program sees -------------------------------------------------------------------


class NoGpuSeen(Event):
    """A program was offered no GPU by a driver that runs."""


@parses(
    r"No CUDA GPUs are available|no CUDA-capable device is detected|CUDA_ERROR_NO_DEVICE\b|cudaErrorNoDevice\b|"
    r"CUDA_VISIBLE_DEVICES is set to -1|^No CUDA devices$",
    "No CUDA GPUs are", "No CUDA devices", "no CUDA-capable device", "CUDA_ERROR_NO_DEVICE", "cudaErrorNoDevice",
    "CUDA_VISIBLE_DEVICES is set to",
)  # fmt: skip
def no_gpu_seen(found: re.Match[str], at: Place) -> NoGpuSeen:
    """Recognise the runtime's error 100 in its spellings."""
    return NoGpuSeen(place=at)


class CudaUnavailable(Event):
    """A framework said that there is no CUDA, and not why."""


@parses(
    r"\bcuda\.is_available\(\)\)?(?:\n(?:False|\(False)\b| *(?:=|:|->|is|returns) *False\b)|"
    r"^(?:Is )?CUDA (?:is )?available ?[?:=]+ ?False\b",
    "cuda.is_available()", "CUDA available", "CUDA is available",
    lines=2,
    typed=True,
)  # fmt: skip
def cuda_unavailable(found: re.Match[str], at: Place) -> CudaUnavailable:
    """Recognise PyTorch's answer in a session, a script's line about it, and that of its report of the environment."""
    return CudaUnavailable(place=at)


class Visible(Event):
    """A script or a session sets which GPUs a program may see; `value` as it is written, without quotes."""

    value: str
    name: str = "CUDA_VISIBLE_DEVICES"


@parses(
    r"\b(?P<name>(?:CUDA|NVIDIA)_VISIBLE_DEVICES)['\"]?\]? *[=:] *(?P<quote>['\"]?)(?P<value>[\w,.\-/]*)(?P=quote)",
    "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES",
    typed=True,
)  # fmt: skip
def visible(found: re.Match[str], at: Place) -> Visible:
    """Recognise an export, an assignment before a command, and os.environ[…] = …."""
    return Visible(place=at, value=found["value"], name=found["name"])
