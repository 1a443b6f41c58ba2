"""Load each GPU's link with copies for a few seconds and say at which generation and width it runs then.

Reads and writes only memory of its own and files below /sys that anybody may read. Prints a line a GPU, and one JSON document at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

MEGABYTES = 64
GENERATIONS = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}


def link(address: str) -> tuple[int | None, int | None]:
    """Return generation and width of a device's link now, each `None` where the kernel does not say."""
    folder = Path("/sys/bus/pci/devices") / address
    try:
        speed = (folder / "current_link_speed").read_text(encoding="ascii").split()[0]
        width = int((folder / "current_link_width").read_text(encoding="ascii"))
    except (OSError, ValueError, IndexError):
        return None, None
    return GENERATIONS.get(speed if "." in speed else f"{speed}.0"), width or None


def address_of(torch: Any, index: int) -> str | None:
    """Return a GPU's PCI address as the kernel spells it; `None` where it cannot be told."""
    found = torch.cuda.get_device_properties(index)
    try:
        return f"{found.pci_domain_id:04x}:{found.pci_bus_id:02x}:{found.pci_device_id:02x}.0"
    except AttributeError:
        # An older torch does not tell; in the order of addresses, which main() asks CUDA for, the driver's devices are the same ones.
        bound = sorted(path.name for path in Path("/sys/bus/pci/drivers/nvidia").glob("????:??:??.?"))
        return bound[index] if len(bound) == torch.cuda.device_count() else None


def measure(torch: Any, index: int, seconds: float) -> dict[str, Any]:
    """Copy from pinned memory to the GPU for so long; return the best link that was seen, and the rate."""
    address = address_of(torch, index)
    seen = [link(address)] if address else []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            if address:
                seen.append(link(address))

    device = torch.device("cuda", index)
    source = torch.empty(MEGABYTES << 20, dtype=torch.uint8, pin_memory=True)
    sink = torch.empty_like(source, device=device)
    watcher = threading.Thread(target=watch)
    watcher.start()
    copied, started = 0, time.monotonic()
    try:
        while time.monotonic() - started < seconds:
            for _ in range(8):
                sink.copy_(source, non_blocking=True)
            torch.cuda.synchronize(device)
            copied += 8 * source.numel()
    finally:
        done.set()
        watcher.join()
    rate = copied / (time.monotonic() - started)
    generations = [generation for generation, _ in seen if generation is not None]
    widths = [width for _, width in seen if width is not None]
    return {
        "gpu": index,
        "address": address,
        "generation": max(generations, default=None),
        "width": max(widths, default=None),
        "gigabytes_per_second": round(rate / 1e9, 2),
    }


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5.0)
    seconds = min(max(parser.parse_args().seconds, 0.5), 30.0)
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    import torch

    if not torch.cuda.is_available():
        print(json.dumps({"links": [], "reason": "no GPU that this torch can use"}))
        return 1
    links = []
    for index in range(torch.cuda.device_count()):
        one = measure(torch, index, seconds)
        links.append(one)
        shown = f"Gen{one['generation'] or '?'} x{one['width'] or '?'}"
        print(f"GPU {index} {one['address'] or '?'}: {shown} under load, {one['gigabytes_per_second']} GB/s to the card", flush=True)
    print(json.dumps({"links": links}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
