"""The load client: a process of its own that sends requests and writes down when what came back."""
