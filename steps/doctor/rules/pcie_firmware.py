"""The bus and the firmware: links, windows, cards that do not start."""

from __future__ import annotations
