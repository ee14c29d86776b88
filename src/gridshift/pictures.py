"""How our pictures look, and as inline SVG: no display, no fonts or files from elsewhere.

Colours are those of Okabe and Ito, maps go from white to one of them, darker throughout: both hold
for the common kinds of colour blindness and in print.
"""

import io
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

BLUE, ORANGE, GREY, RED, GREEN = "#0072B2", "#E69F00", "#6B7280", "#D55E00", "#009E73"

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["Inter", "Segoe UI", "Helvetica", "Arial", "DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#9CA3AF",
    "axes.labelcolor": "#374151",
    "xtick.color": "#374151",
    "ytick.color": "#374151",
    "axes.axisbelow": True,
    "grid.color": "#E5E7EB",
    "legend.frameon": False,
}


def as_svg(figure: Figure, name: str) -> str:
    """The figure as an `<svg>` element; `name` keeps its ids apart from other figures'."""
    text = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name, **STYLE}):
        figure.savefig(
            text, format="svg", metadata={"Date": None, "Creator": None}, transparent=True
        )
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    for kind in ('id="', 'xlink:href="#', "url(#"):
        svg = svg.replace(kind, f"{kind}{name}-")
    return svg
