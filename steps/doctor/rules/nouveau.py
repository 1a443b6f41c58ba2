"""Another driver owns the card."""

from __future__ import annotations
