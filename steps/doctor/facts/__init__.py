"""What a machine's files and probes tell, as values that name their source."""
