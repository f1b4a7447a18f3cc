"""The sizes of the paper's corpora (apn-tab:asr and apn-tab:nmt), and who publishes them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class PaperCorpus:
    """sentences (or utterances); words: mean of one, by language; published: by whom, and where."""

    name: str
    sentences: int
    words: dict[str, float] = field(default_factory=dict)
    published: str = ""


_WMT = "the Conference on Machine Translation, statmt.org"
_OPENSLR_12 = "OpenSLR, openslr.org/12"

TRAINING = {
    "nmt_ende": PaperCorpus("WMT'17 EN-DE", 4_500_000, {"en": 26.2, "de": 24.8}, f"{_WMT}/wmt17"),
    "nmt_enfr": PaperCorpus("WMT'14 EN-FR", 40_800_000, {"en": 29.2, "fr": 33.5}, f"{_WMT}/wmt14"),
    "asr": PaperCorpus("LibriSpeech, 960 hours", 281_200, {"en": 33.4}, _OPENSLR_12),
}
# By family. The paper names none: fairseq's examples/scaling_nmt, and LibriSpeech's own parts.
DEV = {
    "translation": PaperCorpus("newstest2013", 3000, published=f"{_WMT}/wmt13"),
    "speech": PaperCorpus("LibriSpeech dev-clean and dev-other", 5567, published=_OPENSLR_12),
}
# By the paper's name of the role; sets that are made of newstest14 have its size.
TEST_SETS = {
    "newstest14": PaperCorpus(
        "newstest14", 3003, {"en": 27.0, "fr": 32.1, "de": 28.2}, f"{_WMT}/wmt14"
    ),
    "MED": PaperCorpus(
        "Khresmoi-Summary, dev and test",
        1500,
        {"en": 19.0, "fr": 21.8, "de": 17.9},
        "LINDAT/CLARIAH-CZ, lindat.cz (Khresmoi Summary Translation Test Data)",
    ),
    "LTC": PaperCorpus("LibriSpeech test-clean", 2620, {"en": 20.1}, _OPENSLR_12),
    "LTO": PaperCorpus("LibriSpeech test-other", 2939, {"en": 17.8}, _OPENSLR_12),
    "AMI": PaperCorpus(
        "AMI, evaluation part",
        12_643,
        {"en": 7.1},
        "the University of Edinburgh, groups.inf.ed.ac.uk/ami/corpus",
    ),
    "C-FR": PaperCorpus(
        "Common Voice FR, test part", 14_760, {"fr": 9.5}, "Mozilla, commonvoice.mozilla.org"
    ),
}
SPEECH_FRAMES_A_WORD = 5.4 * 3600 * 100 / (2620 * 20.1)  # test-clean: 5.4 hours, frames of 10 ms
