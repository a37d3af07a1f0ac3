"""The device process of an emulated device."""
