"""Measures and decodes in words, as controls and headings of the page call them."""

from __future__ import annotations

_POSTERIORS = {"prex": "PrEx", "expr": "ExPr"}
_KINDS = {
    "entropy": "total H",
    "mi": "knowledge I",
    "mi_w": "knowledge I, exact",
    "epkl": "knowledge K",
    "epkl_w": "knowledge K, exact",
    "rmi": "knowledge M",
}
_ESTIMATORS = {"c": "C-IW", "s": "S-IW", "cmc": "C-MC", "smc": "S-MC", "mc": "MC"}
_HEURISTICS = {
    "var_p": "ln variance of P",
    "var_p_ln": "variance of P, by length",
    "var_logp": "variance of ln P",
    "var_logp_ln": "variance of ln P, by length",
    "xbleu": "X-BLEU",
    "xwer": "X-WER",
}


def measure_label(name: str) -> str:
    """The measure as people call it; a name that is not the paper's stays as it is."""
    posterior, _, rest = name.partition("_")
    kind, _, estimator = rest.rpartition("_")
    if posterior in _POSTERIORS and kind in _KINDS and estimator in _ESTIMATORS:
        return f"{_POSTERIORS[posterior]} {_KINDS[kind]}, {_ESTIMATORS[estimator]}"
    return _HEURISTICS.get(name, name)


def decoder_name(ensemble: str, combination: str, regime: str) -> str:
    """Who decoded: `random_init PrEx`, `random_init teacher forcing`, `single`."""
    way = "teacher forcing" if regime == "teacher_forcing" else _POSTERIORS.get(combination, "")
    return f"{ensemble} {way}".strip()
