"""Drawn scenarios against closed forms, today's spread and pandapower."""

import copy
import warnings

import numpy as np
import pandapower as pp
import pytest
from scipy import stats

from gridshift.errors import MemoryNeededError, ScenarioError
from gridshift.grid.generation import generators
from gridshift.grid.powerflow import solve
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import LoadScenarios, named_rng, scenarios
from gridshift.study.description import UncertaintyError
from gridshift.study.distributions import Beta, Empirical, Fixed, Lognormal, Normal, Uniform
from gridshift.study.generation import Balance, Limit, SetPoint
from gridshift.study.groups import Area, Correlation, Group
from gridshift.study.spread import SpreadOfLoads
from gridshift.study.uncertainty import Uncertainty, draw
from tests.reference.pandapower_equations import built

NUM = 1 << 13
SIX_ERRORS = 6 / np.sqrt(NUM)
"""A rank correlation of NUM rows has a standard error below 1 / sqrt(NUM)."""


@pytest.fixture(scope="module")
def static_net():
    """case39 with three static generators, two of them at one bus, and a motor beside one."""
    net = built("case39")
    pp.create_sgen(net, 5, p_mw=80.0, q_mvar=20.0, name="a")
    pp.create_sgen(net, 5, p_mw=40.0, q_mvar=-10.0, name="b")
    pp.create_sgen(net, 12, p_mw=60.0, q_mvar=5.0, name="c")
    pp.create_motor(net, 12, pn_mech_mw=9.0, cos_phi=0.9, efficiency_percent=90.0)
    return net


def _factors(drawn):
    """(R, L) factors of the active powers; NaN where there is none."""
    nominal = drawn.network.load_power.real
    return drawn.loads.load_p / np.where(nominal == 0, np.nan, nominal)


def _all(distribution, **given):
    return (Group(distribution=distribution, **given),)


@pytest.mark.parametrize("regime", ["fixed", "drawn", "mixed"])
def test_without_a_description_scenarios_are_those_of_today(case30, regime):
    found = draw(
        case30, Uncertainty(loads=SpreadOfLoads(spread=0.3, regime=regime)), 500, seed=3
    ).loads
    today = scenarios(
        case30, named_rng("case30", "scenarios", seed=3), 500, spread=0.3, regime=regime
    )
    np.testing.assert_array_equal(found.load_p, today.load_p)
    np.testing.assert_array_equal(found.load_q, today.load_q)
    if regime == "drawn":
        np.testing.assert_array_equal(
            draw(case30, Uncertainty(), 500, seed=3).loads.load_p,
            scenarios(
                case30, named_rng("case30", "scenarios", seed=3), 500, spread=0.2, regime="drawn"
            ).load_p,
        )


def test_loads_keep_their_spread_beside_generation_that_varies(case30):
    alone = draw(case30, Uncertainty(), 50)
    beside = draw(
        case30, Uncertainty(generation=_all(Uniform(low=0.5, high=1), elements=("gen:0",))), 50
    )
    np.testing.assert_array_equal(beside.loads.load_p[:, : case30.num_loads], alone.loads.load_p)
    assert beside.generators == ("gen:0",)
    assert beside.loads.load_p.shape[1] == case30.num_loads + 1


def test_todays_fixed_spread_is_a_uniform_distribution_of_its_own_for_p_and_q(case30):
    group = _all(Uniform(low=0.8, high=1.2), reactive="independent")
    drawn = draw(case30, Uncertainty(loads=group), NUM).loads
    today = scenarios(case30, named_rng("case30", "scenarios"), NUM, spread=0.2, regime="fixed")
    for name in ("load_p", "load_q"):
        ours, theirs = getattr(drawn, name), getattr(today, name)
        at = np.flatnonzero(theirs.std(0))
        # the two-sample Kolmogorov distance has its 1e-6 quantile at 2.69 * sqrt(2 / NUM) = 0.042
        assert max(stats.ks_2samp(ours[:, i], theirs[:, i]).statistic for i in at) < 0.042
    both = np.flatnonzero(drawn.load_q.std(0))[0]
    assert abs(stats.spearmanr(drawn.load_p[:, both], drawn.load_q[:, both])[0]) < SIX_ERRORS


@pytest.mark.parametrize("sampling", ["random", "sobol", "latin_hypercube"])
@pytest.mark.parametrize(
    "distribution", [Normal(sd=0.1), Lognormal(sd=0.3), Beta(a=2, b=3), Empirical(values=(0.8, 1))]
)
def test_every_load_has_the_mean_variance_and_quantiles_of_its_distribution(
    case30, sampling, distribution
):
    factors = _factors(draw(case30, Uncertainty(loads=_all(distribution), sampling=sampling), NUM))
    factors = factors[:, np.isfinite(factors).all(0)]
    u = (np.arange(100_000) + 0.5) / 100_000
    exact = np.asarray(distribution.quantiles(u))
    # six standard errors of a mean of random rows; the other samplings are closer
    assert np.abs(factors.mean(0) - exact.mean()).max() < 6 * exact.std() / np.sqrt(NUM)
    # of a standard deviation: sqrt((kurtosis - 1) / 4 / NUM) of it, a kurtosis up to 5 here
    assert np.abs(factors.std(0) / exact.std() - 1).max() < 6 / np.sqrt(NUM)
    for level in (0.05, 0.5, 0.95):
        below = (factors <= np.quantile(exact, level) + 1e-12).mean(0)
        share = (exact <= np.quantile(exact, level) + 1e-12).mean()
        assert np.abs(below - share).max() < 6 * 0.5 / np.sqrt(NUM)


def test_sobol_rows_estimate_a_mean_better_than_random_ones(case30):
    def error(sampling):
        description = Uncertainty(loads=_all(Normal(sd=0.2)), sampling=sampling)
        drawn = [_factors(draw(case30, description, 256, seed=seed)) for seed in range(5)]
        means = np.array([factors[:, np.isfinite(factors[0])].mean(0) for factors in drawn])
        return np.sqrt(((means - 1) ** 2).mean())

    assert error("sobol") < error("random") / 5


def test_power_factor_is_kept_drawn_or_left(case30):
    def reactive(way):
        drawn = draw(case30, Uncertainty(loads=_all(Normal(sd=0.1), reactive=way)), 20)
        return drawn.loads, case30.load_power

    loads, nominal = reactive("follows")
    np.testing.assert_allclose(loads.load_q * nominal.real, loads.load_p * nominal.imag)
    loads, nominal = reactive("fixed")
    np.testing.assert_array_equal(loads.load_q, np.tile(nominal.imag, (20, 1)))
    loads, nominal = reactive("independent")
    ratio = loads.load_q / loads.load_p
    assert (ratio.std(0)[nominal.imag != 0] > 0).all()


def test_the_last_group_of_an_element_counts_and_others_stay_nominal(case30):
    low, high = case30.load_labels[0], case30.load_labels[1]
    groups = (
        Group(distribution=Fixed(value=2), area="some"),
        Group(distribution=Fixed(value=3), elements=(high,)),
    )
    areas = {"some": Area(buses=tuple(case30.bus_labels[b] for b in case30.load_bus[:2]))}
    drawn = draw(case30, Uncertainty(loads=groups, areas=areas), 2)
    assert low != high
    expected = np.ones(case30.num_loads)
    expected[:2] = 2, 3
    np.testing.assert_allclose(_factors(drawn)[0], expected)


def test_a_base_in_mw_replaces_the_nominal_power(case30):
    groups = _all(Fixed(value=0.5), elements=("load:0",), base_mw=30)
    drawn = draw(case30, Uncertainty(loads=groups), 1)
    assert drawn.loads.load_p[0, 0] * case30.base_mva == pytest.approx(15)
    ratio = case30.load_power[0].imag / case30.load_power[0].real
    assert drawn.loads.load_q[0, 0] * case30.base_mva == pytest.approx(15 * ratio)


def test_an_area_is_chosen_by_voltage_too():
    network = read_grid("case_ieee30")
    rows = Area(kv_max=50).rows(network, ())
    assert 0 < len(rows) < network.num_buses
    assert (network.bus_kv[rows] < 50).all()


def test_correlation_by_area_is_that_of_the_copula(case30):
    at = case30.load_bus
    areas = {
        "north": Area(buses=tuple({case30.bus_labels[b] for b in at[:6]})),
        "south": Area(buses=tuple({case30.bus_labels[b] for b in at[6:12]})),
    }
    description = Uncertainty(
        loads=_all(Lognormal(sd=0.2)), areas=areas,
        correlation=(Correlation(kind="area", rho=0.8, between=0.2),),
    )  # fmt: skip
    found = stats.spearmanr(_factors(draw(case30, description, NUM)))[0]
    rho = np.zeros((case30.num_loads,) * 2)
    rho[:12, :12] = 0.2
    rho[:6, :6] = rho[6:12, 6:12] = 0.8
    np.fill_diagonal(rho, 1)
    expected = 6 / np.pi * np.arcsin(rho / 2)  # Kruskal 1958
    assert np.abs(found - expected).max() < SIX_ERRORS


def test_loads_and_generation_may_be_correlated_by_a_matrix(case30):
    description = Uncertainty(
        loads=_all(Normal(sd=0.1)),
        generation=_all(Beta(a=2, b=2), elements=("gen:1",)),
        correlation=(
            Correlation(kind="matrix", elements=("gen:1", "load:2"), matrix=((1, -0.7), (-0.7, 1))),
        ),
    )
    factors = _factors(draw(case30, description, NUM))
    found = stats.spearmanr(factors)[0]
    expected = np.eye(case30.num_loads + 1)
    expected[2, -1] = expected[-1, 2] = 6 / np.pi * np.arcsin(-0.35)
    assert np.abs(found - expected).max() < SIX_ERRORS


def _apply(net, drawn, row):
    """A copy of the net with the powers of one row, and with the study's generators."""
    net, base = copy.deepcopy(net), drawn.network.base_mva
    demand = dict(zip(drawn.network.load_labels, drawn.loads.load_power[row] * base, strict=True))
    for label, power in demand.items():
        kind, _, number = label.partition(":")
        if kind == "load":
            net.load.loc[int(number), ["p_mw", "q_mvar", "scaling"]] = power.real, power.imag, 1.0
        elif kind == "gen":
            net.gen.loc[int(number), ["p_mw", "scaling"]] = -power.real, 1.0
        else:
            at = net.sgen.index[net.sgen.bus == int(number)]
            whole = net.sgen.loc[at, ["p_mw", "q_mvar"]].sum()
            net.sgen.loc[at, "p_mw"] *= -power.real / whole.p_mw
            if not (net.motor.bus == int(number)).any():
                net.sgen.loc[at, "q_mvar"] *= -power.imag / whole.q_mvar
    return net


def test_rows_with_varying_generation_are_what_pandapower_solves(static_net):
    network = read_grid(static_net)
    description = Uncertainty(
        loads=_all(Normal(sd=0.1)),
        generation=(
            Group(distribution=Beta(a=2, b=3, high=1.5), type="static"),
            Group(distribution=Uniform(low=0.6, high=1.1), elements=("gen:2", "gen:4")),
        ),
        correlation=(Correlation(kind="common", rho=0.5),),
        balance=Balance(elements=("gen:0", "gen:6")),
        set_points=(SetPoint(elements=("gen:2",), vm_pu=1.0),),
    )
    drawn = draw(network, description, 64)
    assert drawn.generators == ("gen:2", "gen:4", "static:5", "static:12", "gen:0", "gen:6")
    solution = solve(drawn.network, drawn.loads, tol=1e-10).require_converged()
    base = copy.deepcopy(static_net)
    base.gen.loc[2, "vm_pu"] = 1.0
    buses = [int(label.removeprefix("bus:")) for label in network.bus_labels]
    for row in (0, 17, 63):
        net = _apply(base, drawn, row)
        pp.runpp(net, calculate_voltage_angles=True, tolerance_mva=1e-9, init="dc", numba=False)
        result = net.res_bus.loc[buses]
        voltage = result.vm_pu.to_numpy() * np.exp(1j * np.deg2rad(result.va_degree.to_numpy()))
        assert np.abs(solution.voltage[row] - voltage).max() < 1e-8


def test_balancing_leaves_the_slack_its_nominal_power_but_for_losses(static_net):
    network = read_grid(static_net)
    base = network.base_mva
    given = Uncertainty(
        loads=_all(Normal(sd=0.1)),
        generation=_all(Beta(a=2, b=3, high=1.5), type="static"),
        balance=Balance(by="given", weights={"gen:0": 1, "gen:1": 2, "ext_grid:0": 1}),
        limits=(Limit(elements=("gen:1",), p_min_mw=600, p_max_mw=700),),
    )
    drawn = draw(network, given, 2000)
    p, nominal = drawn.loads.load_p * base, drawn.network.load_power.real * base
    moved = -(p - nominal)  # of gen:0 and gen:1, the last two columns
    change = (p - nominal)[:, :-2].sum(1)
    np.testing.assert_allclose(moved[:, -2:].sum(1) + drawn.to_slack * base, change, atol=1e-9)
    np.testing.assert_allclose(moved[:, -2], drawn.to_slack * base, atol=1e-9)  # equal weights
    gen_1 = -p[:, -1]
    assert gen_1.min() == pytest.approx(600)
    assert gen_1.max() == pytest.approx(700)
    inside = (gen_1 > 600.001) & (gen_1 < 699.999)
    np.testing.assert_allclose(moved[inside, -1], 2 * moved[inside, -2], atol=1e-9)
    assert inside.any()


def test_varying_generation_is_told_to_methods_that_predict_from_loads(case30):
    draw(case30, Uncertainty(), 2).require_exact("icw")
    varying = Uncertainty(generation=_all(Uniform(low=0.5, high=1), elements=("gen:0",)))
    with pytest.raises(ScenarioError, match=r"generation varies .* 'icw' predicts from loads"):
        draw(case30, varying, 2).require_exact("icw")


def test_the_same_seed_gives_the_same_rows_and_another_one_others(case30):
    description = Uncertainty(
        loads=_all(Normal(sd=0.1)), correlation=(Correlation(kind="common", rho=0.3),)
    )

    def rows(seed, num=20):
        return draw(case30, description, num, seed=seed).loads.load_p

    np.testing.assert_array_equal(rows(1), rows(1))
    np.testing.assert_array_equal(rows(1), rows(1, num=40)[:20])
    assert (rows(1) != rows(2))[:, case30.load_power.real != 0].all()


def test_the_rows_are_drawn_without_scipys_own_warnings(case30):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw(case30, Uncertainty(loads=_all(Beta(a=2, b=3)), sampling="sobol"), 64)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"loads": _all(Normal(sd=1), elements=("load:77",))}, r"loads.group\[1\].elements: no 'l"),
        ({"loads": _all(Normal(sd=1), area="west")}, r"group\[1\].area: no area 'west'; there are"),
        ({"loads": _all(Normal(sd=1), type="gen")}, "type: no element of type 'gen'; .* load"),
        ({"generation": _all(Normal(sd=1), elements=("ext_grid:0",))}, r"varying\[1\].elements: n"),
        (
            {"loads": _all(Normal(sd=1)), "areas": {"a": Area(buses=("bus:99",))}},
            "areas.a.buses: no 'bus:99' among the buses",
        ),
        (
            {"loads": _all(Normal(sd=1)), "areas": {"a": Area(kv_min=1e4)}},
            "areas.a: no bus from 10000 to inf kV",
        ),
        (
            {
                "loads": _all(Normal(sd=1)),
                "areas": {"a": Area(), "b": Area()},
                "correlation": (Correlation(kind="area", rho=0.2),),
            },
            "areas.b: load:0 is in a and b; areas that correlate must not overlap",
        ),
        (
            {
                "loads": _all(Normal(sd=1)),
                "correlation": (Correlation(kind="common", rho=0.2),) * 2,
            },
            r"correlation\[2\].elements: load:0 is correlated in entry 1 already",
        ),
        (
            {
                "loads": _all(Normal(sd=1), elements=("load:1",)),
                "correlation": (Correlation(kind="common", rho=0.2, elements=("load:2",)),),
            },
            "no 'load:2' among the elements that vary",
        ),
        (
            {
                "generation": _all(Normal(sd=1), elements=("gen:1",)),
                "correlation": (Correlation(kind="common", rho=0.2),),
            },
            r"correlation\[1\]: no load varies",
        ),
        ({"areas": {}, "loads": _all(Normal(sd=1), area="a", elements=("load:1",))}, "no area 'a'"),
    ],
)
def test_what_the_grid_does_not_have_is_named(case30, given, told):
    given = {"areas": {"all": Area()}} | given
    with pytest.raises(UncertaintyError, match=told):
        draw(case30, Uncertainty(**given), 2)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"sampling": "sobol"}, "sampling: sobol needs distributions"),
        ({"sampling": "best"}, "sampling: no sampling 'best'; choose random, sobol"),
        ({"correlation": (Correlation(kind="common", rho=0.1),)}, "correlation: it needs distr"),
        ({"limits": (Limit(elements=("gen:1",), p_min_mw=0, p_max_mw=1),)}, "generation.limit: li"),
    ],
)
def test_a_description_that_contradicts_itself_is_refused(given, told):
    with pytest.raises(UncertaintyError, match=told):
        Uncertainty(**given)


def test_more_scenarios_than_fit_are_refused_before_they_are_drawn(case30):
    with pytest.raises(MemoryNeededError, match="ask for at most"):
        draw(case30, Uncertainty(loads=_all(Normal(sd=0.1))), 10**11)


def test_distributions_beyond_all_numbers_are_refused(case30):
    with pytest.raises(UncertaintyError, match=r"Normal\(sd=1e\+308.* no finite numbers"):
        draw(case30, Uncertainty(loads=_all(Normal(sd=1e308, mean=1e308))), 2000)


def test_scenarios_without_a_number_are_refused(case30):
    with pytest.raises(UncertaintyError, match="scenarios: say how many"):
        draw(case30, Uncertainty())


def test_engine_rows_of_columns_equal_a_schedule_of_its_own(case30):
    """One generator at half power: as a column, and as a schedule."""
    group = _all(Fixed(value=0.5), elements=("gen:1",))
    drawn = draw(case30, Uncertainty(loads=(), generation=group), 1)
    half = generators(case30)["gen:1"].power.real / 2 * case30.base_mva
    other = draw(
        case30, Uncertainty(loads=(), set_points=(SetPoint(elements=("gen:1",), p_mw=half),)), 1
    )
    assert isinstance(drawn.loads, LoadScenarios)
    assert isinstance(other.loads, LoadScenarios)
    found = solve(drawn.network, drawn.loads, tol=1e-10).voltage
    np.testing.assert_allclose(
        found, solve(other.network, other.loads, tol=1e-10).voltage, atol=1e-9
    )
