"""Settings of ensembles are composed from conf/ and checked."""

from __future__ import annotations

import pytest
import yaml

from pipeline.ensembles.kinds import KINDS
from pipeline.errors import ConfigError
from pipeline.run.settings import CONF, MainEnsembleConfig, plain
from tests.composed_settings import composed_settings


def ensemble(*overrides: str, experiment: str = "laptop") -> MainEnsembleConfig:
    return composed_settings(f"experiment={experiment}", *overrides).ensemble


@pytest.mark.parametrize("kind", ["checkpoint", "checkpoint_average", "mc_dropout"])
def test_a_further_ensemble_follows_the_seeds_of_the_main_one(kind: str) -> None:
    settings = ensemble(
        f"+ensemble@ensemble.also.{kind}={kind}", "ensemble.seeds=[7,8]", "ensemble=random_init"
    )
    assert plain(settings.also[kind].seeds) == [7, 8]
    assert settings.also[kind].name == kind


def test_a_further_ensemble_of_the_same_kind_needs_its_own_name() -> None:
    given = ["+ensemble@ensemble.also.pairs=checkpoint", "ensemble.also.pairs.settings.members=2"]
    with pytest.raises(ConfigError, match=r"ensemble\.also\.pairs: its key must be its name"):
        ensemble(*given[:1])
    settings = ensemble(*given, "ensemble.also.pairs.name=pairs")
    assert settings.also["pairs"].settings["members"] == 2


def test_rules_hold_for_further_ensembles_too() -> None:
    with pytest.raises(ConfigError, match=r"ensemble\.also\.checkpoint\.seeds: must be whole"):
        ensemble(
            "+ensemble@ensemble.also.checkpoint=checkpoint", "+ensemble.also.checkpoint.seeds=[-1]"
        )


@pytest.mark.parametrize(
    "where", ["ensemble=checkpoint", "+ensemble@ensemble.also.checkpoint=checkpoint"]
)
def test_a_checkpoint_ensemble_needs_checkpoints_that_are_kept(where: str) -> None:
    key = "ensemble.also.checkpoint" if where.startswith("+") else "ensemble"
    with pytest.raises(ConfigError, match=r"train\.keep_checkpoints: must be at least 30 .*got 5"):
        ensemble(
            where,
            f"{key}.settings.members=6",
            f"{key}.settings.average=5",
            f"{key}.settings.every=5",
        )


def test_a_setting_that_the_kind_lacks_is_refused_when_settings_are_composed() -> None:
    words = r"settings\.sizes: no such setting.* settings of ensemble checkpoint has average, every"
    with pytest.raises(ConfigError, match=words):
        ensemble("ensemble=checkpoint", "+ensemble.settings.sizes=3")


def test_one_model_without_brackets_gets_them_as_advice() -> None:
    settings = ensemble(
        "ensemble=huggingface", "ensemble.seeds=[]", "ensemble.settings.models=marian/a"
    )
    with pytest.raises(ConfigError, match=r"\(got marian/a\)\. Write \[marian/a\]\."):
        KINDS["huggingface"].planned(settings, composed_settings("experiment=laptop").train)


def test_imported_models_need_no_seeds() -> None:
    assert plain(ensemble("ensemble=imported", experiment="demo").seeds) == []
    with pytest.raises(
        ConfigError, match=r"ensemble\.seeds: must have a seed for ensemble random_init"
    ):
        ensemble("ensemble.seeds=[]")


def test_seeds_must_be_distinct() -> None:
    with pytest.raises(ConfigError, match=r"ensemble\.seeds: must be distinct \(got \[1, 1\]\)"):
        ensemble("ensemble.seeds=[1,1]")


def test_every_option_of_the_group_names_a_registered_kind() -> None:
    for path in (CONF / "ensemble").glob("*.yaml"):
        target = yaml.safe_load(path.read_text(encoding="utf-8"))["_target_"]
        assert target == f"pipeline.ensembles.kinds.{path.stem}"
        assert path.stem in KINDS
