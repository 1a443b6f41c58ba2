"""cuDNN and the CUDA libraries that programs load."""

from __future__ import annotations
