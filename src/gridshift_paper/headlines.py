"""Five numbers that the page opens with, each from stored rows, and the paper's beside it."""

from collections.abc import Iterator

from gridshift_paper import context_sweep, deployment
from gridshift_paper.artefacts import mean_and_spread
from gridshift_paper.claims import Frame, Rows
from gridshift_paper.outages import COMPENSATION, OUTAGES, compensated, frame_of, outages
from gridshift_paper.protocol import printed
from gridshift_paper.records import Book
from gridshift_paper.selection import mean, picked
from gridshift_paper.variants import DRAWS, drawn, drawn_factor

STUDIES = (DRAWS, context_sweep.SWEEP, deployment.TIMES, OUTAGES, COMPENSATION)


def headlines(book: Book) -> Iterator[tuple[str, object, object]]:
    """What each number is, ours, and the paper's; only those that rows suffice for."""
    rows: Rows = {study.name: book.rows(study) for study in STUDIES}
    if len(rows[DRAWS.name]):
        told = printed("table_2")["mlp"]
        yield ("overall error of ICW, heaviest two lines of case30 out, 400 solved cases, mean of "
               "15 contexts", mean_and_spread(drawn(rows, "N-2", "overall")),
               told["ICW"][2])  # fmt: skip
        yield ("how many times smaller than that of the frozen network",
               mean_and_spread(drawn_factor(rows, "N-2", "overall")), 28)  # fmt: skip
    swept = picked(rows[context_sweep.SWEEP.name], grid="case300", base="exact", method="icw")
    if len(swept):
        yield ("Table VIII, case300: gain by 4,000 instead of 800 cases, cases in random order "
               "(first half of fixed spread: " + _gain(swept, "unshuffled") + ")",
               _gain(swept, "shuffled"), "4.3×")  # fmt: skip
    seconds = deployment.seconds_of(rows, "case118")
    if seconds.step == seconds.step:
        cores, one, engine = (
            deployment.factor(deployment.speed_up(seconds, solver, num))
            for solver, num in (("pandapower", 48), ("pandapower", 1), ("engine", 1))
        )
        yield ("cost of 4,000 gradient steps over that of ICW, case118: solver's time divided by "
               f"48 cores; not divided {one}; by our engine {engine}", cores, "22×")  # fmt: skip
    single = compensated(rows, "case118", of="single")
    if single and len(rows[OUTAGES.name]):
        icw = outages(frame_of(rows, OUTAGES, "case118"), "overall")["icw"].median()
        yield ("error of ICW with 400 cases over that of compensation with 10, median outage of "
               "case118", deployment.factor(icw / single[10].median()), None)  # fmt: skip


def _gain(swept: Frame, order: str) -> str:
    errors = picked(swept, order=order).groupby("n").overall.apply(mean)
    return f"{errors.iloc[0] / errors.iloc[-1]:.1f}×"
