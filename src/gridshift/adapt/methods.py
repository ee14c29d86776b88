"""The roster of ways to adapt a surrogate, or another base, to a new topology."""

from functools import partial

from gridshift.adapt.baselines.deepopf_ft import adapt_deepopf_ft, start_deepopf_ft
from gridshift.adapt.baselines.fine_tune import adapt_fine_tune, adapt_scratch
from gridshift.adapt.baselines.mmnp import adapt_mmnp, start_mmnp
from gridshift.adapt.baselines.modular_gp import adapt_modular_gp, start_modular_gp
from gridshift.adapt.baselines.pfgnn_multi import adapt_pfgnn_multi, start_pfgnn_multi
from gridshift.adapt.baselines.pi_ttt import adapt_pi_ttt
from gridshift.adapt.baselines.ttf_ensemble import adapt_ttf_ensemble, start_ttf_ensemble
from gridshift.adapt.compensation import adapt_compensation
from gridshift.adapt.context import Context, Predictor
from gridshift.adapt.context_methods import (
    adapt_auto,
    adapt_frozen,
    adapt_icw_paired,
    adapt_icw_shrunk,
    adapt_residual_paired,
    adapt_ridge,
    adapt_ridge_features,
    adapt_with_context_statistics,
    adapt_zscore_paired,
)
from gridshift.adapt.method import Method, Need
from gridshift.adapt.tangent_methods import adapt_corrected_tangent, adapt_tangent
from gridshift.learn.third_moment import ZCA_SAS

__all__ = ["METHODS", "Context", "Method", "Need", "Predictor"]

NOTHING: tuple[Need, ...] = ("nothing",)
CASES: tuple[Need, ...] = ("solved cases",)
NETWORK: tuple[Need, ...] = ("network",)
CASES_AND_STEPS: tuple[Need, ...] = ("solved cases", "gradient steps")
NETWORK_AND_STEPS: tuple[Need, ...] = ("network", "gradient steps")

# fmt: off
_ROSTER = (
    Method(name="frozen", needs=NOTHING, adapt=adapt_frozen,
           summary="the surrogate as it is, statistics of the grid it was trained on",
           source="paper, table I"),
    Method(name="residual", needs=CASES, adapt=adapt_with_context_statistics,
           transform="residual",
           summary="mean re-estimated from the context", source="paper, table I, Residual(ctx)"),
    Method(name="zscore", needs=CASES, adapt=adapt_with_context_statistics, transform="zscore",
           summary="mean and variance of each output re-estimated from the context",
           source="paper, table I, Z-Score(ctx)"),
    Method(name="icw", needs=CASES, adapt=adapt_with_context_statistics, transform="zca",
           summary="mean and covariance re-estimated from the context",
           source="paper, section III, In-Context Whitening"),
    Method(name="icw-sas", needs=CASES, adapt=adapt_with_context_statistics, transform=ZCA_SAS,
           exportable=False,
           summary="as icw, then the skewness of each whitened output re-estimated too",
           source="paper, appendix B, third level"),
    Method(name="residual-paired", needs=CASES, adapt=adapt_residual_paired, transform="zca",
           summary="predictions moved by their mean error on the context",
           source="gridshift; control variates"),
    Method(name="zscore-paired", needs=CASES, adapt=adapt_zscore_paired, transform="zca",
           summary="mean and variance of each output, against predictions for the same inputs",
           source="gridshift, paired moments"),
    Method(name="icw-paired", needs=CASES, adapt=adapt_icw_paired, transform="zca",
           summary="mean and covariance, against predictions for the same inputs",
           source="gridshift, paired moments"),
    Method(name="icw-shrunk", needs=CASES, adapt=adapt_icw_shrunk, transform="zca",
           summary="as icw-paired, correlations shrunk towards zero",
           source="gridshift; Schäfer and Strimmer 2005"),
    Method(name="ridge", needs=CASES, adapt=adapt_ridge, uses_surrogate=False,
           summary="linear regression of y on x over the context, no surrogate",
           source="Hoerl and Kennard 1970; penalty by leave-one-out"),
    Method(name="ridge-features", needs=CASES, adapt=adapt_ridge_features,
           summary="linear regression of y on the base's output and x over the context",
           source="gridshift; penalty by leave-one-out"),
    Method(name="compensation", needs=CASES, adapt=adapt_compensation,
           summary="what the outage changes, a function of the state that the base predicts there",
           source="gridshift, docs/compensation.md; Alsac, Stott and Tinney 1983"),
    Method(name="icw-auto", needs=CASES, adapt=adapt_auto, transform="zca", closed_form=True,
           summary="the best on the context of all above that need solved cases only",
           source="gridshift; cross-validation"),
    Method(name="tangent", needs=NETWORK, adapt=partial(adapt_tangent, order=1),
           uses_surrogate=False,
           summary="first-order expansion around the new topology's nominal point",
           source="Newton's method; docs/tangent.md"),
    Method(name="tangent2", needs=NETWORK, adapt=partial(adapt_tangent, order=2),
           uses_surrogate=False, exportable=False,
           summary="second-order expansion around the new topology's nominal point",
           source="chord method; docs/tangent.md"),
    Method(name="tangent-icw", needs=NETWORK, adapt=adapt_corrected_tangent, may_use=CASES,
           transform="tangent",
           summary="tangent and learned curvature, recalibrated if there is a context",
           source="gridshift, docs/tangent.md"),
    Method(name="tangent2-icw", needs=NETWORK, adapt=adapt_corrected_tangent, may_use=CASES,
           transform="tangent2", exportable=False,
           summary="tangent2 and learned third order, recalibrated if there is a context",
           source="gridshift, docs/tangent.md"),
    Method(name="modular-gp", needs=NETWORK, adapt=adapt_modular_gp, base=start_modular_gp,
           exportable=False,
           summary="a Gaussian process for each bus, on what surrounds it; intact grid only",
           source="Caetano et al. 2026, as the paper compares it"),
    Method(name="modular-gp-multi", needs=NETWORK, adapt=adapt_modular_gp,
           base=partial(start_modular_gp, multi=True), exportable=False,
           summary="as modular-gp, taught by many topologies", source="Caetano et al. 2026"),
    Method(name="deepopf-ft", needs=NETWORK, adapt=adapt_deepopf_ft, base=start_deepopf_ft,
           exportable=False,
           summary="a network told every branch's admittance; intact grid only",
           source="Zhou, Chen and Low 2023, as the paper compares it"),
    Method(name="deepopf-ft-multi", needs=NETWORK, adapt=adapt_deepopf_ft,
           base=partial(start_deepopf_ft, multi=True), exportable=False,
           summary="as deepopf-ft, taught by many topologies", source="Zhou, Chen and Low 2023"),
    Method(name="pfgnn", needs=NETWORK, adapt=adapt_frozen, transform="zscore", backbone="pfgnn",
           exportable=False,
           summary="PowerFlowNet's graph network, given the new graph; intact grid only",
           source="Lin et al. 2024, as the paper compares it"),
    Method(name="pfgnn-multi", needs=NETWORK, adapt=adapt_pfgnn_multi, backbone="pfgnn",
           base=start_pfgnn_multi, exportable=False,
           summary="as pfgnn, taught by many topologies, each with its graph",
           source="Lin et al. 2024, PowerFlowNet"),
    Method(name="mmnp", needs=CASES, adapt=adapt_mmnp, base=start_mmnp, exportable=False,
           summary="a neural process that the context conditions; intact grid only",
           source="Ly et al. 2025, as the paper compares it"),
    Method(name="mmnp-multi", needs=CASES, adapt=adapt_mmnp,
           base=partial(start_mmnp, multi=True), exportable=False,
           summary="as mmnp, with many topologies as tasks", source="Ly et al. 2025"),
    Method(name="fine-tune", needs=CASES_AND_STEPS, adapt=adapt_fine_tune, transform="zscore",
           summary="all weights of the surrogate trained on, on the context",
           source="paper, section IV and appendix on cost"),
    Method(name="scratch", needs=CASES_AND_STEPS, adapt=adapt_scratch, uses_surrogate=False,
           closed_form=False,
           summary="the surrogate's architecture trained anew on the context alone",
           source="paper, appendix on cost"),
    Method(name="ttf-ensemble", needs=CASES_AND_STEPS, adapt=adapt_ttf_ensemble,
           base=start_ttf_ensemble, exportable=False,
           summary="five networks of the intact grid, each fine-tuned on the context; their mean",
           source="Jia et al. 2024, as the paper describes it"),
    Method(name="pi-ttt", needs=NETWORK_AND_STEPS, adapt=adapt_pi_ttt, transform="zca",
           exportable=False,
           summary="last layer moved until unlabelled rows satisfy the power balance better",
           source="Dogoulis et al. 2025, physics-informed test-time training"),
)
# fmt: on

METHODS: dict[str, Method] = {method.name: method for method in _ROSTER}
"""The roster that tables, tests and the command line iterate over."""
