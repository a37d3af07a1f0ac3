"""The study of an engine's switches: a ladder, leave-one-out, and all the evidence for each step."""
