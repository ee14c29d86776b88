"""Puts the paper's measured rows, which lie outside the packages, into what is installed."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithRows(build_py):
    """Copies `paper/full` to `gridshift_paper/paper/full`, where `shipped_rows` looks."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return  # the rows of the checkout are found where they are
        target = Path(self.build_lib) / "gridshift_paper" / "paper" / "full"
        self.mkpath(str(target))
        for path in sorted(Path("paper/full").iterdir()):
            if path.suffix in (".parquet", ".json"):
                self.copy_file(str(path), str(target / path.name))


setup(cmdclass={"build_py": BuildWithRows})
