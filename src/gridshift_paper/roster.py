"""All artefacts, in the order of the paper."""

from gridshift.errors import GridshiftError
from gridshift_paper.artefacts import Artefact


def artefacts() -> dict[str, Artefact]:
    """Name to artefact."""
    from gridshift_paper import accuracy, comparison, context, cost, robustness, shift

    themes = (accuracy, comparison, robustness, context, cost, shift)
    return {artefact.name: artefact for theme in themes for artefact in theme.ARTEFACTS}


def artefact(name: str) -> Artefact:
    """The artefact of that name.

    Raises:
        GridshiftError: there is none.
    """
    known = artefacts()
    if name not in known:
        raise GridshiftError(f"no artefact {name!r}; choose one of {', '.join(known)}")
    return known[name]
