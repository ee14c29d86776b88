"""Accuracy on the paper's standard outages: Tables II, VI and VII, Figures 4, 10, 11 and 12."""

from gridshift_paper.accuracy_studies import (
    LONGER,
    NO_DROPOUT,
    PFGNN_NO_DROPOUT,
    REFERENCES,
    VARIANTS,
)
from gridshift_paper.artefacts import Artefact
from gridshift_paper.capacity import CAPACITY
from gridshift_paper.hyperparameters import HYPERPARAMETERS
from gridshift_paper.moment_levels import MAE_BY_MOMENT, VOLTAGE_BY_LEVEL
from gridshift_paper.per_metric import PER_METRIC_N1, PER_METRIC_N2
from gridshift_paper.table_2 import tables
from gridshift_paper.table_2_claims import comments

TABLE_2 = Artefact(
    name="table-2",
    kind="table",
    paper="Table II",
    title="Overall error of every backbone and normalisation on base, N-2 Most and N-1 Most",
    studies=(VARIANTS, REFERENCES, NO_DROPOUT, LONGER, PFGNN_NO_DROPOUT),
    tables=tables,
    comments=lambda rows: tuple(comments(rows)),
)

ARTEFACTS: tuple[Artefact, ...] = (
    TABLE_2,
    PER_METRIC_N1,
    PER_METRIC_N2,
    MAE_BY_MOMENT,
    VOLTAGE_BY_LEVEL,
    CAPACITY,
    HYPERPARAMETERS,
)
