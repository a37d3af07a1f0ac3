"""Files of other tools, read into tables. Pure: one format a file, nothing live is touched."""
