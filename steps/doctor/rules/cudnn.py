"""cuDNN and CUDA libraries of another major than a program wants."""

from __future__ import annotations

from steps.doctor.events.libraries import CudnnVersions
from steps.doctor.evidence import Evidence
from steps.doctor.facts import libraries
from steps.doctor.rules.base import CERTAIN, POSSIBLE, STRONG, Answer, found, out, rule


@rule("cudnn-major-mismatch")
def cudnn_major(seen: Evidence) -> Answer:
    """CuDNN itself is what is missing, and another major of it is there."""
    missing = libraries.missing(seen)
    if missing is not None and missing.kind == "cudnn":
        other = libraries.other_major(seen, missing)
        if other is not None:
            return found(CERTAIN, missing, other, wanted=missing.name, there=other.place.text)
        same = libraries.same_major(seen, missing)
        return out(missing, same) if same is not None else found(POSSIBLE - 0.05, missing, variant="unknown", wanted=missing.name)
    if missing is not None:
        return out(missing)
    versions = seen.first(CudnnVersions, lambda event: event.built[0] != event.loaded[0])
    if versions is None:
        return None
    told = {"wanted": f"{versions.built[0]}.{versions.built[1]}", "there": f"{versions.loaded[0]}.{versions.loaded[1]}"}
    return found(POSSIBLE if versions.blames_path else STRONG, versions, variant="loaded", **told)


@rule("runtime-lib-other-cuda-major")
def other_cuda(seen: Evidence) -> Answer:
    """A library of CUDA is what is missing, and none of its major is there."""
    missing = libraries.missing(seen)
    if missing is None:
        return None
    if missing.kind != "cuda" or missing.major is None:
        return out(missing)
    other, same = libraries.other_major(seen, missing), libraries.same_major(seen, missing)
    if same is not None:
        return out(missing, same)
    if other is not None:
        return found(CERTAIN, missing, other, wanted=missing.name, there=other.place.text)
    return found(POSSIBLE + 0.15, missing, variant="unknown", wanted=missing.name)
