"""Sampling GPUs while a load runs, in processes of its own."""
