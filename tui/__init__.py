"""What is seen: the Textual application and the command."""
