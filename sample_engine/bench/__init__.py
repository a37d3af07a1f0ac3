"""`python -m sample_engine bench`: start a server, load it, print one table."""
