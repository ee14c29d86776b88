"""Options of `runpp` that a network carries with it: followed, without influence, or refused."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

FOLLOWED: dict[str, tuple[Any, ...] | None] = {
    "calculate_voltage_angles": (True, False, "auto"),
    "trafo_model": ("t", "pi"),
    "trafo3w_losses": ("hv", "mv", "lv", "star"),
    "switch_rx_ratio": None,
    "consider_line_temperature": (True, False),
    "voltage_depend_loads": (True, False),
    "neglect_open_switch_branches": (True, False),
}
"""Options that change the equations and are taken over, and their values; None: any number."""

ONLY: dict[str, tuple[Any, ...]] = {
    "distributed_slack": (False, None),
    "tdpf": (False, None),
    "enforce_q_lims": (False, None),
    "enforce_p_lims": (False, None),
    "trafo_loading": ("current",),
    "mode": ("pf",),
    "ac": (True,),
}
"""Options that a `Network` cannot follow, and the values with which there is nothing to follow."""

INSTEAD = {
    "enforce_q_lims": "reactive limits where you solve, --q-limits or q_limits=True",
    "distributed_slack": "it where you solve, --distributed-slack or distributed_slack=",
}
"""Where gridshift has what a stored option asks for."""

OF_THE_SOLVER = frozenset(
    {"algorithm", "init", "init_vm_pu", "init_va_degree", "init_results", "max_iteration",
     "tolerance_mva", "numba", "lightsim2grid", "use_umfpack", "permc_spec", "recycle",
     "only_v_results", "v_debug", "check_connectivity", "copy_constraints_to_ppc",
     "run_control", "delta", "delta_q", "tdpf_delay_s", "tdpf_update_r_theta"}
)  # fmt: skip
"""Of pandapower's own solver, or of what `ONLY` leaves out: without influence on a solution."""


def option_problems(options: object) -> Iterator[str]:
    """What keeps the options stored in a network, its `user_pf_options`, from being followed."""
    if not isinstance(options, Mapping):
        yield "user_pf_options is no dictionary"
        return
    for name, given in options.items():
        value = given.item() if isinstance(given, np.generic) else given
        if name in OF_THE_SOLVER:
            continue
        if name in FOLLOWED:
            allowed = FOLLOWED[name]
            if allowed is None:
                if not (isinstance(value, int | float) and np.isfinite(value) and value >= 0):
                    yield f"user_pf_options has {name}={value!r}; it must be a number from 0 on"
            elif not _is_one_of(value, allowed):
                yield f"user_pf_options has {name}={value!r}; allowed are {_listed(allowed)}"
        elif name not in ONLY:
            yield f"user_pf_options has an unknown option {name!r}"
        elif not _is_one_of(value, ONLY[name]):
            asked = name if value is True else f"{name}={value!r}"
            told = f"user_pf_options asks for {asked}, which is not supported"
            if (instead := INSTEAD.get(name)) and value is True:
                told = f"{told} in a file; take it out and ask for {instead}"
            yield told


def option_notes(options: Mapping[str, Any]) -> Iterator[str]:
    """Sentences on options that people may take for something else, as in pandapower."""
    if options.get("run_control"):
        yield (
            "user_pf_options asks for run_control, but controllers are not run, as by runpp(net); "
            "run them in pandapower and store what they set, or solve with --controls"
        )


def followed_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those that pandapower is to use when it assembles the network."""
    return {name: value for name, value in options.items() if name in FOLLOWED}


def _is_one_of(value: object, allowed: tuple[Any, ...]) -> bool:
    plain = value.lower() if isinstance(value, str) else value
    return (plain is None or isinstance(plain, str | int | float)) and plain in allowed


def _listed(allowed: tuple[Any, ...]) -> str:
    return ", ".join(map(repr, allowed))
