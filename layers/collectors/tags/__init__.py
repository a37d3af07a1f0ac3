"""Ranges around functions of a service whose code is left alone."""
