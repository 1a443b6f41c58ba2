"""How each package manager makes things installed, and takes them back."""
