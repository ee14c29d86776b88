"""`python -m gridshift` is the command `gridshift`."""

from gridshift.cli import main

main(prog_name="gridshift")
