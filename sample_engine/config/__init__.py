"""What the engine is told: switches, limits, sizes, and where each value came from."""
