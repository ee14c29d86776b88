"""Published methods that have a model of their own, for comparison (docs/baselines.md).

Each starts from the intact grid alone, as in the paper's comparison, or from many topologies, as
it was published (`-multi`); none of those has an element out that is out in the topology to come.
"""
