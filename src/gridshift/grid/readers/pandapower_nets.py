"""pandapower networks to `Network`, by way of pandapower's assembled internal arrays."""

import numpy as np

from gridshift.grid.network import BusKind, Network


def from_pandapower_name(name: str) -> Network:
    """Provisional: plain cases without switches, three-winding transformers or ZIP loads."""
    import pandapower
    import pandapower.networks
    from pandapower.pypower.makeYbus import branch_vectors

    net = getattr(pandapower.networks, name)()
    pandapower.runpp(net, init="flat", numba=False, calculate_voltage_angles=True, tolerance_mva=1e-9)
    ppc = net._ppc["internal"]
    bus, gen, branch, base = ppc["bus"], ppc["gen"], ppc["branch"], float(ppc["baseMVA"])
    nb = len(bus)
    tt, ff, ft, tf = (np.asarray(v, complex) for v in branch_vectors(branch, len(branch))[:4])
    lookup = net._pd2ppc_lookups["bus"]
    load_bus = lookup[net.load.bus.to_numpy()]
    load = (net.load.p_mw + 1j * net.load.q_mvar).to_numpy() * net.load.scaling.to_numpy() / base
    kind = np.full(nb, BusKind.PQ)
    kind[ppc["pv"]], kind[ppc["ref"]] = BusKind.PV, BusKind.SLACK
    fixed = -(bus[:, 2] + 1j * bus[:, 3]) / base
    np.add.at(fixed, load_bus, load)
    fixed[np.abs(fixed) < 1e-12] = 0
    labels: list[str] = []
    for table, (first, last) in net._pd2ppc_lookups["branch"].items():
        labels += [f"{table}:{i}" for i in getattr(net, table).index[: last - first]]
    f, t = branch[:, 0].real.astype(int), branch[:, 1].real.astype(int)
    kv = bus[:, 9]
    limit = np.concatenate([
        net.line.max_i_ka.to_numpy() * net.line.parallel.to_numpy() * net.line.df.to_numpy()
        * np.sqrt(3) * kv[f[: len(net.line)]],
        net.trafo.sn_mva.to_numpy() * net.trafo.parallel.to_numpy(),
    ]) / base
    v_set = np.full(nb, np.nan)
    v_set[gen[:, 0].real.astype(int)] = gen[:, 5]
    return Network(
        name=name, origin=f"pandapower {name}", base_mva=base,
        bus_labels=tuple(f"bus:{i}" for i in net.bus.index), bus_kind=kind.astype(np.int64),
        bus_kv=kv.copy(), bus_v_min=bus[:, 12].copy(), bus_v_max=bus[:, 11].copy(),
        bus_shunt=(bus[:, 4] + 1j * bus[:, 5]) / base, bus_fixed=fixed, bus_v_set=v_set,
        v_start=np.where(np.isnan(v_set), 1.0, v_set).astype(complex),
        load_labels=tuple(f"load:{i}" for i in net.load.index), load_bus=load_bus.astype(np.int64),
        load_power=load,
        gen_labels=(*(f"ext_grid:{i}" for i in net.ext_grid.index), *(f"gen:{i}" for i in net.gen.index)),
        gen_bus=lookup[np.concatenate([net.ext_grid.bus, net.gen.bus]).astype(int)].astype(np.int64),
        gen_p=np.concatenate([np.zeros(len(net.ext_grid)), net.gen.p_mw.to_numpy() / base]),
        branch_labels=tuple(labels), branch_from=f, branch_to=t,
        branch_y=np.stack([ff, ft, tf, tt], 1), branch_in_service=np.ones(len(branch), bool),
        branch_rating=np.stack([limit, limit], 1), branch_rated=limit < 98.9,
        rating_kind="current",
    )
