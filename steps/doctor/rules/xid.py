"""Faults that the driver reports by Xid."""

from __future__ import annotations
