"""The decision rules, one module for each category of the vocabulary."""
