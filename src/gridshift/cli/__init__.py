"""The command `gridshift`: parse, call the library, print. Nothing heavy is imported early."""

import click

from gridshift.cli import (
    adapt,
    bench,
    cases,
    compare,
    doctor,
    export,
    generate,
    identify,
    paper,
    screening,
    sharing,
    solve,
    surrogates,
    tables,
)
from gridshift.cli.group import Group


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gridshift")
def main() -> None:
    """What happens to a power grid under uncertain loads when lines go out.

    GRID is a built-in name (case118), a pandapower JSON file, a MATPOWER .m file, or a file of
    PSS/E, XIIDM and other programs (with the extra gridshift[formats]).
    Results go to standard output, everything else to standard error. The exit code is 0 when
    done, 1 for a problem that the one line on standard error explains, 2 for wrong usage.
    """


for _command in (
    cases.cases,
    solve.solve,
    surrogates.train,
    adapt.adapt,
    export.export,
    identify.identify,
    screening.screen,
    sharing.merge,
    sharing.plan,
    generate.generate,
    surrogates.methods,
    tables.fit_table,
    tables.adapt_table,
    tables.predict_table,
    compare.compare,
    compare.pareto,
    paper.paper,
    bench.bench,
    doctor.doctor,
):
    main.add_command(_command)
