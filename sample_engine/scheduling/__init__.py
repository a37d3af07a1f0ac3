"""Who runs when: requests, queues, batches, and the loops that drive the stages."""
