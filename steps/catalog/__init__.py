"""The tables of `assets/data` as typed records, loaded strictly."""
