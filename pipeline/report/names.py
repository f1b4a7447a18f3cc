"""Names of models, metrics and measures in tables, figures and on the page."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.metrics.cell import COPY_THROUGH, SOURCE_LENGTH
from pipeline.metrics.main_numbers import COLUMNS, SINGLE
from pipeline.report.ensemble_names import ensemble_name
from pipeline.report.table import Heading
from pipeline.uncertainty.measures_of_sequences import (
    SEQUENCE_MEASURES,
    Estimator,
    SequenceMeasure,
)
from pipeline.uncertainty.measures_of_tokens import (
    POSTERIORS,
    TOKEN_MEASURES,
    Symbol,
    TokenMeasure,
    Words,
)

# (ensemble, posterior that decoded) of the models that tables compare.
MODELS = {
    ("single", "-"): "Single",
    **{("random_init", name): label for name, label in POSTERIORS.items()},
}
METRICS = {
    "bleu": "BLEU",
    "wer_percent": "WER %",
    "nll": "NLL, nats per token",
    "chrf": "chrF",
    "cer_percent": "CER %",
}


# Measures whose values have another unit than nats.
_UNITS = dict.fromkeys(("xbleu", "xwer"), "squared percent")
# Columns of tables that are not measures.
_OTHER_COLUMNS = {
    "token_error_rate_percent": Words("token error rate", "% TER"),
    COPY_THROUGH: Words("copied share", "Copied share", group="Beyond the paper"),
    SOURCE_LENGTH: Words("length of the source", "Source length", group="Beyond the paper"),
}

_METRICS_OF_RUNS = METRICS | {
    "nll": "NLL",
    "prr": "PRR",
    "roc_auc": "ROC-AUC",
    "aupr": "AUPR",
    "copied_percent": "Copied share, percent",
    "token_error_rate_percent": "Token error rate, percent",
}


def metric_label(name: str) -> str:
    """Return `ROC-AUC` for `roc_auc`; a metric that has no such name is returned unchanged."""
    return _METRICS_OF_RUNS.get(name, name)


def measure_label(name: str) -> str:
    """Return `PrEx knowledge M, S-IW` for `prex_rmi_s`.

    A token measure is `PrEx total P`; columns that are not in the registry keep their names.
    """
    if name in _OTHER_COLUMNS:
        return _OTHER_COLUMNS[name].text
    token = TOKEN_MEASURES.get(name)
    if token is not None and token.posterior:
        return f"{POSTERIORS[token.posterior]} {token.uncertainty} {_heading(name, '1').text}"
    measure = SEQUENCE_MEASURES.get(name)
    if measure is None:
        return name
    if isinstance(measure.label, Words):
        form = f", {_estimator(measure)}" if _is_chain(measure) else ""
        return f"{measure.label.text}{form}"
    posterior, remark = POSTERIORS[measure.posterior], _remark(measure.label)
    letter = measure.label.letter
    return f"{posterior} {measure.uncertainty} {letter}{remark}, {_estimator(measure)}"


def value_label(name: str) -> str:
    """Return the label of a measure for its values: with their unit, unless it is nats or none."""
    label, unit = measure_label(name), _UNITS.get(name)
    return label if unit is None else f"{label} ({unit})"


def short_label(name: str) -> str:
    """Return `M S-IW (PrEx)` for `prex_rmi_s`; a name without a letter is returned unchanged."""
    measure = SEQUENCE_MEASURES.get(name)
    if measure is None or isinstance(measure.label, Words):
        return name
    letter, remark = measure.label.letter, _remark(measure.label)
    return f"{letter} {_estimator(measure)}{remark} ({POSTERIORS[measure.posterior]})"


def decoder_name(ensemble: str, combination: str, regime: str) -> str:
    """Return a decoder in words: `random-init PrEx`, `random-init teacher forcing` or `single`."""
    way = "teacher forcing" if regime == "teacher_forcing" else POSTERIORS.get(combination, "")
    return f"{ensemble_name(ensemble)} {way}".strip()


def number_title(name: str) -> str:
    """Return `ROC-AUC of M S-IW (PrEx)` and below it `permuted` for `roc_auc/permuted`.

    `name` is that of a number of `pipeline.metrics.main_numbers`.
    """
    metric, _, test_set = name.partition("/")
    models = "single members" if metric.endswith(SINGLE) else "main ensemble"
    metric = metric.removesuffix(SINGLE)
    title, column = _METRICS_OF_RUNS.get(metric, metric), COLUMNS.get(metric, "")
    if column in SEQUENCE_MEASURES:
        title += f" of {short_label(column)}"
    elif column in TOKEN_MEASURES:
        posterior = POSTERIORS[TOKEN_MEASURES[column].posterior]
        title += f" of {_heading(column, '1').text} ({posterior})"
    in_all = "mean over the other test sets" if metric == "roc_auc" else f"in-domain, {models}"
    return f"{title}\n{test_set or in_all}"


def measure_header(
    labels: Sequence[str], columns: Sequence[str], beam: str
) -> tuple[tuple[Heading, ...], ...]:
    """Return two rows of headings: groups of measures, then measures. `beam` is `1` or `B`."""
    return (
        (*(Heading(label) for label in labels), *spans([_group(name) for name in columns])),
        (*(Heading("") for _ in labels), *(_heading(name, beam) for name in columns)),
    )


def spans(names: Sequence[str]) -> list[Heading]:
    """Return one heading for each run of equal names."""
    headings: list[Heading] = []
    for name in names:
        if headings and headings[-1].text == name:
            headings[-1] = Heading(name, headings[-1].span + 1)
        else:
            headings.append(Heading(name))
    return headings


def _group(column: str) -> str:
    """Return the heading over a column; columns that are not in the registry have none."""
    if column in _OTHER_COLUMNS:
        return _OTHER_COLUMNS[column].group
    measure = _measure(column)
    if measure is None:
        return ""
    if isinstance(measure.label, Words):
        return measure.label.group
    return f"{POSTERIORS[measure.posterior]}, {measure.uncertainty}"


def _heading(column: str, beam: str) -> Heading:
    if column in _OTHER_COLUMNS:
        return Heading(_OTHER_COLUMNS[column].heading)
    measure = _measure(column)
    if measure is None:
        return Heading(column)
    estimator = _estimator(measure) if isinstance(measure, SequenceMeasure) else ""
    if isinstance(measure.label, Words):
        heading, latex = measure.label.heading, measure.label.latex
        if _is_chain(measure):
            return Heading(f"{heading} {estimator}")
        return Heading(heading, latex=latex or None)
    letter, remark = rf"\mathcal{{{measure.label.letter}}}", _remark(measure.label)
    if estimator:
        symbol = rf"\hat{{{letter}}}^{{({beam})}}_{{\mathrm{{{estimator}}}}}"
        return Heading(f"{measure.label.letter} {estimator}{remark}", latex=f"${symbol}${remark}")
    if measure.label.realised:
        return Heading(f"{measure.label.letter} of the token", latex=rf"${letter}_{{\omega_l}}$")
    return Heading(f"{measure.label.letter}{remark}", latex=f"${letter}${remark}")


def _measure(column: str) -> SequenceMeasure | TokenMeasure | None:
    return SEQUENCE_MEASURES.get(column) or TOKEN_MEASURES.get(column)


def _is_chain(measure: SequenceMeasure | TokenMeasure) -> bool:
    return isinstance(measure, SequenceMeasure) and measure.is_chain


def _estimator(measure: SequenceMeasure) -> str:
    """Return `C-IW` for a chain form, `S-MC` for a sequence form over samples, and so on."""
    if measure.estimator is Estimator.MEMBER_SAMPLE_MEAN:
        return "MC"
    way = "MC" if measure.estimator is Estimator.SAMPLE_MEAN else "IW"
    return f"{'C' if _is_chain(measure) else 'S'}-{way}"


def _remark(label: Symbol) -> str:
    return ", exact" if label.exact else ""
