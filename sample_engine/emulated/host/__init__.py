"""The host's side of an emulated device; does not import torch."""
