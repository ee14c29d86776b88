"""Column numbers of MATPOWER's matrices, counted from 1, in the order its idx functions return.

Source: MATPOWER 8.1, `idx_bus`, `idx_brch`, `idx_gen`, `idx_cost`.
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
}  # fmt: skip
