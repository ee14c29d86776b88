"""A network whose own set-points and loads are those of a row of x."""

from dataclasses import replace

import numpy as np


def with_inputs(network, layout, x):
    """A network of its own (no outage of anything) with the inputs of one row x (X,)."""
    at = layout.x_slices
    v_set = network.bus_v_set.copy()
    v_set[layout.controlled] = x[at["v_set"]]
    gen_p = network.gen_p.copy()
    gen_p[layout.scheduled_gen] = x[at["p_gen"]]
    angle = np.angle(network.v_start)
    angle[layout.slack] = x[at["theta_slack"]]
    magnitude = np.abs(network.v_start)
    magnitude[layout.controlled] = x[at["v_set"]]
    return replace(
        network,
        bus_v_set=v_set,
        gen_p=gen_p,
        v_start=magnitude * np.exp(1j * angle),
        load_power=x[at["p_load"]] + 1j * x[at["q_load"]],
        outage_of=None,
        outaged=(),
    )
