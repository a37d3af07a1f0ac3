"""What slow inference looks like in a trace: the catalogue of symptoms, one family per file."""
