"""The CUDA runtime: fabric manager, libcuda, nvidia_uvm, MIG, library shadowing."""

from __future__ import annotations
