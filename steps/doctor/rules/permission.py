"""Permissions on the device nodes and for privileged operations."""

from __future__ import annotations
