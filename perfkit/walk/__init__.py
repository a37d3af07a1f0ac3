"""The walk: pre-flight and the five layers in their order, a decision after each, all of it recorded."""
