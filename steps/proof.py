"""The rungs that run inside an environment: programs of `assets/training`, and what their lines mean."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from steps import resources
from steps.catalog import bandwidth
from steps.model.base import Param, Words, phrase
from steps.model.hardware import Accelerator
from steps.model.verdict import Rung

if TYPE_CHECKING:
    from steps.host.base import Host, Result

TORCH_RUNGS = ("environment", "torch", "gpu", "amp", "accumulation", "ddp", "cudnn-conv", "speed", "peers", "bandwidth")
_LEARNS, _MEASURES = ("gpu", "amp", "accumulation", "ddp"), ("cudnn-conv", "speed", "peers", "bandwidth")
HIDING = "CUDA_VISIBLE_DEVICES"
"""The variable that keeps GPUs from every program that uses CUDA."""
RANK_SECONDS = 60
"""So long may one rung take before its process is ended; a slow disk needs most of it for the import."""
_IMPORT_SECONDS = 120
"""The same for the import of one framework."""
_ALL_SECONDS = 300.0


def torch(host: Host, interpreter: str, version: str, variant: str | None, *, gpus: int) -> tuple[Rung, ...]:
    """Return PyTorch's rungs: its import, whether it sees so many GPUs, half precision, accumulation, and training in several processes."""
    result = _run(host, interpreter, "verify_torch.py", ("--limit", str(RANK_SECONDS)))
    lines = {str(line["rung"]): line for line in _lines(result)}
    imported = lines.get("import")
    if imported is None:
        return (Rung(id="torch", state="failed", because=_ending(result)),)
    if imported["state"] != "passed":
        return (_rung("torch", imported),)
    found = str(imported["detail"])
    rungs = [_version("torch", found, version, variant)]
    for name in _LEARNS:
        line = lines.get(name)
        if line is None:
            rungs.append(Rung(id=name, state="failed", because=_ending(result)))
        elif name == "gpu":
            rungs.append(_gpu(host, line, variant, gpus))
        else:
            rungs.append(_rung(name, line))
    return tuple(rungs)


def imports(host: Host, interpreter: str, wanted: Mapping[str, str], *, gpus: int) -> tuple[Rung, ...]:
    """Return one rung for each other framework: it imports, is the version that was asked for, and sees so many GPUs if it uses them."""
    if not wanted:
        return ()
    argv = ("--limit", str(_IMPORT_SECONDS), *wanted)
    result = _run(host, interpreter, "verify_import.py", argv, seconds=_ALL_SECONDS + _IMPORT_SECONDS * len(wanted))
    lines = {str(line["rung"]): line for line in _lines(result)}
    rungs = []
    for name, version in wanted.items():
        line = lines.get(name)
        if line is None:
            rungs.append(Rung(id=name, state="failed", because=_ending(result)))
        elif line["state"] != "passed":
            rungs.append(_rung(name, line))
        else:
            rung = _version(name, str(line["detail"]), version)
            rungs.append(_enough(host, rung, line.get("devices"), gpus) if name in ("jax", "tensorflow") else rung)
    return tuple(rungs)


def speed(
    host: Host, interpreter: str, cards: tuple[Accelerator, ...], *, gpus: int, burn: int = 0, bridged: bool = False
) -> tuple[Rung, ...]:
    """Return what PyTorch reaches: cuDNN, half precision, copies between cards, all-reduce; with `burn`, so many seconds of full load.

    Where it sees fewer than so many GPUs, or cannot count them, the first rung fails and nothing is measured.
    An all-reduce is judged where a source says what such a machine reaches, and is a figure elsewhere; `bridged` says that the
    driver shows NVLink between cards.
    """
    argv = ("--limit", str(RANK_SECONDS), "--gpus", str(gpus))
    result = _run(host, interpreter, "verify_speed.py", argv)
    lines = {str(line["rung"]): line for line in _lines(result)}
    first, *others = _MEASURES + (("burn",) if burn else ())
    if "seen" in lines:
        seen = _rung(first, lines["seen"])
        seen = _enough(host, seen, None if seen.value is None else int(seen.value), gpus)
        if seen.state == "failed":
            after = phrase("verify.because.after", rung=first)
            return (seen, *(Rung(id=name, state="skipped", because=after) for name in others))
    rungs = []
    for name in _MEASURES:
        line = lines.get(name)
        rung = _rung(name, line) if line is not None else Rung(id=name, state="failed", because=_ending(result))
        rungs.append(_reached(rung, cards, bridged=bridged) if name == "bandwidth" else rung)
    return (*rungs, *((_burn(host, interpreter, int(lines.get("seen", {}).get("value", gpus)), burn),) if burn else ()))


def _burn(host: Host, interpreter: str, gpus: int, seconds: int) -> Rung:
    """Return what so many GPUs do under full load for some seconds; skipped without one."""
    if not gpus:
        return Rung(id="burn", state="skipped", because=phrase("verify.because.no-gpu"))
    argv = ("--gpus", str(gpus), "--seconds", str(seconds))
    return _one(host, interpreter, "burn", "verify_burn.py", *argv, seconds=_ALL_SECONDS + seconds)


def _reached(rung: Rung, cards: tuple[Accelerator, ...], *, bridged: bool) -> Rung:
    """Return the rung of the all-reduce, failed where machines like this one reach more."""
    row = bandwidth.all_reduce(tuple(card.name or "" for card in cards), bridged=bridged) if rung.state == "passed" else None
    if row is None or rung.value is None:
        return rung
    if rung.value >= row.least:
        return msgspec.structs.replace(rung, expected=row.least)
    low = phrase("verify.because.bandwidth-low", rate=f"{rung.value:.0f}", least=f"{row.least:.0f}", source=row.source)
    return msgspec.structs.replace(rung, state="failed", because=low, expected=row.least)


def cuda(host: Host, interpreter: str, gpus: int) -> Rung:
    """Return whether the driver lets every one of so many GPUs compute, without any framework."""
    rung = _one(host, interpreter, "cuda", "verify_cuda.py")
    return _enough(host, rung, None if rung.value is None else int(rung.value), gpus)


def _enough(host: Host, rung: Rung, seen: int | None, gpus: int) -> Rung:
    """Return the rung, failed where fewer GPUs are seen than there are; one that failed, or where nobody counted, as it is."""
    if rung.state != "passed" or seen is None or seen >= gpus:
        return rung
    hiding = host.run(("printenv", HIDING)).stdout.strip()
    fewer = phrase("verify.because.fewer-gpus", seen=seen, all=gpus)
    if hiding:
        fewer = phrase("verify.because.fewer-hidden", seen=seen, all=gpus, name=HIDING, value=hiding)
    return msgspec.structs.replace(rung, state="failed", because=fewer)


def nvcc_sample(host: Host, interpreter: str, nvcc: str) -> Rung:
    """Return whether a toolkit's compiler makes a program that computes."""
    return _one(host, interpreter, "nvcc-sample", "verify_nvcc.py", nvcc)


def _one(host: Host, interpreter: str, name: str, program: str, *argv: str, seconds: float = _ALL_SECONDS) -> Rung:
    """Return the rung of a program that has one."""
    result = _run(host, interpreter, program, argv, seconds=seconds)
    line = next((line for line in _lines(result) if line["rung"] == name), None)
    return _rung(name, line) if line is not None else Rung(id=name, state="failed", because=_ending(result))


_TOGETHER = """
import sys, types
shared = types.ModuleType("ranks")
exec(compile({ranks!r}, "ranks.py", "exec"), shared.__dict__)
sys.modules["ranks"] = shared
exec(compile({program!r}, {name!r}, "exec"), {{"__name__": "__main__"}})
"""


def program_text(program: str) -> str:
    """Return one of our programs as one text, with what it shares with the others in it."""
    text = resources.read_text("training", program)
    if "\nfrom ranks import " not in text:
        return text
    return _TOGETHER.format(ranks=resources.read_text("training", "ranks.py"), program=text, name=program)


def _run(host: Host, interpreter: str, program: str, argv: tuple[str, ...], *, seconds: float = _ALL_SECONDS) -> Result:
    """Run one of our programs with the environment's interpreter.

    Its text is handed over, not its path: the target may be another root, and the person may not read our files.
    """
    return host.run((interpreter, "-I", "-c", program_text(program), *argv), timeout=seconds)


def _lines(result: Result) -> list[dict[str, Any]]:
    """Return the JSON lines of a program; what libraries print between them is left out."""
    found = []
    for text in result.stdout.splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and "rung" in line and "state" in line:
            found.append(line)
    return found


def _ending(result: Result) -> Words:
    """Return how a program ended that did not say its line."""
    if result.status is None:
        return phrase("verify.because.timeout", seconds=int(_ALL_SECONDS))
    last = next((line for line in reversed(result.stderr.splitlines()) if line.strip()), "")
    return phrase("verify.because.ended", status=result.status, text=last[:200])


def _rung(name: str, line: Mapping[str, Any]) -> Rung:
    """Return a rung as its line says it."""
    said = _coded(line) or str(line.get("text") or "")
    beside = _coded(line.get("beside") or {})
    value, expected = line.get("value"), line.get("expected")
    return Rung(
        id=name,
        state=line["state"],
        because=said,
        detail=beside or str(line.get("detail") or ""),
        value=None if value is None else float(value),
        unit=line.get("unit"),
        expected=None if expected is None else float(expected),
    )


def _coded(line: Mapping[str, Any]) -> Words:
    """Return the words of what a program said in a code; nothing where it said none."""
    params: dict[str, Param] = {key: value for key, value in (line.get("params") or {}).items() if isinstance(value, str | int | float)}
    return phrase(f"verify.because.{line['code']}", **params) if line.get("code") else ""


def _version(name: str, found: str, wanted: str, variant: str | None = None) -> Rung:
    """Return whether a framework is the version that was asked for; a local part ("+cpu") may be unsaid, but not be another variant's."""
    local = found.partition("+")[2]
    if wanted in (found, found.partition("+")[0]) and (not local or variant is None or local == variant):
        return Rung(id=name, state="passed", because=phrase("verify.because.imports"), detail=found)
    return Rung(id=name, state="failed", because=phrase("verify.because.other-version", found=found, wanted=wanted), detail=found)


def _gpu(host: Host, line: Mapping[str, Any], variant: str | None, gpus: int) -> Rung:
    """Return whether PyTorch uses the GPUs; without one, or with the build for the processor asked for, nothing is to prove."""
    rung = _rung("gpu", line)
    if line["state"] == "passed":
        return _enough(host, rung, None if rung.value is None else int(rung.value), gpus)
    if not gpus:
        return Rung(id="gpu", state="skipped", because=phrase("verify.because.no-gpu"))
    if line.get("code") == "cpu-build" and variant == "cpu":
        return rung
    return Rung(id="gpu", state="failed", because=rung.because, detail=rung.detail)
