"""What the kernel's log tells of the bus: links, address windows, and who owns a card."""

from __future__ import annotations
