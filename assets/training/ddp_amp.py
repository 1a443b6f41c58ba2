"""Train one model on all GPUs of this machine, in half precision, with small batches that add up to a large one.

Start it from the environment that bringup made; one process a GPU:

    torchrun --standalone --nproc-per-node 4 ddp_amp.py
    torchrun --standalone --nproc-per-node 2 ddp_amp.py        # also without a GPU: then over gloo, on the processor

Several machines, started on each of them with the address of the first one:

    torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint 10.0.0.5:29500 ddp_amp.py

Four ideas are shown, each marked in the code: (1) a process a GPU, (2) automatic mixed precision, (3) gradient accumulation,
(4) no exchange of gradients before it is needed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

ACCUMULATE = 4  # so many small batches make one step: a large batch in the memory of a small one
SMALL_BATCH = 32
STEPS = 40


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=STEPS)
    steps = parser.parse_args().steps
    started()

    # (1) torchrun starts this program once for each GPU and says through the environment which one it is.
    rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")  # NCCL moves data between GPUs, gloo between processors

    torch.manual_seed(7)  # all processes start from the same weights
    model = torch.nn.Sequential(torch.nn.Linear(32, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8)).to(device)
    model = DistributedDataParallel(model, device_ids=[local_rank] if on_gpu else None)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    # (2) Half precision where it is safe, full precision where it is needed: autocast decides for each operation.
    #     bfloat16 has the range of float32. float16 has not: its small gradients are scaled up so that they do not vanish.
    #     Cards before Ampere (V100, T4, RTX 20) only imitate bfloat16, slowly: float16 is for them.
    half = torch.bfloat16 if not on_gpu or torch.version.hip or torch.cuda.get_device_capability()[0] >= 8 else torch.float16
    scaler = torch.amp.GradScaler(device.type, enabled=half is torch.float16)

    for step in range(steps):
        optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for part in range(ACCUMULATE):
            inputs, targets = a_batch(seed=(step * ACCUMULATE + part) * dist.get_world_size() + rank, device=device)
            # (4) Gradients are exchanged in the last backward pass only; before that it would be wasted time.
            last = part == ACCUMULATE - 1
            with contextlib.nullcontext() if last else model.no_sync():
                with torch.autocast(device.type, dtype=half):
                    loss = torch.nn.functional.mse_loss(model(inputs), targets)
                # (3) Each part counts a quarter: the sum of their gradients is the gradient of the large batch.
                scaler.scale(loss / ACCUMULATE).backward()
            total += loss.item() / ACCUMULATE
        scaler.step(optimizer)
        scaler.update()
        if rank == 0 and (step % 10 == 0 or step == steps - 1):
            print(f"step {step:3d}  loss {total:.4f}", flush=True)

    # The wrapped model goes first: destroyed after its process group, it can wait for a thread that waits for it.
    del loss, optimizer, model
    dist.destroy_process_group()


def started() -> None:
    """End with the line to type where nobody said which process of how many this is."""
    if "RANK" not in os.environ:
        torchrun = Path(sys.executable).with_name("torchrun")
        count = max(1, torch.cuda.device_count())
        raise SystemExit(f"start me with: {torchrun} --standalone --nproc-per-node {count} {shlex.join(sys.argv)}")


def a_batch(seed: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs and targets that can be learnt; in your program this is a DataLoader with a DistributedSampler."""
    chance = torch.Generator().manual_seed(seed)
    inputs = torch.randn(SMALL_BATCH, 32, generator=chance)
    return inputs.to(device), torch.tanh(inputs[:, :8]).to(device)


if __name__ == "__main__":
    main()
