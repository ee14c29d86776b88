"""Data sets of solved cases as PFΔ has them: one PowerModels file (JSON) for each sample."""

from pathlib import Path
from typing import Any


class PfdeltaFiles:
    def __init__(self, folder: Path, network: Any):
        self.paths = (folder,)
