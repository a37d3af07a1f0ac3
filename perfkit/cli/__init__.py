"""The command line: one module a command. Reads options, calls layers and reports, prints."""
