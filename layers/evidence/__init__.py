"""The shared model of a claim: what was measured, what may be concluded from it, and where it is kept."""
