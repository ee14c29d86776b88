"""Powers and voltages of solved cases in the units of other programs, row by row."""
# pyright: basic

from math import sqrt

from gridshift.grid.kernels import compiled


@compiled
def quantities(grid, rows, out):
    """Fill all of `out` but the angles: MW, Mvar, p.u. of voltage.

    What flows into the branches and the shunt of a bus is what is injected there; the generators
    that hold its voltage give that and the demand, as far as it isn't scheduled.
    """
    num_buses, num_branches = len(grid.kind), len(grid.branch_from)
    base = grid.base_mva
    for r in range(len(rows.voltage)):
        pd, qd, pg, qg = out.demand_p[r], out.demand_q[r], out.bus_p[r], out.bus_q[r]
        vm = out.magnitude[r]
        voltage, two_ports = rows.voltage[r], rows.two_ports[rows.topology[r]]
        for b in range(num_buses):
            re, im = voltage[2 * b], voltage[2 * b + 1]
            square = re * re + im * im
            vm[b] = sqrt(square)
            pg[b], qg[b] = grid.shunt[2 * b] * square, -grid.shunt[2 * b + 1] * square
            pd[b], qd[b] = -grid.fixed[2 * b], -grid.fixed[2 * b + 1]
        from_p, from_q, to_p, to_q = out.from_p[r], out.from_q[r], out.to_p[r], out.to_q[r]
        worst, overloads = 0.0, 0
        for e in range(num_branches):
            y = two_ports[e]
            f, t = grid.branch_from[e], grid.branch_to[e]
            f_re, f_im = voltage[2 * f], voltage[2 * f + 1]
            t_re, t_im = voltage[2 * t], voltage[2 * t + 1]
            re, im = branch_current(y, 0, f_re, f_im, t_re, t_im)
            p, q = f_re * re + f_im * im, f_im * re - f_re * im
            from_p[e], from_q[e] = p * base, q * base
            pg[f] += p
            qg[f] += q
            loading = (re * re + im * im) * grid.inverse_square[2 * e]
            loading *= vm[f] * vm[f] if grid.by_power else 1.0
            re, im = branch_current(y, 4, f_re, f_im, t_re, t_im)
            p, q = t_re * re + t_im * im, t_im * re - t_re * im
            to_p[e], to_q[e] = p * base, q * base
            pg[t] += p
            qg[t] += q
            other = (re * re + im * im) * grid.inverse_square[2 * e + 1]
            other *= vm[t] * vm[t] if grid.by_power else 1.0
            loading = max(loading, other)
            worst = max(worst, loading)
            overloads += loading > 1
        out.worst_loading[r], out.num_overloads[r] = sqrt(worst), overloads
        gen_p, gen_q = out.gen_p[r], out.gen_q[r]
        for g in range(len(grid.gen_bus)):
            gen_p[g] = grid.gen_p[g]
        load_p, load_q = rows.load_p[r], rows.load_q[r]
        for column in range(len(grid.load_bus)):
            g, b = grid.gen_of_load[column], grid.load_bus[column]
            if g >= 0:
                gen_p[g] = -load_p[column]
            else:
                pd[b] += load_p[column]
                qd[b] += load_q[column]
        for b in range(num_buses):
            pg[b], qg[b] = pg[b] + pd[b], qg[b] + qd[b]
        for g in range(len(grid.gen_bus)):
            b = grid.gen_bus[g]
            gen_p[g] = base * (pg[b] * grid.share_p[g] if grid.kind[b] == 3 else gen_p[g])
            gen_q[g] = base * (qg[b] * grid.share_q[g] + grid.offset_q[g])
        low, high = 0, 0
        for b in range(num_buses):
            pd[b], qd[b] = pd[b] * base, qd[b] * base
            pg[b] = qg[b] = 0
            low += vm[b] < grid.v_min[b]
            high += vm[b] > grid.v_max[b]
        for g in range(len(grid.gen_bus)):
            pg[grid.gen_bus[g]] += gen_p[g]
            qg[grid.gen_bus[g]] += gen_q[g]
        out.num_low[r], out.num_high[r] = low, high


@compiled
def branch_current(y, at, f_re, f_im, t_re, t_im):
    """y_f v_f + y_t v_t, with the two admittances at four consecutive places from `at` on."""
    re = y[at] * f_re - y[at + 1] * f_im + y[at + 2] * t_re - y[at + 3] * t_im
    return re, y[at] * f_im + y[at + 1] * f_re + y[at + 2] * t_im + y[at + 3] * t_re
