"""Try out a toolkit: let its compiler translate a small program, run that, and compare what it computed.

Run isolated by any Python: `python -I verify_nvcc.py NVCC [--limit 120]`. One JSON line: `rung` "nvcc-sample", `state`, and where
they are known `code` with `params`, `text` (the compiler's or the program's own words).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SOURCE = r"""
#include <cstdio>
#include <cuda_runtime.h>
__global__ void add(const float *a, const float *b, float *sum, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) sum[i] = a[i] + b[i];
}
int main()
{
    const int n = 1 << 16;
    float *a, *b, *sum;
    if (cudaMallocManaged(&a, n * sizeof *a) || cudaMallocManaged(&b, n * sizeof *b) || cudaMallocManaged(&sum, n * sizeof *sum)) {
        std::printf("%s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
    for (int i = 0; i < n; i++) { a[i] = i; b[i] = 2 * i; }
    add<<<(n + 255) / 256, 256>>>(a, b, sum, n);
    cudaError_t error = cudaDeviceSynchronize();
    if (error) { std::printf("%s\n", cudaGetErrorString(error)); return 1; }
    for (int i = 0; i < n; i++) if (sum[i] != 3.0f * i) { std::printf("wrong at %d\n", i); return 1; }
    std::printf("ok\n");
    return 0;
}
"""


def main() -> int:
    """Print the line; the status is 0 whatever it says, for the line is the answer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("nvcc")
    parser.add_argument("--limit", type=float, default=120.0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bringup-nvcc-") as folder:
        line = compiled(asked.nvcc, Path(folder), asked.limit)
    sys.stdout.write(json.dumps({"rung": "nvcc-sample", **line}) + "\n")
    return 0


def compiled(nvcc: str, folder: Path, limit: float) -> dict[str, Any]:
    """Return how translating and running went."""
    source, program = folder / "add.cu", folder / "add"
    source.write_text(SOURCE)
    # nvcc looks for the host compiler on PATH; the GPU that is there decides what it translates for.
    environ = {**os.environ, "PATH": os.environ.get("PATH") or "/usr/local/bin:/usr/bin:/bin"}
    made = run((nvcc, "-O1", "-arch=native", "-o", str(program), str(source)), limit, environ)
    if "native" in made["text"] and made["status"]:
        # Compilers before CUDA 11.6 do not know the word and take their default.
        made = run((nvcc, "-O1", "-o", str(program), str(source)), limit, environ)
    if made["status"]:
        return {"state": "failed", "code": "nvcc-fails", "params": {"text": made["text"]}}
    ran = run((str(program),), limit, environ)
    if ran["status"] or ran["text"] != "ok":
        return {"state": "failed", "code": "nvcc-sample-fails", "params": {"text": ran["text"]}}
    return {"state": "passed", "code": "nvcc-sample"}


def run(argv: tuple[str, ...], limit: float, environ: dict[str, str]) -> dict[str, Any]:
    """Return a command's status and its first line that says something, an error's before others."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=limit, env=environ, check=False, errors="replace")
    except subprocess.TimeoutExpired:
        return {"status": -1, "text": f"no end within {limit:.0f} s"}
    except OSError as error:
        return {"status": -1, "text": str(error)}
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    worst = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")
    return {"status": done.returncode, "text": worst[:200]}


if __name__ == "__main__":
    sys.exit(main())
