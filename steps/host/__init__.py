"""The one door to a machine."""
