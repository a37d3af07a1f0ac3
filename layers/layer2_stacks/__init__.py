"""Layer 2: sampled stacks. Which line of which thread waits or burns, how sure is that, and of what share."""
