"""Column numbers of MATPOWER's matrices, counted from 1, in the order its idx functions return.

Source: MATPOWER 8.1, `idx_bus`, `idx_brch`, `idx_gen`, `idx_cost`, `idx_ct`.
"""


def _numbered(names: str) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split(), 1)}


_BUS = _numbered(
    "BUS_I BUS_TYPE PD QD GS BS BUS_AREA VM VA BASE_KV ZONE VMAX VMIN LAM_P LAM_Q MU_VMAX MU_VMIN"
)
_BRANCH = _numbered(
    "F_BUS T_BUS BR_R BR_X BR_B RATE_A RATE_B RATE_C TAP SHIFT BR_STATUS ANGMIN ANGMAX "
    "PF QF PT QT MU_SF MU_ST MU_ANGMIN MU_ANGMAX"
)
_GEN = _numbered(
    "GEN_BUS PG QG QMAX QMIN VG MBASE GEN_STATUS PMAX PMIN PC1 PC2 QC1MIN QC1MAX QC2MIN QC2MAX "
    "RAMP_AGC RAMP_10 RAMP_30 RAMP_Q APF MU_PMAX MU_PMIN MU_QMAX MU_QMIN"
)


def _returned(columns: dict[str, int], order: str) -> dict[str, int]:
    return {name: columns[name] for name in order.split()}


COLUMN_FUNCTIONS: dict[str, dict[str, int]] = {
    "idx_bus": {"PQ": 1, "PV": 2, "REF": 3, "NONE": 4, **_BUS},
    "idx_brch": _returned(
        _BRANCH,
        "F_BUS T_BUS BR_R BR_X BR_B RATE_A RATE_B RATE_C TAP SHIFT BR_STATUS PF QF PT QT MU_SF "
        "MU_ST ANGMIN ANGMAX MU_ANGMIN MU_ANGMAX",
    ),
    "idx_gen": _returned(
        _GEN,
        "GEN_BUS PG QG QMAX QMIN VG MBASE GEN_STATUS PMAX PMIN MU_PMAX MU_PMIN MU_QMAX MU_QMIN "
        "PC1 PC2 QC1MIN QC1MAX QC2MIN QC2MAX RAMP_AGC RAMP_10 RAMP_30 RAMP_Q APF",
    ),
    "idx_cost": {
        "PW_LINEAR": 1, "POLYNOMIAL": 2, "MODEL": 1, "STARTUP": 2, "SHUTDOWN": 3, "NCOST": 4,
        "COST": 5,
    },
    "idx_ct": {
        "CT_LABEL": 1, "CT_PROB": 2, "CT_TABLE": 3, "CT_TBUS": 1, "CT_TGEN": 2, "CT_TBRCH": 3,
        "CT_TAREABUS": 4, "CT_TAREAGEN": 5, "CT_TAREABRCH": 6, "CT_ROW": 4, "CT_COL": 5,
        "CT_CHGTYPE": 6, "CT_REP": 1, "CT_REL": 2, "CT_ADD": 3, "CT_NEWVAL": 7, "CT_TLOAD": 7,
        "CT_TAREALOAD": 8, "CT_LOAD_ALL_PQ": 1, "CT_LOAD_FIX_PQ": 2, "CT_LOAD_DIS_PQ": 3,
        "CT_LOAD_ALL_P": 4, "CT_LOAD_FIX_P": 5, "CT_LOAD_DIS_P": 6, "CT_TGENCOST": 9,
        "CT_TAREAGENCOST": 10, "CT_MODCOST_F": -1, "CT_MODCOST_X": -2,
    },
}  # fmt: skip
