"""The method: measure, judge, guard. One package a layer, each collect → analyse → judge."""
