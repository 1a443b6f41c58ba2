"""Texts of any origin into typed events."""
