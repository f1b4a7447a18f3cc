from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.data.text.cleaning import languages_of, learn_languages
from pipeline.data.text.corpus import AlignedSentence
from pipeline.data.text.game_dialogue import read_game_dialogue
from pipeline.run.settings import DataConfig

SENTENCES = [
    AlignedSentence(
        "page",
        {
            "de": f"Das ist die {number} und der Rest : ich",
            "en": f"This is the {number} and the rest : I",
            "fr": f"Voici la {number} et le reste : moi",
        },
    )
    for number in range(20)
]
PROFILE = learn_languages(SENTENCES, ["de", "en", "fr"])


@pytest.mark.parametrize("language", ["de", "en", "fr"])
def test_each_side_is_in_its_own_language_and_in_no_other(language: str) -> None:
    for own, text in SENTENCES[0].text.items():
        assert PROFILE.is_other_language(text.lower().split(), language) == (own != language)


@pytest.mark.parametrize("text", ["", "Zyx Wvu", "7 8 : 9 !", "the", "der"])
def test_little_evidence_decides_nothing(text: str) -> None:
    assert not any(
        PROFILE.is_other_language(text.lower().split(), language) for language in ("de", "en", "fr")
    )


def test_unknown_language_and_a_single_language_decide_nothing() -> None:
    assert not PROFILE.is_other_language(["this", "is", "the", "rest"], "it")
    alone = learn_languages(SENTENCES, ["en"])
    assert not alone.is_other_language(["das", "ist", "die"], "en")


def test_a_few_sides_in_a_wrong_language_are_found_all_the_same() -> None:
    english = SENTENCES[0].text["en"]
    words = english.lower().split()
    wrong = AlignedSentence("page", {"de": english, "en": english, "fr": english})
    profile = learn_languages([*SENTENCES, wrong], ["de", "en", "fr"])
    assert profile.is_other_language(words, "de")
    assert not profile.is_other_language(words, "en")


def test_profile_of_a_corpus_is_of_all_its_sides(help_packages: Path, tmp_path: Path) -> None:
    data = DataConfig(downloads=str(tmp_path), packages=str(help_packages), pin=False)
    profile = languages_of(read_game_dialogue(data, ["de", "en", "fr"]))
    assert profile.is_other_language(["so", "why", "is", "it"], "de")
    assert not profile.is_other_language(["warum", "schwimmt", "es", "denn"], "de")
