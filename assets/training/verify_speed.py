"""Measure what PyTorch reaches on these GPUs: cuDNN, copies between cards, all-reduce over all of them, half precision.

Run by the environment's interpreter: `python verify_speed.py [--limit 60] [--gpus 2]`, with `ranks.py` beside it. Without a
GPU only half precision is measured. Figures are GB/s of 10^9 bytes; whether they are what this machine should reach is not
judged here.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from ranks import Line, alone, half_type, kept_out, say, together

LIMIT = 60.0
BYTES = 1 << 28
"""One message: large enough that a link and not the start of a copy is measured."""
MOST_BYTES = 16 << 30
"""The message of an all-reduce where memory allows: NVSwitch shows what it can only with large ones."""
SMALL_BYTES = 1 << 24
"""A message that crosses even a slow link in time: how long it takes says how large the one that is measured may be."""
ROUND_SECONDS = 2.0
"""So long may one round of an all-reduce take; there are nine of them within the limit."""
COPY_SECONDS = 30.0
"""So long may all copies between cards take together."""
ROUNDS, WARM = 5, 3
MATRIX = 4096


def main() -> int:
    """Try every rung in order and print its line; the status is 0 whatever they say, for the lines are the answer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=float, default=LIMIT)
    parser.add_argument("--gpus", type=int, default=0, help="how many GPUs there are: nothing is measured where fewer are seen")
    parser.add_argument("--processor", type=int, default=0, help="so many ranks without GPUs, to try out the program itself")
    asked = parser.parse_args()
    if error := kept_out("torch", "torch.distributed"):
        say({"rung": "speed", "state": "failed", "text": error})
        return 0
    seen = alone(how_many, asked.limit)
    say({"rung": "seen", **seen})
    count = int(seen.get("value", 0))
    if seen["state"] != "passed" or count < asked.gpus:
        return 0
    say({"rung": "cudnn-conv", **(alone(convolves, asked.limit) if count else no_gpu())})
    say({"rung": "speed", **alone(lambda: half_precision(gpu=count > 0), asked.limit)})
    alone_here = {"state": "skipped", "code": "one-gpu"} if count else no_gpu()
    say({"rung": "peers", **(alone(peers, asked.limit) if count > 1 else alone_here)})
    ranks = asked.processor or count
    all_reduce = partial(bandwidth, ranks=ranks, gpu=not asked.processor)
    say({"rung": "bandwidth", **(together(ranks, asked.limit, lambda rank, at: all_reduce(rank, folder=at)) if ranks > 1 else alone_here)})
    return 0


def no_gpu() -> Line:
    """Return what is said where PyTorch sees no GPU."""
    return {"state": "skipped", "code": "no-gpu"}


def how_many() -> Line:
    """Return how many GPUs PyTorch sees; in a process of its own, so that the others may still be forked."""
    import torch

    return {"state": "passed", "value": torch.cuda.device_count() if torch.cuda.is_available() else 0}


def convolves() -> Line:
    """Whether cuDNN computes a convolution and its gradients as the processor does."""
    import torch

    if not torch.backends.cudnn.is_available():
        return {"state": "failed", "code": "no-cudnn"}
    torch.manual_seed(7)
    layer = torch.nn.Conv2d(16, 32, 3, padding=1)
    images = torch.randn(8, 16, 32, 32)
    results = []
    for device in ("cpu", "cuda:0"):
        model, inputs = torch.nn.Conv2d(16, 32, 3, padding=1).to(device), images.to(device)
        model.load_state_dict(layer.state_dict())
        with torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
            model(inputs).square().mean().backward()
        results.append(model.weight.grad.cpu())
    off = (results[0] - results[1]).abs().max().item()
    version = torch.backends.cudnn.version() or 0
    # Five digits from cuDNN 9 on (91002: 9.10.2), four before (8905: 8.9.5).
    base = 10000 if version >= 90000 else 1000
    spelt = f"{version // base}.{version % base // 100}.{version % 100}"
    return {
        "state": "passed" if off <= 1e-4 else "failed",
        "code": "difference-cpu",
        "params": {"off": f"{off:.1e}"},
        "detail": spelt,
        "value": off,
        "unit": "difference",
        "expected": 1e-4,
    }


def half_precision(*, gpu: bool) -> Line:
    """How much faster half precision multiplies than full precision: the figure, without a verdict.

    A GPU that was counted and is gone is an error here, as below: nothing falls back to the processor.
    """
    import torch

    device, size = ("cuda:0", MATRIX) if gpu else ("cpu", 512)
    half = half_type(gpu=gpu)
    seconds = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.set_float32_matmul_precision("highest")
    for dtype in (torch.float32, half):
        one = torch.randn(size, size, device=device).to(dtype)
        seconds[dtype] = timed(lambda one=one: one @ one, 10, gpu=gpu)
    flops = 2 * size**3 / seconds[half] / 1e12
    ratio = seconds[torch.float32] / seconds[half]
    name = str(half).partition(".")[2]
    params = {"ratio": f"{ratio:.1f}", "dtype": name, "teraflops": f"{flops:.1f}", "device": "cuda" if gpu else "cpu"}
    # A processor's figure would round to nothing.
    code = "half-faster" if gpu else "half-faster-cpu"
    return {"state": "passed", "code": code, "params": params, "detail": f"{ratio:.1f}×", "value": ratio, "unit": "×"}


def timed(work: Any, rounds: int, *, gpu: bool, warm: int = WARM) -> float:
    """Return the seconds that one round takes, after a few that warm up."""
    import torch

    for _ in range(warm):
        work()
    if gpu:
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(rounds):
        work()
    if gpu:
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / rounds


def peers() -> Line:
    """Copy between every two cards, and compare; the figure is the slowest pair's."""
    import torch

    count = torch.cuda.device_count()
    found = []
    for one in range(count):
        source = torch.full((BYTES // 4,), float(one + 1), device=f"cuda:{one}")
        for other in range(count):
            if one == other:
                continue
            direct = torch.cuda.can_device_access_peer(one, other)
            target = torch.zeros(BYTES // 4, device=f"cuda:{other}")
            rate = copied(source, target, one, COPY_SECONDS / (count * (count - 1)))
            if rate is None:
                # Direct copies that arrive wrong are worse than none.
                return {"state": "failed", "code": "peer-wrong", "params": {"a": one, "b": other}}
            found.append((rate, one, other, direct))
            del target
    slowest, a, b, _ = min(found)
    direct = sum(way for *_, way in found)
    matrix = "; ".join(f"{one}-{other} {rate:.1f}{'' if way else ' via memory'}" for rate, one, other, way in found[:56])
    params = {"slowest": f"{slowest:.1f}", "a": a, "b": b, "direct": direct, "all": len(found), "matrix": matrix}
    return {"state": "passed", "code": "peers", "params": params, "detail": f"{slowest:.1f} GB/s", "value": slowest, "unit": "GB/s"}


def copied(source: Any, target: Any, card: int, seconds: float) -> float | None:
    """Return the GB/s from one card to another, measured in about so many seconds; `None` when something else arrives than was sent."""
    import torch

    def copy(size: int) -> Any:
        return lambda: target[: size // 4].copy_(source[: size // 4])

    with torch.cuda.device(card):
        small = timed(copy(SMALL_BYTES), 1, gpu=True, warm=1)
        size = fitting(small, BYTES, seconds / (ROUNDS + WARM))
        took = timed(copy(size), ROUNDS, gpu=True)
    return size / took / 1e9 if bool((target[: size // 4] == source[0].item()).all()) else None


def bandwidth(rank: int, ranks: int, folder: Path, *, gpu: bool, rounds: int = ROUNDS) -> Line:
    """Add one large message over all cards; the figure is the bus bandwidth as nccl-tests defines it: 2 (n - 1) / n x bytes / seconds."""
    import torch
    import torch.distributed as dist

    gpu = gpu and dist.is_nccl_available()
    if gpu:
        torch.cuda.set_device(rank)
    backend, device = ("nccl", f"cuda:{rank}") if gpu else ("gloo", "cpu")
    # The same for all ranks: the smallest card decides.
    room = min(torch.cuda.get_device_properties(card).total_memory for card in range(ranks)) // 4 if gpu else BYTES // 16
    store = f"file://{folder}/store"
    dist.init_process_group(backend, init_method=store, rank=rank, world_size=ranks, timeout=timedelta(seconds=LIMIT))
    size = fitting(agreed(small_sum(device, gpu=gpu), device), min(MOST_BYTES, room), ROUND_SECONDS)
    message = torch.ones(size // 4, device=device)
    dist.all_reduce(message)
    if not bool((message == ranks).all()):
        return {"state": "failed", "code": "wrong-sum", "params": {"rank": rank}}
    message.fill_(0.0)
    seconds = timed(lambda: dist.all_reduce(message), rounds, gpu=gpu)
    dist.barrier()
    rate = 2 * (ranks - 1) / ranks * size / seconds / 1e9
    name = torch.cuda.get_device_name(0) if gpu else "cpu"
    params = {"ranks": ranks, "backend": backend, "rate": f"{rate:.1f}", "name": name}
    return {"state": "passed", "code": "bandwidth", "params": params, "detail": f"{rate:.1f} GB/s", "value": rate, "unit": "GB/s"}


def small_sum(device: str, *, gpu: bool) -> float:
    """Return the seconds that the sum of a small message takes."""
    import torch
    import torch.distributed as dist

    message = torch.zeros(SMALL_BYTES // 4, device=device)
    return timed(lambda: dist.all_reduce(message), 2, gpu=gpu, warm=1)


def agreed(seconds: float, device: str) -> float:
    """Return the longest time that any rank measured: all of them must take a message of one size."""
    import torch
    import torch.distributed as dist

    longest = torch.tensor([seconds], dtype=torch.float64, device=device)
    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    return float(longest.item())


def fitting(small: float, most: int, seconds: float) -> int:
    """Return the bytes of a message that takes about so many seconds where a small one takes `small`; at most `most`.

    A slow link is measured with less and is slow, not hung.
    """
    return min(most, max(SMALL_BYTES, int(SMALL_BYTES * seconds / max(small, 1e-6)))) // 4096 * 4096


if __name__ == "__main__":
    sys.exit(main())
