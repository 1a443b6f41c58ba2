"""What is known, how old it is, and how it is read anew from the indexes that this machine uses."""
