"""Measurements of the engine: against other programs, against the machine, and of its set-up."""
