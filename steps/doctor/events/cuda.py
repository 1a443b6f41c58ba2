"""What the CUDA runtime and the fabric manager say."""

from __future__ import annotations
