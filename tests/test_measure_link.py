"""The program that loads the links, with a stand-in for torch: what it says, that it ends in time, and that it needs no GPU to say so."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from steps import resources

TORCH = """
uint8 = "uint8"
class Tensor:
    def numel(self): return 64 << 20
    def copy_(self, other, non_blocking): assert non_blocking
def device(kind, index): return (kind, index)
def empty(size, dtype, pin_memory): return Tensor()
def empty_like(tensor, device): return Tensor()
class cuda:
    COUNT = {count}
    @staticmethod
    def is_available(): return cuda.COUNT > 0
    @staticmethod
    def device_count(): return cuda.COUNT
    @staticmethod
    def synchronize(device): pass
    @staticmethod
    def get_device_properties(index):
        class Properties: pci_domain_id, pci_bus_id, pci_device_id = 0, 250 + index, 0
        return Properties
"""


def measured(folder: Path, count: int, *argv: str) -> tuple[int, list[str], dict[str, Any]]:
    """Run the program with so many made-up GPUs; return status, lines and the document."""
    (folder / "torch.py").write_text(TORCH.replace("{count}", str(count)), encoding="utf-8")
    program = resources.path_of("training", "measure_link.py")
    done = subprocess.run(
        (sys.executable, "-B", program, *argv), capture_output=True, text=True, timeout=60, env={"PYTHONPATH": str(folder)}
    )
    lines = done.stdout.splitlines()
    return done.returncode, lines, json.loads(lines[-1])


def test_each_gpu_is_loaded_for_the_time_that_was_asked_and_the_rate_is_said(tmp_path: Path) -> None:
    started = time.monotonic()
    status, lines, document = measured(tmp_path, 2, "--seconds", "0.5")
    assert 1.0 <= time.monotonic() - started < 20
    assert (status, len(lines)) == (0, 3)
    assert [one["address"] for one in document["links"]] == ["0000:fa:00.0", "0000:fb:00.0"]
    assert all(one["gigabytes_per_second"] > 0 for one in document["links"])
    # Nothing hangs at these addresses: what the kernel does not say is not known.
    assert [(one["generation"], one["width"]) for one in document["links"]] == [(None, None), (None, None)]
    assert lines[0].startswith("GPU 0 0000:fa:00.0: Gen? x? under load, ")


def test_without_a_gpu_it_says_so(tmp_path: Path) -> None:
    status, _, document = measured(tmp_path, 0)
    assert (status, document) == (1, {"links": [], "reason": "no GPU that this torch can use"})
