"""Frameworks and what builds their extensions."""

from __future__ import annotations

from steps.doctor.events.builds import LLAMA, CompilerDiffers, CompilerRefused, CpuBuild, HeaderMissing, HeadersRejected, PackageGone, Wheel
from steps.doctor.events.containers import HookFailed
from steps.doctor.events.libraries import RUNTIME, LibrariesSkipped, LibraryMissing
from steps.doctor.events.python import CardUnfit, CudaUnavailable, NoGpuSeen, NoKernelImage, Visible
from steps.doctor.evidence import Evidence
from steps.doctor.facts import libraries
from steps.doctor.facts.wheels import unfit
from steps.doctor.numbers import whole
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, Answer, Candidate, found, out, rule
from steps.doctor.told import Place

# --- kernels for the card -------------------------------------------------------------------------


def _beyond(event: CardUnfit) -> str | None:
    """Return on which side of its build a card lies: "newer", "older", or "near" for the same major with a higher minor; `None` inside."""
    own = event.capability
    if own is None:
        return None
    if event.least is not None and own < event.least:
        return "older"
    if event.most is not None and own[0] > event.most[0]:
        return "newer"
    if (event.most is not None and own > event.most) or event.relative is not None:
        return "near"
    return None if (event.most or event.least) and not event.left_out else "unlisted"


@rule("capability-warning-same-major")
def same_major(seen: Evidence) -> Answer:
    """The card is only a minor step above the build, and nothing failed."""
    near = next((event for event in unfit(seen) if _beyond(event) == "near"), None)
    if near is None:
        return None
    failed = seen.first(NoKernelImage)
    if failed is not None:
        return out(failed)
    return found(STRONG, near, card=near.card or "?", own=_spelt(near.capability), most=_spelt(near.relative or near.most))


@rule("wheel-lacks-gpu-kernels")
def lacks_kernels(seen: Evidence) -> Answer:
    """The build has no machine code for the card: too new for it, or too old."""
    failed = seen.first(NoKernelImage)
    beyond = next((event for event in unfit(seen) if _beyond(event) in ("newer", "older", "unlisted")), None)
    if beyond is not None:
        variant = _beyond(beyond) or ""
        told = {"card": beyond.card or "?", "own": _spelt(beyond.capability)}
        bound = beyond.least if variant == "older" else beyond.most
        sure = CERTAIN if variant != "unlisted" else STRONG
        return found(sure, beyond, failed, _torch(seen), variant=variant, bound=_spelt(bound), **told)
    near = seen.first(CardUnfit)
    if failed is None:
        return out(near) if near is not None else None
    if near is not None:
        return found(STRONG, failed, near, variant="unlisted", card=near.card or "?", own=_spelt(near.capability))
    return found(LIKELY, failed, _torch(seen), *seen.cards.cards[:1])


def _spelt(capability: tuple[int, int] | None) -> str:
    return f"{capability[0]}.{capability[1]}" if capability else "?"


def _torch(seen: Evidence) -> Wheel | None:
    return seen.first(Wheel, lambda event: event.name == "torch")


# --- builds ---------------------------------------------------------------------------------------


@rule("cpu-only-build-active")
def cpu_only(seen: Evidence) -> Answer:
    """The build that runs cannot use CUDA at all."""
    said = seen.first(CpuBuild)
    local = seen.first(Wheel, lambda event: event.name in ("torch", "jaxlib") and "+cpu" in event.version)
    plain = seen.first(Wheel, lambda event: event.name == "onnxruntime")
    with_cuda = seen.first(Wheel, lambda event: event.name == "onnxruntime-gpu")
    libraries = seen.first(LibraryMissing, lambda event: "libonnxruntime_providers_cuda" in event.place.text)
    if libraries is not None and (said is None or said.what == "onnxruntime"):
        return out(libraries)
    if plain is not None and with_cuda is not None and (said is None or said.what == "onnxruntime"):
        return found(CERTAIN if said else LIKELY, said, plain, with_cuda, variant="shadow", what="onnxruntime")
    runtime = seen.first(LibraryMissing, lambda event: event.name == RUNTIME)
    if runtime is not None and said is not None and said.what == "bitsandbytes":
        return out(runtime)  # it falls back to the part for CPUs where it does not find CUDA's runtime
    cuda = seen.first(Wheel, lambda event: event.name == "torch" and "+cu" in event.version)
    if cuda is not None and local is None and (said is None or said.what == "torch"):
        return out(cuda)
    if said is None and local is None:
        return None
    what = said.what if said else local.name if local else ""
    if what == LLAMA:
        return found(POSSIBLE, said, what=what)
    return found(CERTAIN if said and local else STRONG if said else LIKELY, said, local, what=what)


@rule("tensorflow-gpu-package-withdrawn")
def withdrawn(seen: Evidence) -> Answer:
    """Pip is asked for the package that holds nothing."""
    gone = seen.first(PackageGone)
    return found(CERTAIN, gone, name=gone.name) if gone is not None else None


# --- extensions -----------------------------------------------------------------------------------


def _python_header(seen: Evidence) -> HeaderMissing | None:
    return seen.first(HeaderMissing, lambda event: event.header.rpartition("/")[2] in ("Python.h", "pyconfig.h"))


def _refused_by_toolkit(seen: Evidence) -> CompilerRefused | None:
    """Return the refusal by a toolkit of NVIDIA's own; the distribution's headers lie in /usr/include."""
    return seen.first(CompilerRefused, lambda event: event.header is not None and not event.header.startswith("/usr/include"))


@rule("nvcc-differs-from-torch-cuda")
def nvcc_differs(seen: Evidence) -> Answer:
    """The builder stops since nvcc is of another CUDA; a compiler's own error behind it is the cause instead."""
    differs = seen.first(CompilerDiffers, lambda event: event.refused) or seen.first(CompilerDiffers)
    if differs is None:
        return None
    other = seen.first(HeaderMissing) or seen.first(CompilerRefused)
    if other is not None:
        return out(other)
    majors = differs.nvcc.partition(".")[0] != differs.torch.partition(".")[0]
    if not differs.refused and not majors:
        return out(differs)
    return found(STRONG if differs.refused else LIKELY, differs, nvcc=differs.nvcc, torch=differs.torch)


@rule("python-headers-missing")
def python_headers(seen: Evidence) -> Answer:
    """The compiler stops at Python's own header."""
    header = _python_header(seen)
    return found(CERTAIN, header, header=header.header) if header is not None else None


@rule("host-compiler-too-new-for-nvcc")
def compiler_too_new(seen: Evidence) -> Answer:
    """A toolkit's header refuses the compiler."""
    refused, rejected = _refused_by_toolkit(seen), seen.first(HeadersRejected)
    if refused is None and rejected is not None and not seen.has(CompilerRefused):
        return found(STRONG, rejected, variant="headers", compiler=rejected.compiler, newest=rejected.compiler - 1)
    if refused is None:
        distribution = seen.first(CompilerRefused, lambda event: event.header is not None)
        somewhere = seen.first(CompilerRefused)
        if distribution is not None or somewhere is None:
            return out(distribution) if distribution is not None else None
        return found(LIKELY, somewhere, newest=somewhere.newest, header="?")
    return found(CERTAIN, refused, newest=refused.newest, header=refused.header or "?")


# --- which cards a program sees -------------------------------------------------------------------


@rule("cuda-visible-devices-hides-gpus")
def hidden(seen: Evidence) -> Answer:
    """A program sees no GPU, and the variable names none that is there; or the hook of a container knows no such GPU."""
    unknown = seen.first(HookFailed, lambda event: event.device is not None)
    if unknown is not None:
        return found(STRONG, unknown, *seen.cards.cards[:2], name="NVIDIA_VISIBLE_DEVICES", value=unknown.device or "?")
    none = seen.first(NoGpuSeen) or (seen.first(CudaUnavailable) if seen.driver_answers else None)
    if none is None:
        return None
    answers = [_hides(seen, none, told) for told in _told_visible(seen)]
    strongest = max((one for one in answers if isinstance(one, Candidate)), key=lambda one: one.strength, default=None)
    return strongest or next((one for one in answers if one is not None), None)


_NOTHING = ("-1", "NoDevFiles", "none", "void")


def _hides(seen: Evidence, none: NoGpuSeen | CudaUnavailable, told: Visible) -> Answer:
    """Return whether what one variable is set to leaves a program without a GPU."""
    words = [word.strip() for word in told.value.split(",") if word.strip()]
    if not words or words[0] in _NOTHING:
        return found(CERTAIN, none, told, variant="all", name=told.name, value=told.value)
    first, count = whole(words[0]), _gpus(seen)
    if first is None:
        return None
    if count is None:
        return found(LIKELY, none, told, name=told.name, value=told.value) if first > 0 else None
    if first < count:
        return out(told)
    return found(CERTAIN, none, told, *seen.cards.cards[:2], name=told.name, value=told.value)


def _told_visible(seen: Evidence) -> tuple[Visible, ...]:
    """Return what the variables are set to, in a person's environment, or else in what they ran."""
    text = seen.host.run(("env",)).stdout
    lines = (line.partition("=") for line in text.splitlines())
    own = [
        Visible(place=Place(source="env", text=f"{name}={value}"), value=value.strip())
        for name, equals, value in lines
        if name == _VARIABLE and equals
    ]
    return tuple(own) or seen.all(Visible)


_VARIABLE = "CUDA_VISIBLE_DEVICES"


def _gpus(seen: Evidence) -> int | None:
    """Return how many GPUs the driver lists; `None` when nobody listed them."""
    listed = seen.host.forms(lambda argv: argv == ("nvidia-smi", "-L"))
    if listed:
        return sum(line.startswith("GPU ") for line in seen.host.run(listed[0]).stdout.splitlines()) or None
    return len(seen.smi.gpus) or None


# --- libraries ------------------------------------------------------------------------------------


@rule("cuda-libs-not-found-by-program")
def libraries_not_found(seen: Evidence) -> Answer:
    """Libraries of the right major are not where the program looks, or TensorFlow came without them."""
    skipped, missing = seen.first(LibrariesSkipped), libraries.missing(seen)
    if missing is None:
        return found(LIKELY, skipped, variant="stub" if skipped.stub else "skipped") if skipped is not None else None
    same = libraries.same_major(seen, missing)
    if same is not None:
        return found(STRONG, missing, same, skipped, variant="elsewhere", library=missing.name, where=same.place.text)
    other = libraries.other_major(seen, missing)
    if other is not None:
        return out(missing, other)
    if missing.major is None:
        return found(POSSIBLE if missing.supposed else LIKELY, missing, skipped, library=missing.name)
    return found(POSSIBLE + (0.1 if missing.kind == "cudnn" else 0.0), missing, skipped, library=missing.name)
