"""lightsim2grid with a distributed slack."""


def lightsim_with_weights(net):
    """lightsim2grid's model of a pandapower network, whose slack weights share the imbalance."""
    from lightsim2grid.network import init_from_pandapower

    model = init_from_pandapower(net, pp_orig_file="pandapower_v3")
    slack = len(net.gen)  # the external grid comes behind the generators, with a power of its own
    model.change_p_gen(slack, 0.0)
    model.remove_gen_slackbus(slack)
    for row, weight in enumerate([*net.gen.slack_weight, *net.ext_grid.slack_weight]):
        model.add_gen_slackbus(row, float(weight))
    return model
