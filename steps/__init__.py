"""Everything of `bringup` that needs no screen."""
