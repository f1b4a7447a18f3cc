from __future__ import annotations

from dataclasses import fields

import pytest
from hydra import compose, initialize_config_dir

from pipeline.errors import ConfigError
from pipeline.run.schema import TestSetConfig as SetConfig
from pipeline.run.settings import CONF, implementation, typed
from pipeline.run.test_set_kinds import KINDS_OF_TEST_SETS, KindOfTestSet

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
def test_settings_that_do_not_suit_a_kind_are_refused(override: str, message: str) -> None:
    with (
        initialize_config_dir(version_base="1.3", config_dir=str(CONF)),
        pytest.raises(ConfigError, match=message),
    ):
        typed(compose("pipeline", [override]))


def test_sets_made_of_the_users_corpora_are_named_after_them() -> None:
    overrides = ["task=asr", "data.speech.ami=a", "data.speech.common_voice=c"]
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        text = typed(compose("pipeline", ["data.librispeech=l"])).task.test_sets
        speech = typed(compose("pipeline", overrides)).task.test_sets
    assert text["LTO"].corpus == "LibriSpeech test-other, transcripts"
    assert [speech[role].corpus for role in ("AMI", "C-FR")] == ["AMI", "Common Voice, fr"]
