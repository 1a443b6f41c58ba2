"""What ROCm and Gaudi say."""

from __future__ import annotations
