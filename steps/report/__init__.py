"""What a person hands over: the report as HTML and Markdown, and the card of BIOS paths; nothing in them names a person or a machine."""
