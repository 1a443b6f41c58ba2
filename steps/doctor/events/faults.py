"""What the kernel's log and the driver's tools tell of faults of a card: Xid, ECC, heat."""

from __future__ import annotations
