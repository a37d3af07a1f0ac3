"""What a server can be told and asked beside its load: one file a kind of server."""
