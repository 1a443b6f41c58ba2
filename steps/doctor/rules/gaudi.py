"""Intel Gaudi."""

from __future__ import annotations
