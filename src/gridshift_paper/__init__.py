"""Every table and data figure of the paper, measured here and set beside the paper's numbers.

A consumer of the library: protocol, measurements kept as rows, and artefacts drawn from those rows.
"""
