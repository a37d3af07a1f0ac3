"""The method: measure, judge, guard. One package per layer, each collect → analyse → judge."""
