"""Secure Boot and its keys."""

from __future__ import annotations
