"""WSL2."""

from __future__ import annotations
