"""What goes with what, from silicon to wheel, and why."""
