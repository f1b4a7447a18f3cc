from __future__ import annotations

from dataclasses import fields

import pytest

from pipeline.errors import ConfigError
from pipeline.run.schema import TestSetConfig as SetConfig
from pipeline.run.settings import implementation
from pipeline.run.test_set_kinds import KINDS_OF_TEST_SETS, KindOfTestSet
from tests.composed_settings import composed_settings

SETTINGS = {field.name for field in fields(SetConfig)}


@pytest.mark.parametrize("kind", KINDS_OF_TEST_SETS.values(), ids=lambda kind: kind.name)
def test_functions_of_a_kind_can_be_imported_and_its_settings_exist(kind: KindOfTestSet) -> None:
    functions = [name for name in (kind.corpus, kind.rows) if name is not None]
    assert functions
    for name in functions:
        assert callable(implementation(name, kind.name))
    assert {*kind.needs} <= SETTINGS


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "task.test_sets.debian-reference.kind=files",
            r"^task\.test_sets\.debian-reference\.path: must be set for kind fi",
        ),
        (
            "task.test_sets.french-source.language=null",
            r"^task\.test_sets\.french-source\.language: must be set",
        ),
        (
            "task.test_sets.debian-reference.kind=spoken",
            r"debian-reference\.librispeech_subset: must be set for kind spo",
        ),
        (
            "task.test_sets.debian-reference.kind=meetings",
            r"Choose one of held_out, permuted, typos",
        ),
    ],
)
def test_settings_that_do_not_fit_a_kind_are_refused(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        composed_settings(override)


def test_sets_from_user_corpora_are_named_after_them() -> None:
    text = composed_settings(
        *("data.source=files", "data.train=t", "data.corpus='My Text (2)'"),
        *("data.librispeech=l", "data.khresmoi=k"),
    ).task.test_sets
    assert list(text)[:5] == [
        *("my-text-2", "khresmoi", "librispeech-test-clean", "librispeech-test-other", "permuted")
    ]
    assert text["my-text-2"].roles == ["newstest14", "nwt14"]
    assert text["librispeech-test-clean"].corpus == "LibriSpeech test-clean, transcripts"
    speech = composed_settings(
        *("task=asr", "data.speech.train=[t]", "data.speech.corpus=LibriSpeech"),
        *("data.speech.ami=a", "data.speech.common_voice=c"),
    ).task.test_sets
    assert {name: (test_set.corpus, test_set.roles) for name, test_set in speech.items()} == {
        "librispeech": ("LibriSpeech, test", ["LTC"]),
        "librispeech-other": ("LibriSpeech, other", ["LTO"]),
        "ami": ("AMI", ["AMI"]),
        "common-voice-fr": ("Common Voice, fr", ["C-FR"]),
        "english-prompts": ("Asterisk telephone prompts, English (real speech)", []),
    }


def test_names_of_the_demo_are_kept_and_a_name_of_the_user_is_never_changed() -> None:
    assert {"help", "debian-reference", "fish-fillets", "permuted"} <= {
        *composed_settings().task.test_sets
    }
    added = "+task.test_sets.news={kind: held_out, corpus: News, language: null}"
    text = composed_settings(
        "data.source=files", "data.train=t", "data.corpus=Mine", added
    ).task.test_sets
    assert {"mine", "news"} <= {*text}


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["+task.test_sets.typos.roles=[LTC]"], r"test_sets\.typos: LTC is a name or role of fish"),
        (["+task.test_sets.PRM={kind: typos, corpus: x}"], r"PRM is a name or role of permuted"),
        (
            ["+task.test_sets={a/b: {kind: typos, corpus: x}}"],
            r"test_sets\.a/b: a name must consist of .* \(got 'a/b'\)\. Rename the test set",
        ),
        (
            ["data.source=files", "data.train=t", "data.corpus=Typos"],
            r"test_sets\.typos: two test sets would have this name",
        ),
    ],
)
def test_a_name_or_role_belongs_to_one_test_set(overrides: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        composed_settings(*overrides)
