"""Live stacks: which process to sample, whether it may be, at what rate, and py-spy at work on it."""
