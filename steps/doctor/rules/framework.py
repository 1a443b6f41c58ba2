"""Frameworks and what builds their extensions."""

from __future__ import annotations
