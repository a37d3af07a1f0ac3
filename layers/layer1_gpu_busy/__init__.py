"""Layer 1: is the GPU busy, by which method, and where does the idle time lie?"""
