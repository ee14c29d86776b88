"""Other programs that solve the same rows, and the engine timed beside them: `gridshift bench`."""
