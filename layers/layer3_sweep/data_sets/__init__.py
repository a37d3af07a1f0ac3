"""Where the items of a sweep come from: files, and text and sound made on the spot."""
