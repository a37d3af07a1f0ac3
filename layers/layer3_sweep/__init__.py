"""Layer 3: how throughput, latency, accuracy and utilisation go with load."""
