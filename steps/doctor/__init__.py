"""The doctor: evidence of a machine into one primary diagnosis, with what was ruled out and a repair."""
