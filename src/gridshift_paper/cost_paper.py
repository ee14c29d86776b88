"""The paper's numbers on cost, typed from its source."""

from gridshift_paper.protocol import BACKBONE_LABELS

BACKBONES = {backbone: BACKBONE_LABELS[backbone] for backbone in ("mlp", "pfgnn")}
"""Whose gradient steps the paper costs."""
PAPER_DEPLOYMENT = {
    "case30": (38, 0.103, 0.000, 0.000, 3.500, 4.0, 137.0, 34.3),
    "case118": (166, 0.143, 0.001, 0.001, 3.072, 24.0, 534.0, 22.3),
    "case300": (253, 0.176, 0.002, 0.001, 3.606, 45.0, 957.0, 21.3),
}
"""Table of deployment cost: K; T_data, T_inf of ICW and of fine-tuning, T_grad (s an outage); total
of ICW and of fine-tuning (s); speed-up."""
PAPER_CORES = 48
"""Cores by which the paper divides the serial time of its solver."""

PAPER_300 = {400: (4.22e-4, 1.08e-3, 0.18), 1_000: (4.25e-4, 7.18e-4, 0.44),
             2_000: (3.94e-4, 5.33e-4, 0.88)}  # fmt: skip
"""Section on cost, 300-bus, by context: |V| error of ICW, of fine-tuning at 4,000 steps, and ICW's
cost in seconds."""
PAPER_300_FROZEN = 2.74e-3
PAPER_BAND_RATIO = 0.83
"""Fig. of 30 outages of case118: median of MAE_ICW / MAE_FT at 4,000 steps."""
PAPER_BAND_MARGIN = {"low": 1.20, "mid": 1.22, "high": 1.21}
"""Margin of ICW at 4,000 steps by third of difficulty."""
PAPER_BAND_COST = 22
"""How many times cheaper it is there."""

PAPER_ICW_COST = {("mlp", 400): 5.059, ("pfgnn", 400): 5.257, ("mlp", 1_000): 8.772,
                  ("pfgnn", 1_000): 8.994}  # fmt: skip
"""Appendix on cost: ICW's seconds on 30-bus N-2 Most, of which 4.968 and 8.686 are solves."""
PAPER_ICW_V = {"mlp": 3e-4, "pfgnn": 7e-4}
"""|V| error of ICW in both tables of scratch training, at either context."""

_NO_NORM_400 = {
    100: (5.143, 5.857, 0.1935, 0.0834), 200: (5.230, 6.454, 0.0782, 0.0807),
    400: (5.405, 7.649, 0.0367, 0.0472), 800: (5.755, 10.039, 0.0224, 0.0207),
    1000: (5.930, 11.234, 0.0192, 0.0202), 2000: (6.805, 17.209, 0.0106, 0.0157),
    4000: (8.555, 29.159, 0.0042, 0.0112),
}  # fmt: skip
_NO_NORM_1000 = {
    100: (8.861, 9.575, 0.1547, 0.0808), 200: (8.948, 10.172, 0.0665, 0.0657),
    400: (9.123, 11.367, 0.0292, 0.0498), 800: (9.473, 13.757, 0.0191, 0.0271),
    1000: (9.648, 14.952, 0.0149, 0.0226), 2000: (10.523, 20.927, 0.0079, 0.0130),
    4000: (12.273, 32.877, 0.0036, 0.0073),
}  # fmt: skip
_ZSCORE_400 = {
    100: (5.143, 5.857, 0.0007, 0.0011), 200: (5.230, 6.454, 0.0004, 0.0011),
    400: (5.405, 7.649, 0.0003, 0.0011), 800: (5.755, 10.039, 0.0002, 0.0009),
    1000: (5.930, 11.234, 0.0002, 0.0009), 2000: (6.805, 17.209, 0.0001, 0.0007),
    4000: (8.555, 29.159, 0.0001, 0.0004),
}  # fmt: skip
_ZSCORE_1000 = {
    100: (8.861, 9.575, 0.0008, 0.0011), 200: (8.948, 10.172, 0.0004, 0.0011),
    400: (9.123, 11.367, 0.0002, 0.0011), 800: (9.473, 13.757, 0.0001, 0.0010),
    1000: (9.648, 14.952, 0.0001, 0.0009), 2000: (10.523, 20.927, 0.0001, 0.0005),
    4000: (12.273, 32.877, 0.0001, 0.0004),
}  # fmt: skip
PAPER_SCRATCH = {
    ("no-norm", 400): _NO_NORM_400, ("no-norm", 1_000): _NO_NORM_1000,
    ("zscore", 400): _ZSCORE_400, ("zscore", 1_000): _ZSCORE_1000,
}  # fmt: skip
"""Tables of scratch training, by targets and context: steps to seconds of MLP and PFGNN, then |V|
errors of MLP and PFGNN."""
