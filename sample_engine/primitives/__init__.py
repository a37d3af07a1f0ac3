"""Kernels that models are made of, and the promise that a row's result depends on that row alone."""
