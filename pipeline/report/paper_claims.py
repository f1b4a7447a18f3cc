"""The qualitative claims of the paper, and claims of our own, as comparisons of cells."""

from __future__ import annotations

from pipeline.report.claims import Claim, Side

_QUALITY = ("tab-apn:nmt-bleu-nll", "tab-apn:asr-wer-nll")
_CHECKPOINT_QUALITY = ("tab-apn:nmt-bleu-nll-cpt", "tab-apn:asr-wer-nll-cpt")
_ERRORS = ("tab:sequence-error-detection",)
_ERRORS_EXPR = ("apn-tab:sequence-error-detection-expr",)
_OOD = ("tab:ood-detection", "tab-app:ood-detection-prex")
_TOKEN_ERRORS = ("tab:token-error-detection",)
_BLEU_OR_WER = ("bleu", "wer_percent")

_TOTAL = ("prex_entropy_c", "prex_entropy_s")
_OTHER_KNOWLEDGE = ("prex_mi_c", "prex_epkl_c")
_RMI = ("prex_rmi_c", "prex_rmi_s")
_KNOWLEDGE = (*_OTHER_KNOWLEDGE, *_RMI)
_SINGLE = {"ensemble": "single", "hypotheses": "-"}
_CHECKPOINT_AVERAGE = {"ensemble": "checkpoint_average", "hypotheses": "-"}
_CHECKPOINT = {"ensemble": "checkpoint"}
_RANDOM_INIT = {"ensemble": "random_init"}


def _mean(*columns: str, **changes: str) -> Side:
    return Side(columns, changes, best=False)


def _expr(columns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(column.replace("prex_", "expr_") for column in columns)


def claims_of_the_paper() -> dict[str, Claim]:
    """The claims of the paper by name, in its order."""
    return {
        "ensembles_beat_singles": Claim(
            "An ensemble has better BLEU or WER than its single members.",
            "Table 1",
            _QUALITY,
            _BLEU_OR_WER,
            Side(),
            Side(changes=_SINGLE),
        ),
        "ensembles_beat_singles_in_nll": Claim(
            "An ensemble has a lower NLL than its single members.",
            "Table 1",
            _QUALITY,
            ("nll",),
            Side(),
            Side(changes=_SINGLE),
        ),
        "prex_beats_expr": Claim(
            "Combining members by PrEx (product of expectations) gives better BLEU or WER than by "
            "ExPr (expectation of products).",
            "Section 4, choice of ensemble combination",
            _QUALITY,
            _BLEU_OR_WER,
            Side(),
            Side(changes={"hypotheses": "expr"}),
        ),
        "prex_beats_expr_in_nll": Claim(
            "Combining members by PrEx gives a lower NLL than by ExPr.",
            "Appendix C",
            _QUALITY,
            ("nll",),
            Side(),
            Side(changes={"hypotheses": "expr"}),
        ),
        "total_beats_knowledge_for_errors": Claim(
            "Total uncertainty detects sentence errors better than knowledge uncertainty.",
            "Section 4, sequence-level error detection",
            _ERRORS,
            ("prr",),
            Side(_TOTAL),
            Side(_KNOWLEDGE),
        ),
        "joint_beats_chain_for_errors": Claim(
            "The joint-sequence estimate of total uncertainty (S-IW) detects sentence errors "
            "better than its chain-rule estimate (C-IW).",
            "Section 4, sequence-level error detection",
            _ERRORS,
            ("prr",),
            _mean("prex_entropy_s", "expr_entropy_s"),
            _mean("prex_entropy_c", "expr_entropy_c"),
        ),
        "prex_measures_beat_expr_for_errors": Claim(
            "PrEx measures detect sentence errors better than ExPr measures.",
            "Section 4, sequence-level error detection",
            _ERRORS,
            ("prr",),
            _mean(*_TOTAL, *_KNOWLEDGE),
            _mean(*_expr(_TOTAL), *_expr(_KNOWLEDGE)),
        ),
        "prex_measures_beat_expr_on_expr_hypotheses": Claim(
            "PrEx measures detect sentence errors better than ExPr measures, also for hypotheses "
            "decoded with ExPr.",
            "Appendix D, additional results",
            _ERRORS_EXPR,
            ("prr",),
            _mean(*_TOTAL, *_KNOWLEDGE),
            _mean(*_expr(_TOTAL), *_expr(_KNOWLEDGE)),
        ),
        "joint_rmi_is_best_knowledge_for_errors": Claim(
            "Joint-sequence RMI is the measure of knowledge uncertainty that detects sentence "
            "errors best.",
            "Section 4, sequence-level error detection",
            _ERRORS,
            ("prr",),
            Side(("prex_rmi_s",)),
            Side((*_OTHER_KNOWLEDGE, "prex_rmi_c")),
        ),
        "total_beats_knowledge_for_token_errors": Claim(
            "Total uncertainty detects token errors better than knowledge uncertainty.",
            "Section 4, token-level error detection",
            _TOKEN_ERRORS,
            ("aupr",),
            Side(("prex_entropy", "prex_score")),
            Side(("prex_mi", "prex_epkl", "prex_rmi")),
        ),
        "score_beats_entropy_for_token_errors": Claim(
            "The score of the realised token detects token errors better than the entropy of its "
            "position.",
            "Section 4, token-level error detection",
            _TOKEN_ERRORS,
            ("aupr",),
            _mean("prex_score", "expr_score"),
            _mean("prex_entropy", "expr_entropy"),
        ),
        "rmi_is_best_knowledge_for_ood": Claim(
            "RMI is the measure of knowledge uncertainty that detects out-of-domain input best.",
            "Section 4, out-of-domain input detection; Section 5",
            _OOD,
            ("roc_auc",),
            Side(_RMI),
            Side(_OTHER_KNOWLEDGE),
        ),
        "knowledge_beats_total_for_ood_in_translation": Claim(
            "In translation, knowledge uncertainty detects out-of-domain input better than total "
            "uncertainty.",
            "Section 4, out-of-domain input detection",
            _OOD,
            ("roc_auc",),
            Side(_KNOWLEDGE),
            Side(_TOTAL),
            family="translation",
        ),
        "total_is_best_for_ood_in_speech": Claim(
            "In speech recognition, total uncertainty detects out-of-domain input better than "
            "knowledge uncertainty.",
            "Section 4, out-of-domain input detection",
            _OOD,
            ("roc_auc",),
            Side(_TOTAL),
            Side(_KNOWLEDGE),
            family="speech",
        ),
        "copying_hides_total_uncertainty": Claim(
            "If the model copies its source (French and German input), total uncertainty is lower "
            "than for in-domain input: its ROC-AUC is below 50.",
            "Section 4, out-of-domain input detection",
            _OOD,
            ("roc_auc",),
            50.0,
            Side(_TOTAL),
            family="translation",
            test_sets=("L-FR", "L-DE"),
        ),
        "knowledge_survives_forced_copying": Claim(
            "If the reference is a copy of the source, knowledge uncertainty still detects "
            "out-of-domain input better than total uncertainty.",
            "Appendix F, teacher forcing",
            ("apn-tab:ood-detection-tf",),
            ("roc_auc",),
            Side(_KNOWLEDGE),
            Side(_TOTAL),
            test_sets=("L-DEDE", "L-ENEN", "L-FRFR"),
        ),
        "whole_beam_helps_joint_rmi_for_ood": Claim(
            "Joint-sequence RMI over all hypotheses of the beam detects out-of-domain input better "
            "than over the 1-best hypothesis alone.",
            "Appendix G",
            _OOD,
            ("roc_auc",),
            Side(("prex_rmi_s",)),
            Side(("prex_rmi_s",), {"B": "1"}),
        ),
        "prex_knowledge_beats_expr_for_ood": Claim(
            "Mutual information and EPKL detect out-of-domain input better under PrEx than under "
            "ExPr.",
            "Section 4, out-of-domain input detection",
            _OOD,
            ("roc_auc",),
            _mean(*_OTHER_KNOWLEDGE),
            _mean(*_expr(_OTHER_KNOWLEDGE)),
        ),
        "higher_temperature_helps_ood_in_translation": Claim(
            "In translation, RMI detects out-of-domain input better with T = 10 than with T = 1.",
            "Appendix G",
            _OOD,
            ("roc_auc",),
            _mean(*_RMI, T="10"),
            _mean(*_RMI, T="1"),
            family="translation",
        ),
        "higher_temperature_hurts_ood_in_speech": Claim(
            "In speech recognition, RMI detects out-of-domain input better with T = 1 than with "
            "T = 10.",
            "Appendix G",
            _OOD,
            ("roc_auc",),
            _mean(*_RMI, T="1"),
            _mean(*_RMI, T="10"),
            family="speech",
        ),
        "length_norm_helps_errors": Claim(
            "Measures detect sentence errors better with length normalisation than without.",
            "Appendix H",
            ("apn-tab:sequence-error-detection-noln",),
            ("prr",),
            _mean(*_TOTAL, *_KNOWLEDGE, length_norm="true"),
            _mean(*_TOTAL, *_KNOWLEDGE, length_norm="false"),
        ),
        "length_norm_helps_ood": Claim(
            "Measures detect out-of-domain input better with length normalisation than without.",
            "Appendix H",
            ("apn-tab:ood-detection-noln",),
            ("roc_auc",),
            _mean(*_TOTAL, *_KNOWLEDGE, length_norm="true"),
            _mean(*_TOTAL, *_KNOWLEDGE, length_norm="false"),
        ),
        "rmi_beats_variances_for_ood": Claim(
            "RMI detects out-of-domain input better than the variance of the probability or the "
            "log-probability.",
            "Appendix I",
            ("apn-tab:ood-detection-adhoc",),
            ("roc_auc",),
            Side(_RMI),
            Side(("var_p_ln", "var_logp_ln")),
        ),
        "rmi_beats_cross_quality_for_ood": Claim(
            "RMI detects out-of-domain input better than X-BLEU and X-WER.",
            "Appendix I",
            ("apn-tab:ood-detection-adhoc",),
            ("roc_auc",),
            Side(_RMI),
            # X-BLEU and X-WER do not depend on B.
            Side(("xbleu", "xwer"), {"B": "1"}),
        ),
        "checkpoints_beat_singles": Claim(
            "An ensemble of the checkpoints of one training run has better BLEU or WER than their "
            "average.",
            "Appendix J",
            _CHECKPOINT_QUALITY,
            _BLEU_OR_WER,
            Side(changes=_CHECKPOINT),
            Side(changes=_CHECKPOINT_AVERAGE),
        ),
        "random_init_beats_checkpoints": Claim(
            "An ensemble from several training runs has better BLEU or WER than an ensemble of the "
            "checkpoints of one training run.",
            "Appendix J",
            _CHECKPOINT_QUALITY,
            _BLEU_OR_WER,
            Side(changes=_RANDOM_INIT),
            Side(changes=_CHECKPOINT),
        ),
        "checkpoints_beat_singles_nll": Claim(
            "An ensemble of the checkpoints of one training run has a lower NLL than their "
            "average.",
            "Appendix J",
            _CHECKPOINT_QUALITY,
            ("nll",),
            Side(changes=_CHECKPOINT),
            Side(changes=_CHECKPOINT_AVERAGE),
        ),
        "random_init_beats_checkpoints_nll": Claim(
            "An ensemble from several training runs has a lower NLL than an ensemble of the "
            "checkpoints of one training run.",
            "Appendix J",
            _CHECKPOINT_QUALITY,
            ("nll",),
            Side(changes=_RANDOM_INIT),
            Side(changes=_CHECKPOINT),
        ),
        "random_init_beats_checkpoints_for_ood": Claim(
            "An ensemble from several training runs detects out-of-domain input better than an "
            "ensemble of checkpoints, each with its best measure.",
            "Appendix J",
            ("tab-app:ood-detection-prex-cpt",),
            ("roc_auc",),
            Side((*_TOTAL, *_KNOWLEDGE), _RANDOM_INIT),
            Side((*_TOTAL, *_KNOWLEDGE), _CHECKPOINT),
        ),
    }


def claims_of_our_own() -> dict[str, Claim]:
    """Compare exact mutual information and EPKL under ExPr with the paper's forms.

    The paper gives all members the same weight, and its measures under ExPr perform poorly.
    Weighted by the probability of the prefix, both measures are exact and never negative.
    """
    exact = _mean("expr_mi_w_c", "expr_epkl_w_c")
    of_paper = _mean("expr_mi_c", "expr_epkl_c")
    return {
        "exact_expr_helps_errors": Claim(
            "Under ExPr, exact mutual information and EPKL detect sentence errors better than the "
            "paper's forms.",
            "Our own, about Appendix A",
            _ERRORS,
            ("prr",),
            exact,
            of_paper,
        ),
        "exact_expr_helps_ood": Claim(
            "Under ExPr, exact mutual information and EPKL detect out-of-domain input better than "
            "the paper's forms.",
            "Our own, about Appendix A",
            _OOD,
            ("roc_auc",),
            exact,
            of_paper,
        ),
    }
