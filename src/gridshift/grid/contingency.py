"""Outages: parse, enumerate, tell which split the grid, rank by loading."""
