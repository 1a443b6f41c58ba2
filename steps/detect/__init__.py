"""From what a host shows to facts about the machine."""
