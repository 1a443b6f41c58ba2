"""Try out PyTorch in its own environment: one JSON line per rung, each tried in a process of its own.

Run by the environment's interpreter: `python verify_torch.py [--ranks 2] [--limit 60]`. It needs PyTorch and `ranks.py` beside
it, writes only below a temporary folder and never opens a network port to other machines.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ranks import Line, alone, half_type, kept_out, last_line, say, together

RANKS = 2
LIMIT = 60.0
TOLERANCE = 1e-6
SHARE = 32
"""Samples a rank: shares of one size, for the mean of the ranks' gradients is the whole batch's only then."""
KEPT: list[Any] = []
"""What a rank holds until its process ends."""
SEEN: list[int] = []
"""How many GPUs the first rung saw: from then on no rung falls back to the processor, so a card that is lost breaks it."""


def main() -> int:
    """Try every rung in order and print its line; the status is 0 whatever they say, for the lines are the answer."""
    # Compiled modules are kept for the person's own first import, but nobody leaves files in somebody else's environment.
    sys.dont_write_bytecode = os.stat(sys.prefix).st_uid != os.geteuid()
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=RANKS)
    parser.add_argument("--limit", type=float, default=LIMIT)
    parser.add_argument("--only", help="one rung instead of all")
    parser.add_argument("--hang", type=int, default=None, help="a rank that never answers, to try out the limit")
    asked = parser.parse_args()
    if error := kept_out("torch", "torch.distributed"):
        say({"rung": "import", "state": "failed", "text": error})
        return 0
    import torch

    with contextlib.suppress(Exception):
        import torch._dynamo  # optimizers load it at their first use; here it is loaded once for all children
    say({"rung": "import", "state": "passed", "detail": torch.__version__})
    rungs: tuple[tuple[str, Callable[..., Line]], ...] = (
        ("gpu", sees_gpus),
        ("amp", mixed_precision),
        ("accumulation", accumulates),
    )
    for name, rung in rungs:
        if asked.only not in (None, name):
            continue
        line = alone(rung, limit=asked.limit)
        say({"rung": name, **line})
        if line.get("unit") == "GPUs":
            SEEN.append(int(line["value"]))
    ranks = max(asked.ranks, *SEEN, 0)
    if asked.only in (None, "ddp"):
        say({"rung": "ddp", **together(ranks, asked.limit, lambda rank, folder: one_rank(rank, ranks, asked.limit, folder, asked.hang))})
    return 0


# --- rungs ----------------------------------------------------------------------------------------


def sees_gpus() -> Line:
    """Whether CUDA (or ROCm) can be used, and the reason when not; a GPU is only seen when it computed something."""
    import torch

    built = torch.version.cuda or getattr(torch.version, "hip", None)
    if not built:
        return {"state": "skipped", "code": "cpu-build", "params": {"version": torch.__version__}}
    if torch.cuda.is_available():
        count = torch.cuda.device_count()
        for device in range(count):
            total = torch.ones(1024, device=f"cuda:{device}").sum().item()
            if total != 1024:
                return {"state": "failed", "code": "wrong-sum", "params": {"rank": device}}
        return {"state": "passed", "detail": f"{count} × {torch.cuda.get_device_name(0)}", "value": count, "unit": "GPUs"}
    try:
        torch.cuda.init()
    except Exception as error:  # noqa: BLE001 - this is the reason that is asked for
        reason = last_line(error)
    else:
        reason = "no CUDA device"
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return {"state": "failed", "code": "hidden", "params": {"value": os.environ["CUDA_VISIBLE_DEVICES"]}, "text": reason}
    return {"state": "failed", "text": reason}


def gpus() -> int:
    """Return how many GPUs there are to compute on: as many as were seen, else as many as can be counted now."""
    import torch

    if SEEN:
        return SEEN[0]
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def device_of() -> str:
    """Return the device that a single process computes on."""
    return "cuda:0" if gpus() else "cpu"


def small_model(device: str) -> Any:
    """Return the same small network at every call."""
    import torch

    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).to(device)


def batch(device: str, size: int = 64, seed: int = 11) -> tuple[Any, Any]:
    """Return the same inputs and targets at every call; the targets can be learnt."""
    import torch

    chance = torch.Generator().manual_seed(seed)
    inputs = torch.randn(size, 32, generator=chance)
    targets = torch.tanh(inputs[:, :8] * 0.5 + inputs[:, 8:16] * 0.25)
    return inputs.to(device), targets.to(device)


def mixed_precision() -> Line:
    """Train with autocast to half precision; the loss must fall and the weights must stay in full precision."""
    import torch

    device = device_of()
    kind = device.partition(":")[0]
    half = half_type(gpu=kind == "cuda")
    model, (inputs, targets) = small_model(device), batch(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    # Scaling keeps small float16 gradients from becoming zero; bfloat16 has the range of float32 and needs none.
    scaler = torch.amp.GradScaler(kind, enabled=half is torch.float16)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        with torch.autocast(kind, dtype=half):
            outputs = model(inputs)
        if outputs.dtype is not half:
            return {"state": "failed", "code": "not-half", "params": {"dtype": str(outputs.dtype)}}
        loss = torch.nn.functional.mse_loss(outputs.float(), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    fell = losses[-1] < 0.6 * losses[0]
    full = all(parameter.dtype is torch.float32 for parameter in model.parameters())
    state = "passed" if fell and full else "failed"
    params = {"first": f"{losses[0]:.4f}", "last": f"{losses[-1]:.4f}", "dtype": str(half).removeprefix("torch."), "device": kind}
    return {
        "state": state,
        "code": "loss",
        "params": params,
        "detail": str(params["dtype"]),
        "value": losses[-1],
        "unit": "loss",
        "expected": 0.6 * losses[0],
    }


def accumulates() -> Line:
    """Whether four small batches, accumulated, give the gradients of the large one."""
    import torch

    device = device_of()
    inputs, targets = batch(device)
    large = small_model(device)
    torch.nn.functional.mse_loss(large(inputs), targets).backward()
    small = small_model(device)
    for part, wanted in zip(inputs.chunk(4), targets.chunk(4)):  # noqa: B905 - `strict` came with Python 3.10
        (torch.nn.functional.mse_loss(small(part), wanted) / 4).backward()
    off = max((a.grad - b.grad).abs().max().item() for a, b in zip(large.parameters(), small.parameters()))  # noqa: B905
    return {
        "state": "passed" if off <= TOLERANCE else "failed",
        "code": "difference",
        "params": {"off": f"{off:.1e}"},
        "value": off,
        "unit": "difference",
        "expected": TOLERANCE,
    }


# --- several processes ----------------------------------------------------------------------------


def one_rank(rank: int, ranks: int, limit: float, folder: Path, hang: int | None) -> Line:
    """Return what one rank saw: a right sum, the gradients of the whole batch, and a loss that falls."""
    from datetime import timedelta

    import torch
    import torch.distributed as dist

    if rank == hang:
        time.sleep(limit + 30)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)
    own_gpu = gpus() >= ranks and dist.is_nccl_available()
    device = f"cuda:{rank}" if own_gpu else "cpu"
    backend = "nccl" if own_gpu else "gloo"
    if not own_gpu:
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"  # the ranks of one machine need no network
    else:
        torch.cuda.set_device(rank)
    store = f"file://{folder}/store"
    dist.init_process_group(backend, init_method=store, rank=rank, world_size=ranks, timeout=timedelta(seconds=limit + 30))
    total = torch.full((1024,), float(rank + 1), device=device)
    dist.all_reduce(total)
    if not bool((total == ranks * (ranks + 1) / 2).all()):
        return {"state": "failed", "code": "wrong-sum", "params": {"rank": rank}}
    inputs, targets = batch(device, SHARE * ranks)
    whole = small_model(device)
    torch.nn.functional.mse_loss(whole(inputs), targets).backward()
    model = torch.nn.parallel.DistributedDataParallel(small_model(device), device_ids=[rank] if own_gpu else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    mine, wanted = inputs.chunk(ranks)[rank], targets.chunk(ranks)[rank]
    losses, off = [], 0.0
    for step in range(30):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(mine), wanted)
        loss.backward()
        if step == 0:
            pairs = zip(whole.parameters(), model.parameters())  # noqa: B905
            off = max((a.grad - b.grad).abs().max().item() for a, b in pairs)
        optimizer.step()
        losses.append(loss.item())
    dist.barrier()
    # The reducer's destructor waits, holding the interpreter's lock, for a thread of gloo that may want this lock: now and then
    # for ever. So nothing is destroyed here: this process ends without.
    KEPT.append((model, optimizer, loss))
    params = {"ranks": ranks, "backend": backend, "off": f"{off:.1e}", "first": f"{losses[0]:.4f}", "last": f"{losses[-1]:.4f}"}
    right = off <= 1e-5 and losses[-1] < 0.6 * losses[0]
    return {
        "state": "passed" if right else "failed",
        "code": "ddp",
        "params": params,
        "detail": f"{ranks} ranks",
        "value": losses[-1],
        "unit": "loss",
        "expected": 0.6 * losses[0],
    }


if __name__ == "__main__":
    sys.exit(main())
