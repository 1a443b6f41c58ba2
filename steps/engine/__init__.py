"""Runs: doing, remembering, asking, taking back."""
