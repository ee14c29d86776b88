"""Slow textbook versions that the product is held against."""
