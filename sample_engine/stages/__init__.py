"""Models as stages of a pipeline: slots, launching, resolving."""
