"""Package repositories and apt: keys, sources, conflicts, versions that do not fit."""

from __future__ import annotations
