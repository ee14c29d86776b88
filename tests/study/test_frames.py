"""Tables and pictures of a study: the numbers of its rows, with names, units and changes."""

import matplotlib as mpl
import numpy as np
import pytest

import gridshift as gs
from gridshift.errors import OutageError

mpl.use("Agg")


def test_the_outages_are_the_ranking_with_what_they_add(study):
    frame = study.outages
    assert frame.outage.tolist() == [row.outage for row in study.rows]
    assert frame["rank"].tolist() == list(range(1, len(study.rows) + 1))
    first, row = frame.iloc[0], study.rows[0]
    assert first.described == f"{row.outage} (bus 0-1, 135 kV)" or row.outage in first.described
    assert first.severity_change == row.severity - study.intact["severity"]
    assert first.worst_voltage_p99 == row.worst_voltage["p99"]
    assert first.any_voltage_low < first.any_voltage + 1e-12 < first.any_voltage_high + 2e-12
    rise = row.bus_under + row.bus_over - study.intact_row.bus_under - study.intact_row.bus_over
    overload = row.branch_overload_probability - study.intact_row.branch_overload_probability
    assert first.largest_rise == pytest.approx(max(0, rise.max(), np.nanmax(overload)))


def test_each_outage_and_bus_has_its_voltages_in_both_units(study):
    frame = study.buses
    row = study.rows[2]
    here = frame[frame.outage == row.outage].set_index("bus")
    assert list(here.index) == list(study.network.bus_labels)
    assert np.array_equal(here.mean_pu, row.bus_voltage_mean)
    assert np.allclose(here.max_kv, row.bus_voltage_max * study.network.bus_kv)
    assert np.array_equal(here.probability, row.bus_under + row.bus_over)
    change = row.bus_voltage_mean - study.intact_row.bus_voltage_mean
    assert np.array_equal(here.mean_change_pu, change)
    assert here.name["bus:3"] == "4"


def test_each_outage_and_branch_has_its_loadings_in_per_cent_and_ka(study):
    frame, network = study.branches, study.network
    row = study.rows[0]
    here = frame[frame.outage == row.outage].set_index("branch")
    assert np.allclose(here.p99_percent, 100 * row.branch_loading_p99)
    at = list(network.branch_labels).index("line:5")
    line = here.loc["line:5"]
    rating = network.branch_rating[at, 0] * network.base_mva
    rating_ka = rating / (np.sqrt(3) * network.bus_kv[network.branch_from[at]])
    assert line.rating_ka == pytest.approx(rating_ka)
    assert line.mean_ka == pytest.approx(row.branch_loading[at] * rating_ka)
    assert line.from_bus == network.bus_labels[network.branch_from[at]]
    change = row.branch_overload_probability[at] - study.intact_row.branch_overload_probability[at]
    assert line.probability_change == pytest.approx(change)


def test_a_line_has_the_kiloampere_that_pandapower_rates_it_by(study):
    import pandapower.networks

    net = pandapower.networks.case30()
    here = study.branches[study.branches.outage == study.rows[0].outage].set_index("branch")
    for index in net.line.index:
        assert here.rating_ka[f"line:{index}"] == pytest.approx(net.line.max_i_ka[index])


def test_a_default_rating_is_in_the_table():
    config = gs.ScreenConfig(
        grid="case14", method="newton", num_scenarios=3, workers=1, rating_mva=100
    )
    frame = gs.screen(config).branches
    assert np.allclose(frame.rating_ka, 100 / np.sqrt(3) / frame.kv, rtol=0.5)
    assert frame.mean_percent.notna().any()


def test_a_grid_without_ratings_has_an_empty_table_of_branches():
    config = gs.ScreenConfig(grid="case14", method="newton", num_scenarios=2, workers=1)
    study = gs.screen(config)
    assert len(study.branches) == 0
    assert "p99_ka" in study.branches
    assert len(study.buses) == 14 * len(study.rows)


def test_a_study_of_nothing_still_has_its_tables(study):
    from dataclasses import replace

    empty = replace(study, rows=())
    assert len(empty.outages) == len(empty.buses) == len(empty.branches) == 0
    assert "0 outages" in empty._repr_html_()


def test_pictures_are_axes(study):
    from matplotlib.axes import Axes

    worst = study.rows[0].outage
    axes = [study.plot_ranking(num=5), study.plot_map(), *study.plot_outage(worst)]
    assert all(isinstance(one, Axes) for one in axes)
    assert axes[0].get_yticklabels()[0].get_text() == worst
    assert study.plot_ranking(axes=axes[0]) is axes[0]
    with pytest.raises(OutageError, match="line:99 is not in this study"):
        study.plot_outage("line:99")


def test_a_notebook_shows_the_worst_outages(study):
    text = study._repr_html_()
    assert text.count("<tr>") == 11
    assert study.rows[0].outage in text
    assert len(repr(study)) < 3000
