"""Containers: engines, the toolkit, CDI, device lists."""

from __future__ import annotations
