"""Power and heat."""

from __future__ import annotations
