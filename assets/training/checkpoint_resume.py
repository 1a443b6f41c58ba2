"""Train on several GPUs, save every few steps, and go on where the last run stopped: after a crash, a reboot, a full queue.

    torchrun --standalone --nproc-per-node 2 checkpoint_resume.py --folder /data/run1
    torchrun --standalone --nproc-per-node 2 checkpoint_resume.py --folder /data/run1     # goes on

Run to the end in one go or in pieces, the weights come out the same. That needs everything that the next step depends on:
(1) the model, (2) the optimizer, (3) the step, and (4) random numbers that follow from the step and not from the past.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, default=Path("checkpoints"))
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--every", type=int, default=10, help="save after so many steps")
    parser.add_argument("--stop-after", type=int, default=None, help="end early, as a crash would")
    asked = parser.parse_args()
    started()

    rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")

    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(32, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    file = asked.folder / "checkpoint.pt"
    first = load(file, model, optimizer, device)
    if rank == 0 and first:
        print(f"going on at step {first}", flush=True)
    wrapped = DistributedDataParallel(model, device_ids=[local_rank] if on_gpu else None)

    loss = torch.zeros(())
    for step in range(first, asked.steps):
        if step == asked.stop_after:
            print("stopped on purpose", flush=True)
            break
        optimizer.zero_grad(set_to_none=True)
        # (4) The batch follows from the step: a run that goes on sees what it would have seen.
        chance = torch.Generator().manual_seed(step * dist.get_world_size() + rank)
        inputs = torch.randn(64, 32, generator=chance).to(device)
        loss = torch.nn.functional.mse_loss(wrapped(inputs), torch.tanh(inputs[:, :8]))
        loss.backward()
        optimizer.step()
        if (step + 1) % asked.every == 0:
            # Only one rank writes: all have the same weights. The others wait, so that nobody runs ahead of a save.
            if rank == 0:
                save(file, model, optimizer, step + 1)
            dist.barrier()
    else:
        if rank == 0:
            print(f"done  loss {loss.item():.4f}  weights {sum(p.double().sum().item() for p in model.parameters()):.9f}", flush=True)
    del loss, wrapped
    dist.destroy_process_group()


def started() -> None:
    """End with the line to type where nobody said which process of how many this is."""
    if "RANK" not in os.environ:
        torchrun = Path(sys.executable).with_name("torchrun")
        count = max(1, torch.cuda.device_count())
        raise SystemExit(f"start me with: {torchrun} --standalone --nproc-per-node {count} {shlex.join(sys.argv)}")


def save(file: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    """Write a checkpoint beside the old one and put it in its place: a power cut leaves the old or the new one, never half of one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, partial)  # (1) (2) (3)
    on_disk(partial)  # else the new name may reach the disk before what it names
    os.replace(partial, file)
    on_disk(file.parent)  # the name itself is written in the folder


def on_disk(path: Path) -> None:
    """Wait until a file, or a folder with its names, is on the disk and not only in memory."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def load(file: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, device: torch.device) -> int:
    """Take up a checkpoint and return the step to go on with; 0 when there is none."""
    if not file.exists():
        return 0
    # weights_only: a checkpoint from elsewhere can hold numbers, but no program.
    kept = torch.load(file, map_location=device, weights_only=True)
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    return int(kept["step"])


if __name__ == "__main__":
    main()
