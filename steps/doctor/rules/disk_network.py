"""Full disks, and a network in the way."""

from __future__ import annotations
