"""Ratings that stand for 'no limit'."""

UNLIMITED_MVA = 9900.0
"""MATPOWER's case118 writes it; pandapower's case118 and case300 carry it as a current."""
UNLIMITED_KA = 99999.0
"""pandapower's own way to write it."""
UNLIMITED_RATE_A = 1e10
"""MATPOWER treats a RATE_A of 0, and one from here on, as none."""
