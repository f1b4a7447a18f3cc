"""Registry of the measures of a token. A new measure is one entry of `TOKEN_MEASURES`.

Notation of the formulas: P_m is the distribution of member m at a position, P_PE and P_EP are the
token posteriors of PrEx and ExPr, w_m the weights of the members in ExPr, y_l the realised token,
H the entropy, CE the cross entropy and KL the Kullback-Leibler divergence. mean_m is a mean over
members. All measures are in nats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from pipeline.statistics.posterior import Float64
from pipeline.uncertainty.topk import Interval, TopKDistributions
from pipeline.uncertainty.weighted_statistics import WeightedStatistics

# Name in code -> name in texts.
POSTERIORS = {"prex": "PrEx", "expr": "ExPr"}


class Range(Enum):
    """Values that a measure of valid distributions can have."""

    NOT_NEGATIVE = "at least 0"
    ENTROPY = "between 0 and ln(vocab)"
    REAL = "any; may be negative"


class Symbol(NamedTuple):
    """Label of an information-theoretic measure: its letter in the paper.

    exact: its chain form is exact for samples of the posterior; realised: it is a measure of the
    realised token only.
    """

    letter: str
    exact: bool = False
    realised: bool = False


class Words(NamedTuple):
    """Label of a measure that has no letter: in a sentence, as a heading, in LaTeX, and its group.

    An empty `latex` means that the heading is used.
    """

    text: str
    heading: str
    latex: str = ""
    group: str = ""


class Form(NamedTuple):
    """Name and source of a sequence measure that is derived from another measure."""

    name: str
    source: str


@dataclass(frozen=True)
class TokenMeasure:
    """A measure of a token.

    compute: statistics -> [token]; needs: the token statistics that it reads; range: its possible
    values; uncertainty: `total`, `data` or `knowledge`; posterior: `prex`, `expr` or empty;
    topk_bounds: its bounds when only the k most probable tokens are known (without bounds it is not
    checked against such distributions); chain: the importance-weighted mean of its sum along a
    hypothesis; chain_of_samples: the mean over samples of the same sum; maximum: the
    importance-weighted mean of its largest value in a hypothesis.
    """

    name: str
    formula: str
    source: str
    compute: Callable[[WeightedStatistics], Float64]
    needs: tuple[str, ...]
    range: Range
    uncertainty: str
    label: Symbol | Words
    posterior: str = ""
    topk_bounds: Callable[[TopKDistributions], Interval] | None = None
    chain: Form | None = None
    chain_of_samples: Form | None = None
    maximum: Form | None = None

    @property
    def of_realised_token(self) -> bool:
        """Whether it depends on the probability of the realised token only."""
        return self.needs == ("logprob",)

    @property
    def is_divergence(self) -> bool:
        """Whether it is a measure of knowledge uncertainty that is summed along hypotheses."""
        return self.uncertainty == "knowledge" and self.chain is not None


_MEASURES = (
    TokenMeasure(
        name="prex_entropy",
        formula="H[P_PE]",
        source="eqn:token-entropy-autoreg",
        compute=lambda token: token.statistic("entropy_prex"),
        needs=("entropy_prex",),
        range=Range.ENTROPY,
        uncertainty="total",
        label=Symbol("H"),
        posterior="prex",
        topk_bounds=TopKDistributions.prex_entropy,
        chain=Form("prex_entropy_c", "eqn-apn:sequence-entropy-chain-IW"),
        chain_of_samples=Form("prex_entropy_cmc", "eqn:sequence-entropy-chain-mc"),
    ),
    TokenMeasure(
        name="prex_mi",
        formula="H[P_PE] - mean_m H[P_m]",
        source="eqn:token-mi-autoreg, second line",
        compute=lambda token: token.statistic("entropy_prex") - token.data,
        needs=("entropy_prex", "entropy_member"),
        range=Range.NOT_NEGATIVE,
        uncertainty="knowledge",
        label=Symbol("I"),
        posterior="prex",
        topk_bounds=TopKDistributions.prex_mi,
        chain=Form("prex_mi_c", "eqn-apn:sequence-mi-chain-IW"),
        chain_of_samples=Form("prex_mi_cmc", "eqn:sequence-mi-chain-mc"),
    ),
    TokenMeasure(
        name="prex_epkl",
        formula="mean_m CE(P_PE, P_m) - mean_m H[P_m]",
        source="eqn:tokenb-epkl-autoreg",
        compute=lambda token: token.statistic("cross_prex") - token.data,
        needs=("cross_prex", "entropy_member"),
        range=Range.NOT_NEGATIVE,
        uncertainty="knowledge",
        label=Symbol("K"),
        posterior="prex",
        topk_bounds=TopKDistributions.prex_epkl,
        chain=Form("prex_epkl_c", "eqn-apn:sequence-epkl-chain-IW"),
        chain_of_samples=Form("prex_epkl_cmc", "eqn:sequence-epkl-chain-app"),
    ),
    TokenMeasure(
        name="prex_rmi",
        formula="mean_m KL(P_PE, P_m)",
        source="eqn:token-mkl-autoreg",
        compute=lambda token: token.statistic("cross_prex") - token.statistic("entropy_prex"),
        needs=("cross_prex", "entropy_prex"),
        range=Range.NOT_NEGATIVE,
        uncertainty="knowledge",
        label=Symbol("M"),
        posterior="prex",
        topk_bounds=TopKDistributions.prex_rmi,
        chain=Form("prex_rmi_c", "eqn-apn:sequence-mkl-chain-IW"),
        chain_of_samples=Form("prex_rmi_cmc", "eqn:sequence-mkl-chain-mc"),
    ),
    TokenMeasure(
        name="prex_score",
        formula="-ln P_PE(y_l)",
        source="eqn:token-posterior-score",
        compute=lambda token: token.prex_score,
        needs=("logprob",),
        range=Range.NOT_NEGATIVE,
        uncertainty="total",
        label=Symbol("P"),
        posterior="prex",
    ),
    TokenMeasure(
        name="prex_pmi",
        formula="mean_m (ln P_PE(y_l) - ln P_m(y_l))",
        source="eqn:token-npmi",
        compute=lambda token: token.pointwise_mutual_information(token.prex_score),
        needs=("logprob",),
        range=Range.NOT_NEGATIVE,
        uncertainty="knowledge",
        label=Symbol("M", realised=True),
        posterior="prex",
    ),
    TokenMeasure(
        name="expr_entropy",
        formula="H[P_EP]",
        source="eqn:token-entropy-autoreg",
        compute=lambda token: token.statistic("entropy_expr"),
        needs=("entropy_expr",),
        range=Range.ENTROPY,
        uncertainty="total",
        label=Symbol("H"),
        posterior="expr",
        topk_bounds=TopKDistributions.expr_entropy,
        chain=Form("expr_entropy_c", "eqn-apn:sequence-entropy-chain-IW"),
        chain_of_samples=Form("expr_entropy_cmc", "eqn:sequence-entropy-chain-mc"),
    ),
    # May be negative, because members are weighted equally here, but not in P_EP.
    TokenMeasure(
        name="expr_mi",
        formula="H[P_EP] - mean_m H[P_m]",
        source="eqn:token-mi-autoreg, second line",
        compute=lambda token: token.statistic("entropy_expr") - token.data,
        needs=("entropy_expr", "entropy_member"),
        range=Range.REAL,
        uncertainty="knowledge",
        label=Symbol("I"),
        posterior="expr",
        topk_bounds=TopKDistributions.expr_mi,
        chain=Form("expr_mi_c", "eqn-apn:sequence-mi-chain-IW"),
        chain_of_samples=Form("expr_mi_cmc", "eqn:sequence-mi-chain-mc"),
    ),
    TokenMeasure(
        name="expr_epkl",
        formula="mean_m CE(P_EP, P_m) - mean_m H[P_m]",
        source="eqn:tokenb-epkl-autoreg",
        compute=lambda token: token.statistic("cross_expr") - token.data,
        needs=("cross_expr", "entropy_member"),
        range=Range.REAL,
        uncertainty="knowledge",
        label=Symbol("K"),
        posterior="expr",
        topk_bounds=TopKDistributions.expr_epkl,
        chain=Form("expr_epkl_c", "eqn-apn:sequence-epkl-chain-IW"),
        chain_of_samples=Form("expr_epkl_cmc", "eqn:sequence-epkl-chain-app"),
    ),
    TokenMeasure(
        name="expr_rmi",
        formula="mean_m KL(P_EP, P_m)",
        source="eqn:token-mkl-autoreg",
        compute=lambda token: token.statistic("cross_expr") - token.statistic("entropy_expr"),
        needs=("cross_expr", "entropy_expr"),
        range=Range.NOT_NEGATIVE,
        uncertainty="knowledge",
        label=Symbol("M"),
        posterior="expr",
        topk_bounds=TopKDistributions.expr_rmi,
        chain=Form("expr_rmi_c", "eqn-apn:sequence-mkl-chain-IW"),
        chain_of_samples=Form("expr_rmi_cmc", "eqn:sequence-mkl-chain-mc"),
    ),
    TokenMeasure(
        name="expr_score",
        formula="-ln P_EP(y_l)",
        source="eqn:token-posterior-score",
        compute=lambda token: token.expr_score,
        needs=("logprob",),
        range=Range.NOT_NEGATIVE,
        uncertainty="total",
        label=Symbol("P"),
        posterior="expr",
    ),
    TokenMeasure(
        name="expr_pmi",
        formula="mean_m (ln P_EP(y_l) - ln P_m(y_l))",
        source="eqn:token-npmi",
        compute=lambda token: token.pointwise_mutual_information(token.expr_score),
        needs=("logprob",),
        range=Range.REAL,
        uncertainty="knowledge",
        label=Symbol("M", realised=True),
        posterior="expr",
    ),
    TokenMeasure(
        name="expr_mi_w",
        formula="H[P_EP] - sum_m w_m H[P_m]",
        source="docs/expr_estimators.md",
        compute=lambda token: token.statistic("entropy_expr") - token.weighted_data,
        needs=("entropy_expr", "entropy_member"),
        range=Range.NOT_NEGATIVE,
        uncertainty="knowledge",
        label=Symbol("I", exact=True),
        posterior="expr",
        topk_bounds=TopKDistributions.expr_mi_w,
        chain=Form("expr_mi_w_c", "docs/expr_estimators.md"),
        chain_of_samples=Form("expr_mi_w_cmc", "docs/expr_estimators.md"),
    ),
    TokenMeasure(
        name="expr_epkl_w",
        formula="mean_n CE(P_EP, P_n) - sum_m w_m H[P_m]",
        source="docs/expr_estimators.md",
        compute=lambda token: token.statistic("cross_expr") - token.weighted_data,
        needs=("cross_expr", "entropy_member"),
        range=Range.NOT_NEGATIVE,
        uncertainty="knowledge",
        label=Symbol("K", exact=True),
        posterior="expr",
        topk_bounds=TopKDistributions.expr_epkl_w,
        chain=Form("expr_epkl_w_c", "docs/expr_estimators.md"),
        chain_of_samples=Form("expr_epkl_w_cmc", "docs/expr_estimators.md"),
    ),
    # Under ExPr the two lines of the paper's equation differ.
    TokenMeasure(
        name="expr_mi_kl",
        formula="mean_m KL(P_m, P_EP)",
        source="eqn:token-mi-autoreg, first line",
        compute=lambda token: token.statistic("cross_member_expr") - token.data,
        needs=("cross_member_expr", "entropy_member"),
        range=Range.NOT_NEGATIVE,
        uncertainty="knowledge",
        label=Words("ExPr knowledge I as a divergence", "I as a divergence"),
        posterior="expr",
        topk_bounds=TopKDistributions.expr_mi_kl,
    ),
    TokenMeasure(
        name="data",
        formula="mean_m H[P_m]",
        source="data uncertainty",
        compute=lambda token: token.data.copy(),
        needs=("entropy_member",),
        range=Range.ENTROPY,
        uncertainty="data",
        label=Words("data uncertainty", "Data"),
        topk_bounds=TopKDistributions.data,
        chain=Form("data_c", "Fomicheva et al. 2020, mean of Softmax-Ent"),
        maximum=Form("data_max", "mean of the largest token entropy"),
    ),
)

TOKEN_MEASURES: dict[str, TokenMeasure] = {measure.name: measure for measure in _MEASURES}
