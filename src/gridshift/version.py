"""The version of gridshift that is installed."""

from importlib.metadata import version

VERSION = version("gridshift")
