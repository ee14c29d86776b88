"""The list of the paper's claims: complete, well formed, and true of the paper's own numbers.

Rows are made up: every combination of what a study measures, with positive numbers at random.
"""

import itertools
from collections.abc import Mapping
from functools import cache

import numpy as np
import pandas as pd
import pytest

from gridshift.learn.moments import EPS
from gridshift_paper.artefacts import MODULES, artefact
from gridshift_paper.claims import PAPER, Judged, Rows, Verdict, decided
from gridshift_paper.protocol import FIT_300, GRIDS, WIDE
from gridshift_paper.report import Section, claims_table
from gridshift_paper.spectra import CURVE
from gridshift_paper.table_2 import PAPER_COLUMNS, ROWS
from gridshift_paper.third_moment import BOUNDS, RECENTRED

ERRORS = ("overall", "p_slack", "q_gen", "v", "theta", "theta_deg")
TOPOLOGIES = ("base", "N-1", "N-2")
SEEDS = (0, 1)
STEPS = (100, 2_000, 4_000)
SIZES = [round(400 * factor) for factor in CURVE]
SWEEP_METHODS = (
    "frozen", "icw", "icw-paired", "icw-tenfold", "perfect", "context-mean", "residual", "zscore",
    "perfect-residual", "perfect-zscore", "solver",
)  # fmt: skip
SWEPT = (*ERRORS, "worst_median", "worst_max", "mismatch_median", "mmd")
OUTAGES = ("", *(f"line:{n}" for n in range(9)))
PAIRS = ("", *(f"line:{n},line:{n + 1}" for n in range(9)))


def every(measured=ERRORS, also=None, **keys) -> pd.DataFrame:
    """A row for every combination of keys, and a positive number in each measured column."""
    rows = list(itertools.product(*keys.values()))
    frame = pd.DataFrame(rows, columns=pd.Index(list(keys)))
    numbers = np.random.default_rng(len(rows)).uniform(0.5, 2, (len(rows), len(measured)))
    made = pd.DataFrame(1e-3 * numbers, columns=pd.Index(list(measured)))
    return pd.concat([frame, made], axis=1).assign(**(also or {}))


def variants() -> pd.DataFrame:
    made = every(
        (*ERRORS, "fit_s", "predict_1000_s", "mismatch_median"), {"num_steps": 40_000},
        grid=tuple(GRIDS), backbone=("mlp", "transformer", "pfgnn", *FIT_300), seed=SEEDS,
        transform=("identity", "residual", "zscore", "zca", "zca-sas"), topology=TOPOLOGIES,
        statistics=("frozen", "ctx", "ctx-2"),
    )  # fmt: skip
    frozen = made.statistics == "frozen"
    return made.assign(num_context=np.where(frozen, 0, 400), num_test_failed=0)


def covariance() -> pd.DataFrame:
    keys = {"grid": ("case30", "case118"), "seed": SEEDS, "draw": (0,)}
    distance = every(("nested", "independent"), {"what": "distance"}, n=SIZES, **keys)
    spectrum = every(
        ("eigenvalue",), {"what": "eigenvalue"}, n=(*SIZES, 20_000), index=range(1, 61), **keys
    )
    falling = spectrum.eigenvalue * 10.0 ** (-0.2 * spectrum["index"])
    return pd.concat([distance, spectrum.assign(eigenvalue=falling)], ignore_index=True)


def times() -> pd.DataFrame:
    grids = tuple(GRIDS)
    solves = every(
        ("engine_s", "exact_s", "pandapower_s"), grid=grids, part=("solve",), backbone=("",)
    )
    names = ("fit_s", "predict_s", "predict_tuned_s", "step_s")
    networks = every(names, grid=grids, part=("network",), backbone=("mlp", "pfgnn", WIDE))
    return pd.concat([solves, networks], ignore_index=True)


def sizes(grid: str) -> pd.DataFrame:
    outage = ("", GRIDS[grid].double)
    keys = {"grid": (grid,), "outage": outage, "seed": SEEDS, "draw": (0, 1)}
    levels = ("icw", "perfect", "context-mean")
    made = every((*ERRORS, "collect_s"), n=SIZES, method=levels, **keys)
    made = pd.concat([made, every(n=(0,), method=("frozen",), **keys)], ignore_index=True)
    return made.assign(context_rows=made.n)


def sweep() -> pd.DataFrame:
    sizes = {"case118": (400, 600, 800, 1200, 1600), "case300": (800, 1200, 2000, 3000, 4000)}
    frames = []
    for grid, of_grid in sizes.items():
        keys = {"grid": (grid,), "seed": SEEDS, "outage": ("line:1",), "base": ("exact", "paper")}
        frames += [every(n=of_grid, order=("shuffled", "unshuffled"), method=("icw",), **keys),
                   every(n=(0,), order=("",), method=("frozen",), **keys)]  # fmt: skip
    return pd.concat(frames, ignore_index=True).assign(context_rows=790)


def draws() -> pd.DataFrame:
    made = every(
        (*ERRORS, "load_sigma"), {"grid": "case30"}, transform=("zca",), seed=SEEDS,
        topology=TOPOLOGIES, statistics=("frozen", "ctx"), draw=(0, 1),
    )  # fmt: skip
    return made[(made.statistics == "ctx") | (made.draw == 0)]


def whiteners() -> pd.DataFrame:
    names = ("ZCA", "PCA", "optimal transport", "random rotations")
    two = {"grid": ("case30", "case118"), "seed": SEEDS}
    counts = {"better": 0, "of": 200, "rank": 57, "outputs": 60, "regular": 17}
    return every(("distortion", "own_mean", "own_least", "least_variance", *ERRORS), counts,
                 whitener=names, **two)  # fmt: skip


@cache
def made_up() -> dict[str, pd.DataFrame]:
    """Rows of every study."""
    one_grid = {"grid": ("case30",), "seed": SEEDS}
    two_grids = {"grid": ("case30", "case118"), "seed": SEEDS}
    contexts = {"grid": tuple(GRIDS), "num_context": (400, 1_000), "seed": SEEDS}
    none_failed = {"failed_context": 0, "failed_test": 0}
    names = ("modular-gp", "deepopf-ft", "pfgnn", "mmnp", "ttf-ensemble", "icw", "frozen", "ridge",
             "context-mean", "perfect")  # fmt: skip
    levels = ("nothing", "mean", "mean, variance", "mean, covariance", "and skewness")
    return {
        "variants": variants(),
        "references": every(
            grid=tuple(GRIDS), seed=SEEDS, topology=TOPOLOGIES, num_context=(400,),
            reference=("context-mean", "residual", "zscore", "zca", "zca-sas"),
        ),
        "no-dropout": every(
            topology=TOPOLOGIES, statistics=("frozen", "ctx"), num_context=(400,), **two_grids
        ),
        "pfgnn-no-dropout": variants().query("backbone == 'pfgnn' and transform == 'zca'"),
        "longer": variants().query("backbone == 'pfgnn' and transform == 'zca'"),
        "one-change": variants().assign(change="dropout"),
        "outages-product": every(
            ERRORS, outage=OUTAGES, method=("frozen", "icw"), grid=("case118",), seed=SEEDS
        ),
        "fit-300": every(ERRORS, tried=("appendix C",), grid=("case300",), seed=SEEDS),
        "capacity": every(
            ("r2", "overall", "median_skew", "largest_skew"), width=(128, 256, 512, 1024),
            level=(2, 3), seed=SEEDS,
        ),
        "methods": every(
            (*ERRORS, "data_s", "fit_s", "gradient_s"), {"num_solves": 400}, method=names,
            topology=TOPOLOGIES, **two_grids,
        ),
        "outages": every(SWEPT, none_failed, outage=OUTAGES, method=SWEEP_METHODS, **two_grids),
        "outages-300": every(
            SWEPT, none_failed, grid=("case300",), seed=SEEDS, outage=OUTAGES,
            method=SWEEP_METHODS[:6],
        ),
        "outages-300-fit": every(
            SWEPT, none_failed, grid=("case300",), seed=SEEDS[:1], outage=OUTAGES,
            method=SWEEP_METHODS[:6],
        ),
        "pairs": every(SWEPT, none_failed, outage=PAIRS, method=SWEEP_METHODS[:4], **one_grid),
        "context-size-case30": sizes("case30"),
        "context-size-case118": sizes("case118"),
        "context-sweep": sweep(),
        "context-draws": draws(),
        "compensation": every(
            (*ERRORS, "data_s", "fit_s", "predict_s"), of=("standard", "single", "pairs"),
            num_context=(10, 50), outage=("line:9", "line:34", "line:228"), grid=tuple(GRIDS),
            seed=SEEDS,
        ),
        "third-moment": every(
            (*ERRORS, "median_skew", "largest_skew"), bound=(0.0, *BOUNDS), recentred=RECENTRED,
            base=("exact", "mlp"), topology=TOPOLOGIES, seed=SEEDS, eps=(EPS,),
        ),
        "eps-scan": every(
            (*ERRORS, "r2"), base=("exact", "mlp"), transform=("zca", "zscore"), eps=(1e-6, 1e-4),
            topology=TOPOLOGIES, n=(400, 800, 1_600, 4_000), grid=tuple(GRIDS), seed=SEEDS,
        ),
        "proposition": whiteners(),
        "tail": every(
            known=("context", "mean known", "leading directions known", "tail known",
                   "covariance known", "both known"), draw=(0, 1), **two_grids,
        ),
        "covariance": covariance(),
        "distances": every(
            ("mmd", "mean_coordinate", "mardia_outage", "null_low", "null_high"), level=levels,
            spread=(0.2, 0.5), loads=("independent", "same"),
            moments=("same rows", "many", "context"), **one_grid,
        ),
        "histograms": every(
            ("mmd", "left", "right", "density"), space=("raw", "whitened"), order=(0, 1, 2),
            entry=("v bus:1",), topology=("intact", "outage"),
        ),
        "round-trip": every(
            ("mean", "max", "mean_single", "max_single", "largest_skew", "ended", "folded",
             "folded_rows", "folded_max"), set=("training", "context", "validation"), seed=SEEDS,
        ),
        "adaptation-times": times(),
        "deployment-sweep": every(
            ("data_s", "fit_s", "predict_s"),
            {"num_outages": 38, "num_left_out": 0, "num_rows": 38_000, "num_context": 400},
            grid=tuple(GRIDS),
        ),
        "closed-form": every(
            ERRORS, {"num_solves": 400}, backbone=("mlp", "pfgnn", *FIT_300),
            method=("frozen", "context-mean", "icw", "icw-paired", "ridge"), **contexts,
        ),
        "gradient-curves": every(
            ERRORS, {"num_solves": 400}, backbone=("mlp", "pfgnn", WIDE), num_steps=STEPS,
            kind=("fine-tune", "scratch"), target=("no-norm", "zscore"), **contexts,
        ),
        "band-30": every(
            grid=("case118",), tercile=("low", "mid", "high"), outage=("line:1", "line:2"),
            num_steps=(0, 100, 4_000), target=("no-norm", "zscore"),
            method=("icw", "frozen", "fine-tune"), seed=SEEDS,
        ).query("(method == 'fine-tune') == (num_steps > 0)"),
    }  # fmt: skip


@cache
def judged(name: str) -> list[Judged]:
    """Claims of an artefact, decided by rows of everything."""
    return claims_of(name, made_up())


def claims_of(name: str, rows: Rows) -> list[Judged]:
    found = artefact(name)
    known = {study.name: rows[study.name] for study in found.studies}
    return [comment for comment in found.comments(known) if isinstance(comment, Judged)]


NAMES = tuple(MODULES)


def problems(one: Judged) -> list[str]:
    """What is wrong with how a claim is put."""
    claim = one.claim
    return [
        problem
        for problem, there in {
            "says is no clause": claim.says.endswith(".") or not claim.says.strip(),
            "measure is no clause": claim.measure.endswith(".") or not claim.measure.strip(),
            "why is no sentence": claim.why and not claim.why.endswith("."),
            "ours is no sentence": not one.ours.endswith(".") or one.ours.endswith(".."),
            "a number is missing": "nan" in one.ours or " inf" in one.ours,
            "a number of the paper is of no number of ours": isinstance(claim.paper, Mapping)
            and one.verdict != Verdict.OPEN
            and "(paper " not in one.ours,
        }.items()
        if there
    ]


@pytest.mark.parametrize("name", NAMES)
def test_claims_are_well_formed_and_decided_by_rows_of_everything(name):
    for one in judged(name):
        assert problems(one) == [], one
        # what is left open is so by what the rows say: no number is missing
        reasons = ("Reason: at width 128", "Reason: the paper doesn't define")
        known = one.ours.startswith(reasons) or one.claim.unless is not decided
        assert one.verdict != Verdict.OPEN or known, one


@pytest.mark.parametrize("name", NAMES)
def test_no_number_is_made_up_where_rows_are_missing(name):
    """Without one study at a time, and with rows of the smallest grid alone."""
    whole = made_up()
    small = {
        study: frame.query("grid == 'case30'") if "grid" in frame else frame
        for study, frame in whole.items()
    }
    for without in (study.name for study in artefact(name).studies):
        for one in claims_of(name, {**whole, without: pd.DataFrame()}):
            assert problems(one) == [], one
    for one in claims_of(name, small):
        assert problems(one) == [], one
        if "case118" in one.claim.says or "300-bus" in one.claim.says:
            assert one.verdict == Verdict.OPEN, one
    nothing = {study.name: pd.DataFrame() for study in artefact(name).studies}
    if nothing:
        assert {one.verdict for one in claims_of(name, nothing)} <= {Verdict.OPEN}


def test_no_claim_is_made_twice_and_none_was_lost():
    said = [one.claim.says for name in NAMES for one in judged(name)]
    assert len(said) == len(set(said)) == 104


def test_every_claim_says_where_the_paper_makes_it():
    table = claims_table(Section(artefact(name), made_up()) for name in NAMES)
    assert all(row[2] for row in table.rows)


@pytest.mark.parametrize(
    ("name", "words", "paper"),
    [
        ("per-metric-n1", "overall error: 13", [13]), ("per-metric-n2", "6 to 28", [6, 28]),
        ("mae-by-moment", "12.7%", [0.127, 0.33]), ("context-size-118", "66 %", 2 * [0.66]),
        ("context-sweep", "8.3 to 17.2", [8.3, 17.2, 17.2 / 8.3]), ("band-30", "0.83", 2 * [0.83]),
        ("deployment-cost", "21 to 34", [34.3, 22.3, 21.3]), ("operator-shift", "28.9", 28.9),
        ("n2-pairs", "7.6", [7.6, 2.3]),
        ("scratch-no-norm", "645 times", 645), ("capacity", "34 times", 34),
    ],
)  # fmt: skip
def test_the_papers_numbers_are_those_of_its_text(name, words, paper):
    (claim,) = [one.claim for one in judged(name) if words in one.claim.says]
    told = claim.paper if not isinstance(claim.paper, Mapping) else list(claim.paper.values())
    if words == "645 times":
        told = told[0]  # steps by steps
    assert told == pytest.approx(paper, rel=1e-12 if words != "645 times" else 1e-3)


def test_the_papers_own_table_2_makes_its_claims_true():
    rows = [
        {"grid": "case30", "backbone": backbone, "transform": ROWS[variant][0],
         "statistics": ROWS[variant][1], "topology": topology, "seed": 0, "overall": error,
         "fit_s": 0.0, "predict_1000_s": cells[0]}
        for backbone, variants in PAPER.table_2.items()
        for variant, cells in variants.items()
        for topology, error in zip(PAPER_COLUMNS[1:], cells[1:], strict=True)
    ]  # fmt: skip
    nothing = {study.name: pd.DataFrame() for study in artefact("table-2").studies}
    said = claims_of("table-2", {**nothing, "variants": pd.DataFrame(rows)})
    false = [one.claim.says for one in said if one.verdict == Verdict.FAILS]
    # no rows of case118
    assert [one.claim.says for one in said if one.verdict == Verdict.OPEN] == [
        "a surrogate loses one to two orders of magnitude of accuracy when a line outage changes "
        "the topology"
    ]
    # 2.6e-2 isn't 1.5e-2: the PFGNN's
    assert false == ["every frozen variant saturates at about 1.5e-2 on N-2 Most"]


def test_the_papers_own_table_3_makes_its_claims_true_but_one():
    """Its ICW is 4.4 times worse on N-2 than on the intact case30."""
    frozen = {("frozen", grid): PAPER.table_3["pfgnn", grid] for grid in ("case30", "case118")}
    numbers = {**PAPER.table_3, **frozen}
    rows = [
        {"grid": grid, "method": method, "topology": topology, "seed": 0, "v": cells[place],
         "theta_deg": cells[place + 3], "overall": cells[place], "data_s": 1.0, "fit_s": 0.0,
         "gradient_s": 1e3 * (method == "ttf-ensemble"), "num_solves": 400.0}
        for (method, grid), cells in numbers.items()
        for place, topology in enumerate(TOPOLOGIES)
    ]  # fmt: skip
    said = claims_of("table-3", {"methods": pd.DataFrame(rows)})
    assert [one.claim.says for one in said if one.verdict != Verdict.HOLDS] == [
        "ICW holds its base-case accuracy across N-1 and N-2"
    ]
