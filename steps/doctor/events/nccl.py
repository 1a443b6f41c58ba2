"""What NCCL and the network under it say."""

from __future__ import annotations
