"""Before anything is measured: which GPU, which versions, whose processes, and what this machine lacks."""
