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
from gridshift.adapt.method import Method, Need
from gridshift.adapt.moment_methods import (
    adapt_auto,
    adapt_frozen,
    adapt_icw_paired,
    adapt_icw_shrunk,
    adapt_residual_paired,
    adapt_with_context_statistics,
    adapt_zscore_paired,
)
from gridshift.adapt.regression import start_regression
from gridshift.adapt.ridge import adapt_ridge, adapt_ridge_features
from gridshift.adapt.surrogate_config import ZCA_SAS
from gridshift.adapt.tangent_methods import adapt_corrected_tangent, adapt_tangent

__all__ = ["METHODS", "Context", "Method", "Need", "Predictor"]

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            name="frozen",
            summary="the surrogate as it is, statistics of the grid it was trained on",
            needs=("nothing",),
            source="paper, table I",
            adapt=adapt_frozen,
        ),
        Method(
            name="residual",
            summary="mean re-estimated from the context",
            needs=("solved cases",),
            source="paper, table I, Residual(ctx)",
            adapt=adapt_with_context_statistics,
            transform="residual",
        ),
        Method(
            name="zscore",
            summary="mean and variance of each output re-estimated from the context",
            needs=("solved cases",),
            source="paper, table I, Z-Score(ctx)",
            adapt=adapt_with_context_statistics,
            transform="zscore",
        ),
        Method(
            name="icw",
            summary="mean and covariance re-estimated from the context",
            needs=("solved cases",),
            source="paper, section III, In-Context Whitening",
            adapt=adapt_with_context_statistics,
            transform="zca",
        ),
        Method(
            name="icw-sas",
            summary="as icw, then the skewness of each whitened output re-estimated too",
            needs=("solved cases",),
            source="paper, appendix B, third level",
            adapt=adapt_with_context_statistics,
            transform=ZCA_SAS,
            exportable=False,
        ),
        Method(
            name="residual-paired",
            summary="predictions moved by their mean error on the context",
            needs=("solved cases",),
            source="gridshift; control variates",
            adapt=adapt_residual_paired,
            transform="zca",
        ),
        Method(
            name="zscore-paired",
            summary="mean and variance of each output, against predictions for the same inputs",
            needs=("solved cases",),
            source="gridshift, paired moments",
            adapt=adapt_zscore_paired,
            transform="zca",
        ),
        Method(
            name="icw-paired",
            summary="mean and covariance, against predictions for the same inputs",
            needs=("solved cases",),
            source="gridshift, paired moments",
            adapt=adapt_icw_paired,
            transform="zca",
        ),
        Method(
            name="icw-shrunk",
            summary="as icw-paired, correlations shrunk towards zero",
            needs=("solved cases",),
            source="gridshift; Schäfer and Strimmer 2005",
            adapt=adapt_icw_shrunk,
            transform="zca",
        ),
        Method(
            name="ridge",
            summary="linear regression of y on x over the context, no surrogate",
            needs=("solved cases",),
            source="Hoerl and Kennard 1970; penalty by leave-one-out",
            adapt=adapt_ridge,
            uses_surrogate=False,
        ),
        Method(
            name="ridge-features",
            summary="linear regression of y on the surrogate's output and x over the context",
            needs=("solved cases",),
            source="gridshift; penalty by leave-one-out",
            adapt=adapt_ridge_features,
        ),
        Method(
            name="compensation",
            summary="a closed-form base, and what changes at the buses that the change touches",
            needs=("solved cases",),
            source="gridshift; Alsac, Stott and Tinney 1983",
            adapt=adapt_compensation,
            base=start_regression,
            exportable=False,
        ),
        Method(
            name="icw-auto",
            summary="the best on the context of all above that need solved cases only",
            needs=("solved cases",),
            source="gridshift; cross-validation",
            adapt=adapt_auto,
            transform="zca",
        ),
        Method(
            name="tangent",
            summary="first-order expansion around the new topology's nominal point",
            needs=("network",),
            source="Newton's method; docs/tangent.md",
            adapt=partial(adapt_tangent, order=1),
            uses_surrogate=False,
        ),
        Method(
            name="tangent2",
            summary="second-order expansion around the new topology's nominal point",
            needs=("network",),
            source="chord method; docs/tangent.md",
            adapt=partial(adapt_tangent, order=2),
            uses_surrogate=False,
            exportable=False,
        ),
        Method(
            name="tangent-icw",
            summary="tangent and learned curvature, recalibrated if there is a context",
            needs=("network",),
            may_use=("solved cases",),
            source="gridshift, docs/tangent.md",
            adapt=adapt_corrected_tangent,
            transform="tangent",
        ),
        Method(
            name="tangent2-icw",
            summary="tangent2 and learned third order, recalibrated if there is a context",
            needs=("network",),
            may_use=("solved cases",),
            source="gridshift, docs/tangent.md",
            adapt=adapt_corrected_tangent,
            transform="tangent2",
            exportable=False,
        ),
        Method(
            name="modular-gp",
            summary="a Gaussian process for each bus, on what surrounds it; intact grid only",
            needs=("network",),
            source="Caetano et al. 2026, as the paper compares it",
            adapt=adapt_modular_gp,
            base=start_modular_gp,
            exportable=False,
        ),
        Method(
            name="modular-gp-multi",
            summary="as modular-gp, taught by many topologies",
            needs=("network",),
            source="Caetano et al. 2026",
            adapt=adapt_modular_gp,
            base=partial(start_modular_gp, multi=True),
            exportable=False,
        ),
        Method(
            name="deepopf-ft",
            summary="a network told every branch's admittance; intact grid only",
            needs=("network",),
            source="Zhou, Chen and Low 2023, as the paper compares it",
            adapt=adapt_deepopf_ft,
            base=start_deepopf_ft,
            exportable=False,
        ),
        Method(
            name="deepopf-ft-multi",
            summary="as deepopf-ft, taught by many topologies",
            needs=("network",),
            source="Zhou, Chen and Low 2023",
            adapt=adapt_deepopf_ft,
            base=partial(start_deepopf_ft, multi=True),
            exportable=False,
        ),
        Method(
            name="pfgnn",
            summary="PowerFlowNet's graph network, given the new graph; intact grid only",
            needs=("network",),
            source="Lin et al. 2024, as the paper compares it",
            adapt=adapt_frozen,
            transform="zscore",
            backbone="pfgnn",
            exportable=False,
        ),
        Method(
            name="pfgnn-multi",
            summary="as pfgnn, taught by many topologies, each with its graph",
            needs=("network",),
            source="Lin et al. 2024, PowerFlowNet",
            adapt=adapt_pfgnn_multi,
            backbone="pfgnn",
            base=start_pfgnn_multi,
            exportable=False,
        ),
        Method(
            name="mmnp",
            summary="a neural process that the context conditions; intact grid only",
            needs=("solved cases",),
            source="Ly et al. 2025, as the paper compares it",
            adapt=adapt_mmnp,
            base=start_mmnp,
            exportable=False,
        ),
        Method(
            name="mmnp-multi",
            summary="as mmnp, with many topologies as tasks",
            needs=("solved cases",),
            source="Ly et al. 2025",
            adapt=adapt_mmnp,
            base=partial(start_mmnp, multi=True),
            exportable=False,
        ),
        Method(
            name="fine-tune",
            summary="all weights of the surrogate trained on, on the context",
            needs=("solved cases", "gradient steps"),
            source="paper, section IV and appendix on cost",
            adapt=adapt_fine_tune,
            transform="zscore",
        ),
        Method(
            name="scratch",
            summary="the surrogate's architecture trained anew on the context alone",
            needs=("solved cases", "gradient steps"),
            source="paper, appendix on cost",
            adapt=adapt_scratch,
            uses_surrogate=False,
        ),
        Method(
            name="ttf-ensemble",
            summary="five networks of the intact grid, each fine-tuned on the context; their mean",
            needs=("solved cases", "gradient steps"),
            source="Jia et al. 2024, as the paper describes it",
            adapt=adapt_ttf_ensemble,
            base=start_ttf_ensemble,
            exportable=False,
        ),
        Method(
            name="pi-ttt",
            summary="last layer moved until unlabelled rows satisfy the power balance better",
            needs=("network", "gradient steps"),
            source="Dogoulis et al. 2025, physics-informed test-time training",
            adapt=adapt_pi_ttt,
            transform="zca",
            exportable=False,
        ),
    )
}
"""The roster that tables, tests and the command line iterate over."""
