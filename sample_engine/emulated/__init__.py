"""An accelerator emulated by a process of its own on one CPU thread: shared/ is what both processes read,
host/ runs in the engine, worker/ in the device process.
"""
