"""Modules that were not built, or not from what their package says."""

from __future__ import annotations
