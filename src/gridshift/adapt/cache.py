"""Where trained surrogates are kept between runs."""

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """`$GRIDSHIFT_CACHE`, or gridshift's folder in the user's cache directory; not created here."""
    if chosen := os.environ.get("GRIDSHIFT_CACHE"):
        return Path(chosen)
    if sys.platform == "win32":
        parent = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        parent = Path.home() / "Library" / "Caches"
    else:
        parent = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return parent / "gridshift"
