"""Monte-Carlo forms of the sequence-level measures, from stores of samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.statistics.kernel import Float64
from pipeline.store import Store
from pipeline.uncertainty.checks import refuse_nan, refuse_undrawable
from pipeline.uncertainty.hypothesis import (
    FORMS,
    POSTERIORS,
    HypothesisTotals,
    decoding_posteriors,
    first_hypotheses,
    first_of_member,
    uniform,
    weighted_mean,
)

# Form of a hypothesis -> name of its plain mean over samples of the posterior.
_FROM_POSTERIOR = {name: f"{name}mc" for name in FORMS if name.startswith(POSTERIORS)}
_FROM_MEMBERS = (*(f"{posterior}_mi_mc" for posterior in POSTERIORS), "epkl_mc")


def monte_carlo_refusals(
    store: Store, members: Sequence[int] | None
) -> dict[str, tuple[str | None, bool]]:
    """Measure -> (why this store cannot give it or None, whether logprob alone is enough).

    members: places of a subset of the members, all by default.
    """
    fault = _sampling_fault(store)
    refused: dict[str, tuple[str | None, bool]] = {}
    for form, name in _FROM_POSTERIOR.items():
        drawn_from = form.partition("_")[0]
        wrong = None
        if drawn_from not in decoding_posteriors(store):
            wrong = f"it needs samples of {drawn_from}, this has combination={store.combination}"
        refused[name] = (fault or wrong, FORMS[form].members_only)
    for name in _FROM_MEMBERS:
        wrong = None
        if store.combination != "member":
            wrong = f"it needs samples of each member, this has combination={store.combination}"
        elif members is not None:
            wrong = "it needs the samples of all members, not of a subset"
        refused[name] = (fault or wrong, True)
    return refused


def monte_carlo_measures(
    store: Store, totals: HypothesisTotals, beam: int, length_norm: bool, can: Sequence[str]
) -> dict[str, Float64]:
    """The Monte-Carlo forms among `can`, name -> [sentence], from the first `beam` samples.

    Of samples that single members drew, the first `beam` of each member; NaN for a sentence that
    one of them did not draw for. Raises StoreError, naming the sentence, for a mean that is NaN and
    for a sample that its own member gives probability 0. Source: eqn:sequence-entropy-seq-mc to
    eqn:sequence-mkl-chain-mc; eqn:sequence-mi-seq-app and eqn:sequence-epkl-seq-app.
    """
    means = _from_members(store, totals, beam, length_norm) if "epkl_mc" in can else {}
    names = {form: name for form, name in _FROM_POSTERIOR.items() if name in can}
    selection = first_hypotheses(store.hypothesis_offset, beam)
    log_weight = uniform(selection)
    for form, name in names.items():
        values = FORMS[form].value(totals, length_norm)[selection.hypothesis]
        means[name] = weighted_mean(log_weight, values, selection)
        refuse_nan(store, name, means[name])
    return means


def _from_members(
    store: Store, totals: HypothesisTotals, beam: int, length_norm: bool
) -> dict[str, Float64]:
    n_member = store.n_member
    drawn_by = store.read("/hypothesis/member")
    selection = first_of_member(store.hypothesis_offset, drawn_by, n_member, beam)
    own = totals.logprob_member[np.arange(len(drawn_by)), drawn_by]
    refuse_undrawable(store, own)
    values = {f"{p}_mi_mc": own - totals.logprob[p] for p in POSTERIORS}
    values["epkl_mc"] = own - totals.logprob_member.mean(axis=1)
    log_weight = uniform(selection)
    means = {}
    for name, value in values.items():
        rate = value / totals.length if length_norm else value
        mean = weighted_mean(log_weight, rate[selection.hypothesis], selection)
        means[name] = mean.reshape(store.n_sentence, n_member).mean(axis=1)
    return means


def _sampling_fault(store: Store) -> str | None:
    if store.regime != "sample":
        return f"it needs samples (regime=sample), this has regime={store.regime}"
    temperature = store.attributes.get("sampling_temperature", 1)
    if temperature != 1:
        return f"it needs samples at temperature 1, this has sampling_temperature={temperature}"
    for name, whole in (("sampling_top_k", store.vocab_size), ("sampling_top_p", 1)):
        # Absent, 0 and -1 all say that nothing was cut off.
        value = store.attributes.get(name, whole)
        if 0 < value < whole:
            return f"it needs samples of the whole distribution, this has {name}={value}"
    return None
