"""The command line: one module per command. Reads options, calls layers and reports, prints."""
