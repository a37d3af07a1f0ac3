"""What a server is asked, and how its answer is read: one file an endpoint."""
