"""NCCL: peer-to-peer, shared memory, the network."""

from __future__ import annotations
