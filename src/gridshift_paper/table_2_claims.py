"""What the paper says of its Table II, and whether our rows say so too."""

from collections.abc import Iterator

import pandas as pd

from gridshift.study.text import real
from gridshift_paper.artefacts import Claim, Rows
from gridshift_paper.protocol import BACKBONE_LABELS
from gridshift_paper.selection import (
    TOLERANCE,
    by_seed,
    listed,
    mean,
    near,
    picked,
    ratio_by_seed,
    seeds_where_smaller,
)
from gridshift_paper.table_2 import (
    ADAPTED,
    FROZEN,
    ROWS,
    TRAINED_OTHERWISE,
    errors,
    measured,
    paper_mae,
    reference,
    seconds,
)

MATCHES = 0.95
"""Ratio of errors above which one is matched or beaten."""
OUTAGES = {"N-2": "N-2 Most", "N-1": "N-1 Most"}
FLOOR_SPREAD = 1.25
"""Largest error over the smallest up to which frozen variants share a floor."""
MODEST = 3.5
"""Times as long, up to which inference with a context is modestly longer; the paper has 3.3."""
CHAIN = ("Residual(ctx)", "Z-Score(ctx)", "ICW")
"""Variants by moments matched."""


def comments(rows: Rows) -> Iterator[str | Claim]:
    """Claims one by one, and what explains them."""
    variants, references = rows["variants"], rows["references"]
    if not measured(variants):
        return
    yield from _on_floor(variants)
    yield from _on_icw(variants, references)
    yield from _on_base(variants)
    yield from _on_backbones(variants)
    yield from _on_order(variants)
    yield from _on_graph(variants)
    yield from _on_kept_graph(variants)
    yield from _on_training(variants, rows["longer"], rows["pfgnn-no-dropout"])
    yield from _on_cause_of_order(references)
    yield _on_seconds(variants)
    yield from _on_case118(variants, references, rows["no-dropout"])


def _on_floor(frame: pd.DataFrame) -> Iterator[Claim]:
    backbones = measured(frame)
    lost = [
        mean(ratio_by_seed(errors(frame, "ZCA Frozen", t), errors(frame, "ZCA Frozen", "base")))
        for t in ("N-1", "N-2")
    ]
    if all(value == value for value in lost):
        yield Claim(
            says="a surrogate loses one to two orders of magnitude of accuracy when a line outage "
            "changes the topology",
            holds=min(lost) >= 10,
            ours=f"ZCA Frozen loses {lost[0]:.0f} times on N-1 Most and {lost[1]:.0f} on N-2 Most.",
        )
    floor = [mean(errors(frame, v, "N-2", b)) for b in backbones for v in FROZEN]
    floor = [value for value in floor if value == value]
    if floor:
        yield Claim(
            says="every frozen variant saturates at about 1.5e-2 on N-2 Most",
            holds=max(floor) < FLOOR_SPREAD * min(floor) and near(min(floor), 1.5e-2),
            ours=f"they are at {real(min(floor))} to {real(max(floor))}, in the paper's own table "
            f"up to {real(max(paper_mae(b, v, 'N-2') for b in backbones for v in FROZEN))}: that "
            "is how far the outage moves the solution, which no normalisation by old statistics "
            "can know.",
        )
    gains = {
        (b, v): mean(ratio_by_seed(errors(frame, "ZCA Frozen", "N-2", b),
                                   errors(frame, v, "N-2", b)))
        for b in backbones
        for v in ADAPTED
    }  # fmt: skip
    gains = {key: value for key, value in gains.items() if value == value}
    if gains:
        least = min(gains, key=gains.__getitem__)
        yield Claim(
            says="re-estimating statistics from a context lowers this floor by one to two orders "
            "of magnitude on all backbones",
            holds=gains[least] >= 10 * (1 - TOLERANCE),
            ours=f"factors are {gains[least]:.1f} ({BACKBONE_LABELS[least[0]]}, {least[1]}) to "
            f"{max(gains.values()):.0f} over "
            f"{listed([BACKBONE_LABELS[b] for b in dict.fromkeys(b for b, _ in gains)])}.",
        )


def _on_icw(frame: pd.DataFrame, references: pd.DataFrame) -> Iterator[str]:
    gain = {t: ratio_by_seed(errors(frame, "ZCA Frozen", t), errors(frame, "ICW", t))
            for t in ("base", *OUTAGES)}  # fmt: skip
    share = {t: ratio_by_seed(reference(references, "zca", t), errors(frame, "ICW", t))
             for t in OUTAGES}  # fmt: skip
    if not len(gain["N-2"]):
        return
    yield (
        f"MLP: ICW gains {mean(gain['N-2']):.0f} times on N-2 Most and {mean(gain['N-1']):.0f} "
        "times on N-1 Most over ZCA Frozen (paper 28 and 13), and loses "
        f"{1 / mean(gain['base']):.1f} times on the intact grid (paper 5.2), where the context's "
        "moments are a noisier copy of those that they replace."
    )
    if len(share["N-2"]):
        yield (
            "MLP: ICW around exact base solutions of the same loads, with the same context, has "
            f"{mean(share['N-2']):.0%} of this error on N-2 Most and {mean(share['N-1']):.0%} on "
            "N-1 Most. What is left is the sampling of the context's moments and what an affine "
            "map can't follow, not the network."
        )


def _on_base(frame: pd.DataFrame) -> Iterator[Claim]:
    told, same = [], []
    for backbone in measured(frame):
        zca, zscore = (errors(frame, f"{n} Frozen", "base", backbone) for n in ("ZCA", "Z-Score"))
        won, of = seeds_where_smaller(zca, zscore)
        theirs = [paper_mae(backbone, f"{n} Frozen", "base") for n in ("ZCA", "Z-Score")]
        if of:
            same.append((2 * won > of) == (theirs[0] < theirs[1]))
            told.append(
                f"{BACKBONE_LABELS[backbone]} {real(mean(zca))} against {real(mean(zscore))}, "
                f"better in {won} of {of} seeds"
            )
    if told:
        yield Claim(
            says="on the intact grid ZCA is more accurate than z-score on the MLP and the "
            "Transformer, less on the PFGNN",
            holds=all(same), ours=f"ZCA is at {'; '.join(told)}.",
        )  # fmt: skip


def _on_backbones(frame: pd.DataFrame) -> Iterator[Claim]:
    told, beaten, mlp = [], [], errors(frame, "ICW", "N-2")
    for backbone in measured(frame):
        ratio = ratio_by_seed(errors(frame, "ICW", "N-2", backbone), mlp)
        if backbone == "mlp" or not len(ratio):
            continue
        theirs = paper_mae(backbone, "ICW", "N-2") / paper_mae("mlp", "ICW", "N-2")
        higher = int((ratio > 1).sum())
        told.append(
            f"{BACKBONE_LABELS[backbone]} {mean(ratio):.2f} times the MLP's error, higher in "
            f"{higher} of {len(ratio)} seeds (paper {theirs:.2f})"
        )
        beaten.append(mean(ratio) > MATCHES)
    if told:
        yield Claim(
            says="with ICW the MLP matches or beats the other backbones on N-2 Most",
            holds=all(beaten), ours=f"{listed(told)}.",
        )  # fmt: skip


def _lower(frame: pd.DataFrame, backbone: str) -> list[tuple[int, int]]:
    """Seeds in which each further moment lowers the error on N-2 Most, and of how many."""
    found = [errors(frame, name, "N-2", backbone) for name in CHAIN]
    return [seeds_where_smaller(found[1], found[0]), seeds_where_smaller(found[2], found[1])]


def _levels(frame: pd.DataFrame, backbone: str) -> str:
    """'MLP 8.20e-4, 5.90e-4, 5.60e-4 (lower in 3 of 3 and 2 of 3 seeds)'."""
    levels = ", ".join(real(mean(errors(frame, name, "N-2", backbone))) for name in CHAIN)
    seeds = " and ".join(f"{won} of {of}" for won, of in _lower(frame, backbone))
    return f"{BACKBONE_LABELS[backbone]} {levels} (lower in {seeds} seeds)"


def _on_order(frame: pd.DataFrame) -> Iterator[Claim]:
    steps = {b: _lower(frame, b) for b in ("mlp", "transformer")}
    steps = {b: found for b, found in steps.items() if all(of for _, of in found)}
    if steps:
        yield Claim(
            says="each added moment lowers the error on N-2 Most, on the MLP and the Transformer",
            holds=all(2 * won > of for found in steps.values() for won, of in found),
            ours=f"{', '.join(CHAIN)}: {'; '.join(_levels(frame, b) for b in steps)}.",
        )
    if "mlp" in steps:
        residual, zscore, icw = (errors(frame, name, "N-2") for name in CHAIN)
        first, second = mean((residual - zscore).dropna()), mean((zscore - icw).dropna())
        yield Claim(
            says="the largest step is from the mean to the variance, the full covariance adds a "
            "smaller one",
            holds=first > second > 0,
            ours=f"on the MLP the steps are {real(first)} and {real(second)}.",
        )


def _on_graph(frame: pd.DataFrame) -> Iterator[Claim]:
    steps = _lower(frame, "pfgnn")
    if all(of for _, of in steps):
        won, of = steps[1]
        yield Claim(
            says="the PFGNN is the lone exception: there Z-Score(ctx) is more accurate than ICW",
            holds=2 * won < of, ours=f"{', '.join(CHAIN)}: {_levels(frame, 'pfgnn')}.",
        )  # fmt: skip


def _on_kept_graph(frame: pd.DataFrame) -> Iterator[str]:
    kept, new = (
        {t: errors(frame, name, t, "pfgnn") for t in ("base", *OUTAGES)}
        for name in ("ICW, intact graph", "ICW")
    )
    if all(len(series) for series in kept.values()):
        grown = mean(ratio_by_seed(new["N-2"], new["base"]))
        theirs = paper_mae("pfgnn", "ICW", "N-2") / paper_mae("pfgnn", "ICW", "base")
        yield (
            f"PFGNN: ICW has {real(mean(new['N-1']))} on N-1 Most and {real(mean(new['N-2']))} on "
            f"N-2 Most over the new topology's graph, {real(mean(kept['N-1']))} and "
            f"{real(mean(kept['N-2']))} over the intact grid's, {real(mean(kept['base']))} without "
            "an outage. A graph that is new to the network changes its whitened output, for which "
            "moments of y don't account. The paper's rows grow as with the new graph "
            f"({theirs:.1f} times from base to N-2 Most, ours {grown:.1f})."
        )


def _on_training(
    frame: pd.DataFrame, longer: pd.DataFrame, no_dropout: pd.DataFrame
) -> Iterator[str]:
    """Whether errors larger than the paper's come from a short training, or from dropout."""
    for backbone, label in BACKBONE_LABELS.items():
        told = _trained_otherwise(frame, longer, backbone)
        if told:
            many, few = (
                int(picked(f, backbone=backbone)["num_steps"].max()) for f in (longer, frame)
            )
            yield (
                f"{label}: trained for {many:,} steps instead of {few:,} it is at {listed(told)}."
            )
        told = _trained_otherwise(frame, no_dropout, backbone)
        if told:
            yield f"{label}: trained without dropout it is at {listed(told)}."


def _trained_otherwise(frame: pd.DataFrame, other: pd.DataFrame, backbone: str) -> list[str]:
    """'5.71e-4 after 0.00250 (No Norm, base, paper 5.80e-4)', of seeds that both have."""
    told = []
    for name in TRAINED_OTHERWISE.get(backbone, ()):
        for topology in ("base", "N-2"):
            found = errors(other, name, topology, backbone)
            before = errors(frame, name, topology, backbone).reindex(found.index).dropna()
            if len(before):
                where = f"{name}, {OUTAGES.get(topology, topology)}"
                if name in ROWS:
                    where += f", paper {real(paper_mae(backbone, name, topology))}"
                told.append(f"{real(mean(found))} after {real(mean(before))} ({where})")
    return told


def _on_cause_of_order(references: pd.DataFrame) -> Iterator[str]:
    levels = [reference(references, name, "N-2") for name in ("residual", "zscore", "zca")]
    if len(levels[0]):
        yield (
            "Around exact base solutions these three are at "
            f"{listed([real(mean(level)) for level in levels])}: their order is one of the "
            "adaptation, and a backbone changes it only by its own error."
        )


def _on_seconds(frame: pd.DataFrame) -> Claim:
    told, times = [], []
    for backbone in measured(frame):
        frozen, icw = (float(seconds(frame, v, backbone).min()) for v in ("ZCA Frozen", "ICW"))
        if icw / frozen == icw / frozen:
            times.append(icw / frozen)
            told.append(f"{BACKBONE_LABELS[backbone]} {times[-1]:.1f} times")
    return Claim(
        says="a context costs only a modest increase of inference time, from 0.03 s to 0.09 s for "
        "1,000 rows of the MLP",
        holds=bool(times) and max(times) <= MODEST,
        ours=f"{listed(told) or 'nothing timed'}: the statistics are computed once a topology and "
        "folded into the last layer, if that is linear.",
    )


def _on_case118(
    frame: pd.DataFrame, references: pd.DataFrame, no_dropout: pd.DataFrame
) -> Iterator[str | Claim]:
    icw, zscore = (
        {t: errors(frame, name, t, grid="case118") for t in OUTAGES}
        for name in ("ICW", "Z-Score(ctx)")
    )
    if not len(icw["N-2"]) or not len(zscore["N-2"]):
        return
    won = {t: seeds_where_smaller(icw[t], zscore[t]) for t in OUTAGES}
    exact = [mean(reference(references, name, "N-2", "case118")) for name in ("zca", "zscore")]
    around = (
        f" Around exact solutions they are at {real(exact[0])} and {real(exact[1])}: a covariance "
        "of 236 outputs from 400 rows costs more than its correlations bring."
        if exact[0] == exact[0] and exact[1] == exact[1]
        else ""
    )
    yield Claim(
        says="the full covariance is the safe default, at least as good as the diagonal",
        holds=all(2 * number >= of for number, of in won.values()),
        ours=f"on case118 ICW is at {real(mean(icw['N-2']))} on N-2 Most and Z-Score(ctx) at "
        f"{real(mean(zscore['N-2']))}; ICW is better in {won['N-2'][0]} of {won['N-2'][1]} seeds "
        f"there and in {won['N-1'][0]} of {won['N-1'][1]} on N-1 Most.{around}",
    )
    better = {
        t: by_seed(no_dropout, "overall", grid="case118", statistics="ctx", topology=t)
        for t in OUTAGES
    }
    if len(better["N-1"]):
        yield (
            f"case118: without dropout ICW is at {real(mean(better['N-1']))} on N-1 Most and "
            f"{real(mean(better['N-2']))} on N-2 Most, with it at {real(mean(icw['N-1']))} and "
            f"{real(mean(icw['N-2']))}. The paper's two numbers for this case, 2.4e-3 (from the "
            "factor in Fig. 4) and 4.33e-3 (its table of context sizes, 400 rows), fit two "
            "such networks."
        )
