"""Networks with seeded random weights, written as launches of primitives."""
