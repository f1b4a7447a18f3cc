"""Headings of columns of measures: short names, mathematical ones, and the groups over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipeline.metrics.cell import COPY_THROUGH
from pipeline.report.table import Heading

TASKS = {"nmt_ende": "EN-DE", "nmt_enfr": "EN-FR", "asr": "ASR"}


def task_name(task: str) -> str:
    """The paper's name of a task; a task of the user's own goes by its own name."""
    return TASKS.get(task, task)


POSTERIORS = {"prex": "PrEx", "expr": "ExPr"}
# (ensemble, posterior that decoded) of the models that tables set side by side.
MODELS = {
    ("single", "-"): "Single",
    **{("random_init", name): shown for name, shown in POSTERIORS.items()},
}
ESTIMATORS = {"c": "C-IW", "s": "S-IW", "cmc": "C-MC", "smc": "S-MC", "mc": "MC"}


class Kind(NamedTuple):
    """An information-theoretic measure: its letter, and the uncertainty that it stands for."""

    letter: str
    uncertainty: str
    exact: bool = False

    @property
    def remark(self) -> str:
        """What is said behind the letter."""
        return ", exact" if self.exact else ""


KINDS = {
    "entropy": Kind("H", "total"),
    "score": Kind("P", "total"),
    "mi": Kind("I", "knowledge"),
    "mi_w": Kind("I", "knowledge", exact=True),
    "epkl": Kind("K", "knowledge"),
    "epkl_w": Kind("K", "knowledge", exact=True),
    "rmi": Kind("M", "knowledge"),
    "pmi": Kind("M", "knowledge"),
}


class Other(NamedTuple):
    """A column that is none of those: in words, as a heading, in LaTeX (None: as the heading), and
    the group of columns that it stands in."""

    words: str
    heading: str
    latex: str | None = None
    group: str = "Heuristic"


OTHERS = {
    "var_p": Other("ln variance of P", "V[P], not length-normalised", r"$\mathbb{V}^{(B)}[P]$"),
    "var_p_ln": Other("variance of P, by length", "V[P]", r"$\hat{\mathbb{V}}^{(B)}[P]$"),
    "var_logp": Other(
        "variance of ln P", "V[ln P], not length-normalised", r"$\mathbb{V}^{(B)}[\ln P]$"
    ),
    "var_logp_ln": Other(
        "variance of ln P, by length", "V[ln P]", r"$\hat{\mathbb{V}}^{(B)}[\ln P]$"
    ),
    "xbleu": Other("X-BLEU", "X-BLEU"),
    "xwer": Other("X-WER", "X-WER"),
    "token_error_rate_percent": Other("token error rate", "% TER", group=""),
    COPY_THROUGH: Other("copied share", "Copied share", group="Beyond the paper"),
}
METRICS = {
    "bleu": "BLEU",
    "wer_percent": "WER %",
    "nll": "NLL, nats per token",
    "chrf": "chrF",
    "cer_percent": "CER %",
}


class MeasureName(NamedTuple):
    """The parts of a name such as `prex_rmi_s`, as people call them; `estimator`: of sequences."""

    posterior: str
    kind: Kind
    estimator: str | None


def parts_of(name: str) -> MeasureName | None:
    """The parts of an information-theoretic measure's name; None for a name of another form."""
    posterior, _, rest = name.partition("_")
    if posterior not in POSTERIORS:
        return None
    if rest in KINDS:
        return MeasureName(POSTERIORS[posterior], KINDS[rest], None)
    kind, _, estimator = rest.rpartition("_")
    if kind not in KINDS or estimator not in ESTIMATORS:
        return None
    return MeasureName(POSTERIORS[posterior], KINDS[kind], ESTIMATORS[estimator])


def measure_label(name: str) -> str:
    """The measure as people call it; a name that is not the paper's stays as it is."""
    parts = parts_of(name)
    if parts is None or parts.estimator is None:
        return OTHERS[name].words if name in OTHERS else name
    kind = parts.kind
    return f"{parts.posterior} {kind.uncertainty} {kind.letter}{kind.remark}, {parts.estimator}"


def decoder_name(ensemble: str, combination: str, regime: str) -> str:
    """Who decoded: `random_init PrEx`, `random_init teacher forcing`, `single`."""
    way = "teacher forcing" if regime == "teacher_forcing" else POSTERIORS.get(combination, "")
    return f"{ensemble} {way}".strip()


def measure_header(
    labels: Sequence[str], columns: Sequence[str], beam: str
) -> tuple[tuple[Heading, ...], ...]:
    """Two rows of headings: groups of measures, then measures; `beam` is `1` or `B`."""
    return (
        (*(Heading(label) for label in labels), *spans([_group(name) for name in columns])),
        (*(Heading("") for _ in labels), *(_measure(name, beam) for name in columns)),
    )


def spans(names: Sequence[str]) -> list[Heading]:
    """Headings over runs of equal names."""
    headings: list[Heading] = []
    for name in names:
        if headings and headings[-1].text == name:
            headings[-1] = Heading(name, headings[-1].span + 1)
        else:
            headings.append(Heading(name))
    return headings


def _group(column: str) -> str:
    """The group of a measure; a name that is not the paper's has none."""
    if column in OTHERS:
        return OTHERS[column].group
    parts = parts_of(column)
    return "" if parts is None else f"{parts.posterior}, {parts.kind.uncertainty}"


def _measure(column: str, beam: str) -> Heading:
    if column in OTHERS:
        return Heading(OTHERS[column].heading, latex=OTHERS[column].latex)
    parts = parts_of(column)
    if parts is None:
        return Heading(column)
    letter, remark = parts.kind.letter, parts.kind.remark
    if parts.estimator is not None:
        symbol = rf"\hat{{\mathcal{{{letter}}}}}^{{({beam})}}_{{\mathrm{{{parts.estimator}}}}}"
        return Heading(f"{letter} {parts.estimator}{remark}", latex=f"${symbol}${remark}")
    if parts.kind is KINDS["pmi"]:
        return Heading("M of the token", latex=rf"$\mathcal{{{letter}}}_{{\omega_l}}$")
    return Heading(f"{letter}{remark}", latex=rf"$\mathcal{{{letter}}}${remark}")
