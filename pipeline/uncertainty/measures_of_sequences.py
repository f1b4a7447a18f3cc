"""Registry of the measures of a sentence. A new measure is one entry of `_MEASURES`.

The chain forms are not listed here: the entries of `measures_of_tokens` name them. Notation of the
formulas: sum_b runs over the first B hypotheses y_b of a sentence, pi_b are their importance
weights, L_b is the length of y_b, and l_b is L_b or, without length normalisation, 1. P_PE(y) and
P_EP(y) are the probabilities of a sequence under PrEx and ExPr, P_m(y) under member m. The best
hypothesis of member m, decoding alone, is y_m.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from pipeline.statistics.posterior import Float64
from pipeline.uncertainty.hypothesis import (
    HypothesisSums,
    ratio_to_variance,
    variance_of_logprob,
    variance_of_probability,
)
from pipeline.uncertainty.measures_of_tokens import (
    TOKEN_MEASURES,
    Form,
    Symbol,
    TokenMeasure,
    Words,
)


class Estimator(Enum):
    """The way in which quantities of hypotheses become a measure of their sentence."""

    WEIGHTED_MEAN = "mean over the beam with importance weights"
    LOG_WEIGHTED_MEAN = "logarithm of the mean over the beam with importance weights"
    SAMPLE_MEAN = "mean over samples of the posterior"
    MEMBER_SAMPLE_MEAN = "mean over samples of each member"
    MEMBER_DECODES = "comparison of the best hypotheses of the members"
    HYPOTHESES = "comparison of all hypotheses of the store"


@dataclass(frozen=True)
class SequenceMeasure:
    """A measure of a sentence.

    estimator: how `quantity` is averaged over hypotheses; quantity: sums -> [hypothesis];
    per_length: whether length normalisation divides it by the length; posterior: `prex`, `expr` or
    empty; uncertainty: `total`, `data`, `knowledge` or empty for a heuristic; token_measure: the
    measure of tokens that it is made of; is_chain: whether it is their sum; of_samples: the mean of
    the same quantity over samples of the posterior.
    """

    name: str
    formula: str
    source: str
    estimator: Estimator
    label: Symbol | Words
    quantity: Callable[[HypothesisSums], Float64] | None = None
    per_length: bool = False
    posterior: str = ""
    uncertainty: str = ""
    token_measure: TokenMeasure | None = None
    is_chain: bool = False
    of_samples: Form | None = None

    @property
    def members_only(self) -> bool:
        """Whether it needs the probabilities of the realised tokens only."""
        return self.token_measure is None or self.token_measure.of_realised_token

    def values(self, sums: HypothesisSums, length_norm: bool) -> Float64:
        """Return the quantity of each hypothesis, per token if length-normalised."""
        assert self.quantity is not None, self.name
        values = self.quantity(sums)
        return values / sums.length if length_norm and self.per_length else values


def _forms(measure: TokenMeasure) -> list[SequenceMeasure]:
    """Return the sequence measures that are made of a token measure: its sum and its maximum."""
    forms = []
    if measure.chain is not None:
        chain = SequenceMeasure(
            name=measure.chain.name,
            formula=f"sum_b pi_b/l_b sum_l {measure.name}",
            source=measure.chain.source,
            estimator=Estimator.WEIGHTED_MEAN,
            label=measure.label,
            quantity=lambda sums: sums.chain[measure.name],
            per_length=True,
            posterior=measure.posterior,
            uncertainty=measure.uncertainty,
            token_measure=measure,
            is_chain=True,
            of_samples=measure.chain_of_samples,
        )
        forms.append(chain)
    if measure.maximum is not None:
        maximum = SequenceMeasure(
            name=measure.maximum.name,
            formula=f"sum_b pi_b max_l {measure.name}",
            source=measure.maximum.source,
            estimator=Estimator.WEIGHTED_MEAN,
            label=Words(f"largest {measure.label[0]} of a token", f"max. {measure.label[1]}"),
            quantity=lambda sums: sums.maximum[measure.name],
            posterior=measure.posterior,
            uncertainty=measure.uncertainty,
            token_measure=measure,
        )
        forms.append(maximum)
    return forms


# Group of the measures that later work compares with those of the paper.
LATER = "Later work"
_MEASURES = (
    *(form for measure in TOKEN_MEASURES.values() for form in _forms(measure)),
    SequenceMeasure(
        name="prex_entropy_s",
        formula="-sum_b pi_b/l_b ln P_PE(y_b)",
        source="eqn-apn:sequence-entropy-seq-IW",
        estimator=Estimator.WEIGHTED_MEAN,
        label=Symbol("H"),
        quantity=lambda sums: sums.score("prex"),
        per_length=True,
        posterior="prex",
        uncertainty="total",
        of_samples=Form("prex_entropy_smc", "eqn:sequence-entropy-seq-mc"),
    ),
    SequenceMeasure(
        name="expr_entropy_s",
        formula="-sum_b pi_b/l_b ln P_EP(y_b)",
        source="eqn-apn:sequence-entropy-seq-IW",
        estimator=Estimator.WEIGHTED_MEAN,
        label=Symbol("H"),
        quantity=lambda sums: sums.score("expr"),
        per_length=True,
        posterior="expr",
        uncertainty="total",
        of_samples=Form("expr_entropy_smc", "eqn:sequence-entropy-seq-mc"),
    ),
    SequenceMeasure(
        name="prex_rmi_s",
        formula="sum_b pi_b/l_b mean_m ln(P_PE(y_b) / P_m(y_b))",
        source="eqn-apn:sequence-mkl-seq-IW",
        estimator=Estimator.WEIGHTED_MEAN,
        label=Symbol("M"),
        quantity=lambda sums: sums.reverse_mutual_information("prex"),
        per_length=True,
        posterior="prex",
        uncertainty="knowledge",
        of_samples=Form("prex_rmi_smc", "eqn:sequence-mkl-seq-mc"),
    ),
    SequenceMeasure(
        name="expr_rmi_s",
        formula="sum_b pi_b/l_b mean_m ln(P_EP(y_b) / P_m(y_b))",
        source="eqn-apn:sequence-mkl-seq-IW",
        estimator=Estimator.WEIGHTED_MEAN,
        label=Symbol("M"),
        quantity=lambda sums: sums.reverse_mutual_information("expr"),
        per_length=True,
        posterior="expr",
        uncertainty="knowledge",
        of_samples=Form("expr_rmi_smc", "eqn:sequence-mkl-seq-mc"),
    ),
    SequenceMeasure(
        name="var_p",
        formula="sum_b pi_b var_m P_m(y_b)",
        source="apn:xbleu",
        estimator=Estimator.WEIGHTED_MEAN,
        label=Words(
            "ln variance of P",  # var_p underflows: rankings use ln_var_p
            "V[P], not length-normalised",
            r"$\mathbb{V}^{(B)}[P]$",
            "Heuristic",
        ),
        quantity=lambda sums: variance_of_probability(sums.logprob_member),
    ),
    SequenceMeasure(
        name="var_p_ln",
        formula="sum_b pi_b var_m P_m(y_b)^(1/L_b)",
        source="apn:xbleu",
        estimator=Estimator.WEIGHTED_MEAN,
        label=Words(
            "variance of P, by length", "V[P]", r"$\hat{\mathbb{V}}^{(B)}[P]$", "Heuristic"
        ),
        quantity=lambda sums: variance_of_probability(sums.rate_member),
    ),
    SequenceMeasure(
        name="var_logp",
        formula="sum_b pi_b var_m ln P_m(y_b)",
        source="apn:xbleu",
        estimator=Estimator.WEIGHTED_MEAN,
        label=Words(
            "variance of ln P",
            "V[ln P], not length-normalised",
            r"$\mathbb{V}^{(B)}[\ln P]$",
            "Heuristic",
        ),
        quantity=lambda sums: variance_of_logprob(sums.logprob_member),
    ),
    SequenceMeasure(
        name="var_logp_ln",
        formula="sum_b pi_b var_m (ln P_m(y_b) / L_b)",
        source="apn:xbleu",
        estimator=Estimator.WEIGHTED_MEAN,
        label=Words(
            "variance of ln P, by length",
            "V[ln P]",
            r"$\hat{\mathbb{V}}^{(B)}[\ln P]$",
            "Heuristic",
        ),
        quantity=lambda sums: variance_of_logprob(sums.rate_member),
    ),
    SequenceMeasure(
        name="ln_var_p",
        formula="ln var_p, without underflow: rankings use it",
        source="apn:xbleu",
        estimator=Estimator.LOG_WEIGHTED_MEAN,
        label=Words("ln variance of P", "ln V[P]", group="Heuristic"),
        quantity=HypothesisSums.log_variance,
    ),
    SequenceMeasure(
        name="member_score",
        formula="-sum_b pi_b/l_b mean_m ln P_m(y_b)",
        source="Fomicheva et al. 2020, D-TP",
        estimator=Estimator.WEIGHTED_MEAN,
        label=Words("mean score of the members", "D-TP", group=LATER),
        quantity=HypothesisSums.member_score,
        per_length=True,
    ),
    SequenceMeasure(
        name="d_combo",
        formula="sum_b pi_b (mean_m r_m / var_m r_m - 1), r_m = ln P_m(y_b) / L_b",
        source="Fomicheva et al. 2020, D-Combo",
        estimator=Estimator.WEIGHTED_MEAN,
        label=Words("ratio of mean and variance of ln P", "D-Combo", group=LATER),
        quantity=lambda sums: ratio_to_variance(sums.rate_member),
    ),
    SequenceMeasure(
        name="score_std",
        formula="sum_b pi_b mean_m std_l ln P_m(y_l)",
        source="Fomicheva et al. 2020, Sent-Std",
        estimator=Estimator.WEIGHTED_MEAN,
        label=Words("standard deviation of ln P over tokens", "Sent-Std", group=LATER),
        quantity=lambda sums: sums.deviation,
    ),
    SequenceMeasure(
        name="hypothesis_length",
        formula="sum_b pi_b L_b, in tokens",
        source="naive baseline",
        estimator=Estimator.WEIGHTED_MEAN,
        label=Words("length of the hypothesis", "Length", group=LATER),
        quantity=lambda sums: sums.length,
    ),
    SequenceMeasure(
        name="prex_mi_mc",
        formula="mean_m E_m[ln(P_m(y) / P_PE(y)) / l]",
        source="eqn:sequence-mi-seq-app",
        estimator=Estimator.MEMBER_SAMPLE_MEAN,
        label=Symbol("I"),
        quantity=lambda sums: sums.logprob_own - sums.logprob["prex"],
        per_length=True,
        posterior="prex",
        uncertainty="knowledge",
    ),
    SequenceMeasure(
        name="expr_mi_mc",
        formula="mean_m E_m[ln(P_m(y) / P_EP(y)) / l]",
        source="eqn:sequence-mi-seq-app",
        estimator=Estimator.MEMBER_SAMPLE_MEAN,
        label=Symbol("I"),
        quantity=lambda sums: sums.logprob_own - sums.logprob["expr"],
        per_length=True,
        posterior="expr",
        uncertainty="knowledge",
    ),
    SequenceMeasure(
        name="epkl_mc",
        formula="mean_m E_m[mean_n ln(P_m(y) / P_n(y)) / l]",
        source="eqn:sequence-epkl-seq-app",
        estimator=Estimator.MEMBER_SAMPLE_MEAN,
        label=Words("knowledge K, MC", "K MC", group="knowledge"),
        quantity=lambda sums: sums.logprob_own - sums.logprob_member.mean(axis=1),
        per_length=True,
        uncertainty="knowledge",
    ),
    SequenceMeasure(
        name="xbleu",
        formula="mean over pairs m != n of (100 - BLEU(y_m, y_n))^2",
        source="eqn:xbleu",
        estimator=Estimator.MEMBER_DECODES,
        label=Words("X-BLEU", "X-BLEU", group="Heuristic"),
    ),
    SequenceMeasure(
        name="xwer",
        formula="mean over pairs m != n of WER(y_m, y_n)^2",
        source="eqn:xwer",
        estimator=Estimator.MEMBER_DECODES,
        label=Words("X-WER", "X-WER", group="Heuristic"),
    ),
    SequenceMeasure(
        name="xchrf",
        formula="mean over pairs m != n of 100 - chrF(y_m, y_n)",
        source="Fomicheva et al. 2020, D-Lex-Sim",
        estimator=Estimator.MEMBER_DECODES,
        label=Words("X-chrF", "X-chrF", group=LATER),
    ),
    SequenceMeasure(
        name="hypothesis_chrf",
        formula="mean over pairs b != c of 100 - chrF(y_b, y_c), of all hypotheses",
        source="Fomicheva et al. 2020, lexical similarity",
        estimator=Estimator.HYPOTHESES,
        label=Words("chrF between hypotheses", "chrF of hyp.", group=LATER),
    ),
)


def _with_samples(measure: SequenceMeasure) -> list[SequenceMeasure]:
    """Return the measure and its mean over samples, if it has one."""
    if measure.of_samples is None:
        return [measure]
    sampled = replace(
        measure,
        name=measure.of_samples.name,
        formula=f"mean over samples of the quantity of {measure.name}",
        source=measure.of_samples.source,
        estimator=Estimator.SAMPLE_MEAN,
        of_samples=None,
    )
    return [measure, sampled]


SEQUENCE_MEASURES: dict[str, SequenceMeasure] = {
    form.name: form for measure in _MEASURES for form in _with_samples(measure)
}


# Those that say something about a single model; with one member, all others are 0 or equal to them.
SINGLE_MODEL = (
    "prex_entropy_s",
    "prex_entropy_c",
    "data_max",
    "score_std",
    "hypothesis_length",
    "hypothesis_chrf",
)


def measures_by(*estimators: Estimator) -> dict[str, SequenceMeasure]:
    """Return the sequence measures with one of these estimators."""
    return {
        name: measure
        for name, measure in SEQUENCE_MEASURES.items()
        if measure.estimator in estimators
    }
