"""Fault runs: a small plan with real apt and dpkg, hurt at a chosen moment, and what has to hold afterwards."""
