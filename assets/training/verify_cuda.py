"""Try out the driver without any framework: on each GPU make a context, let a kernel compute, read the result back.

Run isolated by any Python: `python -I verify_cuda.py [--limit 30]`. It needs libcuda.so.1, which the driver brings, and nothing
else. One JSON line: `rung` "cuda", `state`, and where they are known `code` with `params`, `text`, `detail`, `value`, `unit`.
Each GPU is tried in a process of its own, so that one that hangs or crashes is named and the others are still proven.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
from typing import Any

THREADS = 256
MAJOR, MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
KERNEL = """
.version 6.0
.target {target}
.address_size 64
.visible .entry fill(.param .u64 out)
{{
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %tid.x;
    mad.lo.s32 %r2, %r1, 3, 1;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd2, %rd2, %rd3;
    st.global.u32 [%rd2], %r2;
    ret;
}}
"""
"""Thread i writes 3 i + 1; the driver's own compiler makes machine code of it for the GPU that is there."""


class Wrong(Exception):
    """A call that did not succeed: its name, the error's number and name."""


def main() -> int:
    """Print the line; the status is 0 whatever it says, for the line is the answer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=float, default=30.0)
    limit = parser.parse_args().limit
    counted = alone(count_devices, limit)
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        say({"state": "failed", "code": "hidden", "params": {"value": os.environ["CUDA_VISIBLE_DEVICES"]}})
        return 0
    if counted.get("state") != "passed":
        say(counted)
        return 0
    count = int(counted["value"])
    if count == 0:
        say({"state": "failed", "code": "cuda-none"})
        return 0
    results = [alone(lambda device=device: compute(device), limit) for device in range(count)]
    wrong = [(device, line) for device, line in enumerate(results) if line["state"] != "passed"]
    if wrong:
        device, line = wrong[0]
        say({**line, "params": {"gpu": device, **line.get("params", {})}})
    else:
        names = {str(line["name"]) for line in results}
        detail = f"{count} × {names.pop()}" if len(names) == 1 else f"{count} GPUs"
        say(
            {
                "state": "passed",
                "code": "cuda-computed",
                "params": {"count": count, "version": counted["version"]},
                "detail": detail,
                "value": count,
                "unit": "GPUs",
            }
        )
    return 0


def say(line: dict[str, Any]) -> None:
    """Print the rung's line."""
    kept = {key: value for key, value in line.items() if key not in ("name", "version")}
    sys.stdout.write(json.dumps({"rung": "cuda", **kept}) + "\n")
    sys.stdout.flush()


def alone(work: Any, limit: float) -> dict[str, Any]:
    """Return what `work` says from a child of its own; one that does not end in time is killed and named."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            line = work()
        except Wrong as error:
            call, number, name = error.args
            line = {"state": "failed", "code": "cuda-error", "params": {"call": call, "number": number, "name": name}}
        except BaseException as error:  # noqa: BLE001 - the parent names it
            line = {"state": "failed", "text": f"{type(error).__name__}: {error}"[:300]}
        os.write(writer, json.dumps(line).encode())
        os._exit(0)
    os.close(writer)
    said = b""
    end = time.monotonic() + limit
    while select.select([reader], [], [], max(0.0, end - time.monotonic()))[0]:
        block = os.read(reader, 65536)
        if not block:
            break
        said += block
    os.close(reader)
    in_time = time.monotonic() < end
    if not in_time:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not in_time:
        return {"state": "failed", "code": "cuda-hung", "params": {"seconds": round(limit)}}
    with contextlib.suppress(ValueError):
        line = json.loads(said)
        if isinstance(line, dict):
            return line
    return {"state": "failed", "code": "cuda-killed", "params": {"signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0}}


def library() -> ctypes.CDLL:
    """Return the driver's library, started; raises `OSError` when there is none and `Wrong` when it does not start."""
    found = ctypes.CDLL("libcuda.so.1")
    check(found, "cuInit", 0)
    return found


def check(library: ctypes.CDLL, name: str, *arguments: Any) -> None:
    """Call a function of the driver; raises `Wrong` unless it succeeds."""
    number = getattr(library, name)(*arguments)
    if number:
        text = ctypes.c_char_p()
        known = library.cuGetErrorName(number, ctypes.byref(text)) == 0 and text.value
        raise Wrong(name, number, text.value.decode() if known and text.value else "?")


def count_devices() -> dict[str, Any]:
    """Return how many GPUs the driver offers, and the CUDA version that it supports."""
    cuda = library()
    count, version = ctypes.c_int(), ctypes.c_int()
    check(cuda, "cuDeviceGetCount", ctypes.byref(count))
    check(cuda, "cuDriverGetVersion", ctypes.byref(version))
    return {"state": "passed", "value": count.value, "version": f"{version.value // 1000}.{version.value % 1000 // 10}"}


def compute(number: int) -> dict[str, Any]:
    """Let one GPU compute and compare what it wrote."""
    cuda = library()
    device, major = ctypes.c_int(), ctypes.c_int()
    name = ctypes.create_string_buffer(128)
    check(cuda, "cuDeviceGet", ctypes.byref(device), number)
    check(cuda, "cuDeviceGetName", name, len(name), device)
    check(cuda, "cuDeviceGetAttribute", ctypes.byref(major), MAJOR, device)
    context, module, function, memory = (ctypes.c_void_p() for _ in range(4))
    check(cuda, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    check(cuda, "cuCtxSetCurrent", context)
    text = KERNEL.format(target="sm_30" if major.value < 5 else "sm_50").encode()
    check(cuda, "cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(text))
    check(cuda, "cuModuleGetFunction", ctypes.byref(function), module, b"fill")
    size = ctypes.c_size_t(4 * THREADS)
    check(cuda, "cuMemAlloc_v2", ctypes.byref(memory), size)
    arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.pointer(memory), ctypes.c_void_p))
    check(cuda, "cuLaunchKernel", function, 1, 1, 1, THREADS, 1, 1, 0, None, arguments, None)
    check(cuda, "cuCtxSynchronize")
    result = (ctypes.c_uint32 * THREADS)()
    check(cuda, "cuMemcpyDtoH_v2", result, memory, size)
    wrong = next((at for at, value in enumerate(result) if value != 3 * at + 1), None)
    if wrong is not None:
        return {"state": "failed", "code": "cuda-wrong", "params": {"at": wrong}}
    return {"state": "passed", "name": name.value.decode(errors="replace")}


if __name__ == "__main__":
    sys.exit(main())
