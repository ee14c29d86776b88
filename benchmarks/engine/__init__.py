"""The engine against other programs and against the machine, on all grids."""
