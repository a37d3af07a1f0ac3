"""What the engine tells about itself: stage events, counters, profiles."""
