"""Installations that wait for an answer, or did not get one."""

from __future__ import annotations
