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
        ("task.test_sets.MED.kind=files", r"^task\.test_sets\.MED\.path: must be set for kind fi"),
        ("task.test_sets.L-FR.language=null", r"^task\.test_sets\.L-FR\.language: must be set"),
        ("task.test_sets.MED.kind=spoken", r"MED\.librispeech_subset: must be set for kind spo"),
        ("task.test_sets.MED.kind=meetings", r"Choose one of held_out, permuted, typos"),
    ],
)
def test_settings_that_do_not_fit_a_kind_are_refused(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        composed_settings(override)


def test_sets_from_user_corpora_are_named_after_them() -> None:
    overrides = ["task=asr", "data.speech.ami=a", "data.speech.common_voice=c"]
    text = composed_settings("data.librispeech=l").task.test_sets
    speech = composed_settings(*overrides).task.test_sets
    assert text["LTO"].corpus == "LibriSpeech test-other, transcripts"
    assert [speech[role].corpus for role in ("AMI", "C-FR")] == ["AMI", "Common Voice, fr"]
