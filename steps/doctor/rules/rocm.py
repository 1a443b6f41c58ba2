"""AMD ROCm."""

from __future__ import annotations
