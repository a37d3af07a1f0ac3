"""The HTTP front, and the engine as its child process."""
