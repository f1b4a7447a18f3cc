from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra import compose, initialize_config_dir

from pipeline.config import CONF, PipelineConfig, typed
from pipeline.errors import ConfigError, DataError
from pipeline.fairseq_bridge.configuration import model_configuration
from pipeline.fairseq_bridge.models import build_model, load_dictionary
from pipeline.fairseq_bridge.weights import save_weights
from pipeline.parts import PartFolder, file_sha256, write_json
from pipeline.store import Flag, open_store, validate
from stages.decode import decode


def settings(root: Path, *overrides: str) -> PipelineConfig:
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        composed = compose(
            "pipeline",
            ["ensemble.seeds=[1,2]", "decode.beam=2", "decode.batch_sentences=4", *overrides],
        )
    composed.io.root = str(root)
    return typed(composed)


ALL_SETS = settings(Path()).task.test_sets
TEST_SETS = {role: ALL_SETS[role] for role in ("newstest14", "MED", "PRM", "L-DE", "L-DEDE")}
ABSENT = {str(role): "no data" for role in ALL_SETS if role not in TEST_SETS}
IN_DOMAIN = [role for role, one in TEST_SETS.items() if one.in_domain]
SEARCHED = [role for role, one in TEST_SETS.items() if "search" in one.regimes]
ONLY_SCORED = [role for role in TEST_SETS if role not in SEARCHED]


def prepare(folder: Path) -> None:
    (folder / "fairseq").mkdir(parents=True)
    (folder / "test").mkdir()
    for language in ("en", "de"):
        words = "".join(f"▁w{one} 1\n" for one in range(20))
        (folder / "fairseq" / f"dict.{language}.txt").write_text(words, encoding="utf-8")
    for role in TEST_SETS:
        with (folder / "test" / f"{role}.jsonl").open("w", encoding="utf-8") as file:
            for place in range(5):
                reference = f"w{place}" if role in IN_DOMAIN + ONLY_SCORED else None
                sentence = {
                    "id": place,
                    "source": f"source {place}",
                    "reference": reference,
                    "source_pieces": [f"▁w{place}"] * place,
                    "reference_pieces": None if reference is None else [f"▁w{place}"],
                }
                file.write(json.dumps(sentence) + "\n")
    write_manifest(folder)


def write_manifest(folder: Path) -> None:
    files = {
        path.relative_to(folder).as_posix(): file_sha256(path)
        for path in folder.rglob("*")
        if path.is_file()
    }
    write_json(folder / "manifest.json", {"absent_sets": ABSENT, "files": files})


def train(folder: Path, prepared: Path) -> None:
    path = prepared / "fairseq" / "dict.de.txt"
    dictionary = load_dictionary(path)
    side = {"embed_dim": 8, "ffn_embed_dim": 8, "layers": 1, "attention_heads": 2}
    configuration = model_configuration("transformer", {"encoder": side, "decoder": side})
    parts = PartFolder(folder, {f"seed_{seed}": f"digest {seed}" for seed in (1, 2)})
    for seed in (1, 2):
        torch.manual_seed(seed)
        model = build_model(configuration, dictionary, dictionary)
        with parts.building(f"seed_{seed}") as part:
            save_weights(model.state_dict(), part / "average.safetensors")
            write_json(
                part / "model.json",
                {
                    "model": configuration,
                    "seed": seed,
                    "vocabulary_sha256": file_sha256(path),
                    "weights": {"average.safetensors": file_sha256(part / "average.safetensors")},
                },
            )
    parts.write_manifest()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("out puts: 日本")
    prepare(root / "prepare" / "nmt_ende")
    train(root / "train" / "nmt_ende", root / "prepare" / "nmt_ende")
    return root


def made(root: Path, part: str, *overrides: str) -> Path:
    decode(settings(root, f"part={part}", *overrides))
    path = root / "decode" / "nmt_ende" / part / "store.h5"
    assert validate(path) == []
    return path


def test_the_store_of_an_ensemble_has_every_sentence_and_its_origin(root: Path) -> None:
    with open_store(made(root, "random_init.prex.newstest14")) as store:
        assert store.n_sentence == 5
        assert store.flag[0] == Flag.EMPTY_SOURCE | Flag.NO_HYPOTHESIS
        attributes = store.attributes
        assert attributes["members"] == ["seed_1", "seed_2"]
        assert (attributes["regime"], attributes["combination"]) == ("beam", "prex")
        assert attributes["ensemble"] == "random_init"
        assert attributes["signature"].startswith("task:nmt_ende|set:newstest14|")
        assert str(root) not in str(attributes)


def test_a_member_alone_is_an_ensemble_of_one(root: Path) -> None:
    with open_store(made(root, "seed_2.beam.newstest14")) as store:
        assert store.attributes["members"] == ["seed_2"]
        assert store.n_member == 1


def test_references_are_scored_by_teacher_forcing(root: Path) -> None:
    with open_store(made(root, "random_init.teacher_forcing.newstest14")) as store:
        assert store.attributes["regime"] == "teacher_forcing"
        assert "beam" not in store.attributes
        assert store.best_texts()[1:] == ["w1", "w2", "w3", "w4"]


@pytest.mark.parametrize("dump", ["full", "topk"])
def test_whole_distributions_are_kept_where_they_are_asked_for(root: Path, dump: str) -> None:
    with open_store(made(root, "random_init.prex.PRM", f"dump={dump}")) as store:
        assert store.dump == dump


def test_greedy_decoding_is_a_beam_of_one(root: Path) -> None:
    with open_store(
        made(root, "seed_1.greedy.newstest14", "decode=greedy", "decode.beam=1")
    ) as store:
        assert store.regime == "greedy"
        assert store.n_hypothesis == 4


def test_samples_say_how_they_were_drawn(root: Path) -> None:
    part = "random_init.member.newstest14"
    given = ["decode=sample", "decode.combination=member", "decode.beam=3", "seed=5"]
    with open_store(made(root, part, *given)) as store:
        attributes = store.attributes
        assert (attributes["regime"], attributes["combination"]) == ("sample", "member")
        assert (attributes["sampling_temperature"], attributes["seed"]) == (1.0, 5)
        assert "sampling_top_k" not in attributes
        assert store.read("/hypothesis/member").tolist() == [0, 0, 0, 1, 1, 1] * 4
    with open_store(made(root, "random_init.prex.newstest14")) as store:
        assert not {"seed", "sampling_temperature", "sampling_top_p"} & set(store.attributes)


def test_one_member_may_search_for_all_and_another_store_may_give_hypotheses(root: Path) -> None:
    part = "random_init.expr.newstest14"
    given = ["decode.search_members=[seed_2]", "decode.self_check=true"]
    with open_store(made(root, part, *given)) as store:
        assert store.attributes["search_members"] == ["seed_2"]
        assert store.attributes["members"] == ["seed_1", "seed_2"]
        texts = store.best_texts()
    for role in SEARCHED:  # all sets have the same sources here
        other = root / "other" / f"{role}.h5"
        other.parent.mkdir(exist_ok=True)
        shutil.copy(root / "decode" / "nmt_ende" / part / "store.h5", other)
    pattern = str(other.parent / "{test_set}.h5")
    with open_store(made(root, part, f"decode.hypotheses='{pattern}'")) as store:
        assert store.attributes["search_members"] == ["seed_2"]
        assert store.best_texts() == texts
        assert str(root) not in str(store.attributes)
    with pytest.raises(
        ConfigError, match=r"decode\.hypotheses must name a decode store, got .*a\.h5"
    ):
        decode(settings(root, f"part={part}", "decode.hypotheses=a.h5"))


def test_the_same_part_twice_is_the_same_bytes(root: Path) -> None:
    first = made(root, "random_init.expr.newstest14").read_bytes()
    assert made(root, "random_init.expr.newstest14").read_bytes() == first


def test_all_parts_are_planned_and_strangers_go(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def run_parts(config: PipelineConfig, folder: PartFolder) -> list[str]:
        missing = folder.missing()
        asked.append(missing)
        if len(asked) < 3:
            for name in missing:
                made(root, name)
            folder.write_manifest()
        return missing

    monkeypatch.setattr("stages.decode.run_parts", run_parts)
    decode(settings(root))
    folder = root / "decode" / "nmt_ende"
    parts = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert set(parts) == {
        *(f"random_init.{kind}.{role}" for kind in ("prex", "expr") for role in SEARCHED),
        *(f"random_init.teacher_forcing.{role}" for role in IN_DOMAIN + ONLY_SCORED),
        *(f"{member}.beam.{role}" for member in ("seed_1", "seed_2") for role in IN_DOMAIN),
    }
    ensemble = json.loads((folder / "ensemble.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in ensemble["members"]] == ["seed_1", "seed_2"]
    decode(settings(root))
    assert asked[-1] == []
    decode(settings(root, "decode.beam=3"))
    assert set(asked[-1]) == {one for one in parts if "teacher_forcing" not in one}


def test_a_part_that_is_not_planned_is_refused_with_the_names(root: Path) -> None:
    with pytest.raises(ConfigError, match=r"part must be one of .*random_init.prex.PRM.* got x"):
        decode(settings(root, "part=x"))


def test_another_vocabulary_than_in_training_is_refused(root: Path, tmp_path: Path) -> None:
    prepare(tmp_path / "prepare" / "nmt_ende")
    train(tmp_path / "train" / "nmt_ende", tmp_path / "prepare" / "nmt_ende")
    path = tmp_path / "prepare" / "nmt_ende" / "fairseq" / "dict.de.txt"
    path.write_text("▁other 1\n", encoding="utf-8")
    write_manifest(tmp_path / "prepare" / "nmt_ende")
    with pytest.raises(DataError, match=r"dict\.de\.txt must be the vocabulary that member seed_1"):
        decode(settings(tmp_path))


def test_a_test_set_that_lost_rows_is_refused(tmp_path: Path) -> None:
    prepare(tmp_path / "prepare" / "nmt_ende")
    train(tmp_path / "train" / "nmt_ende", tmp_path / "prepare" / "nmt_ende")
    path = tmp_path / "prepare" / "nmt_ende" / "test" / "PRM.jsonl"
    path.write_text("".join(path.read_text(encoding="utf-8").splitlines(True)[:2]), "utf-8")
    with pytest.raises(DataError, match=r"PRM\.jsonl must have the sha256 that stage prepare"):
        decode(settings(tmp_path))


def test_what_is_missing_is_named_with_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"run python -m stages\.train first"):
        decode(settings(tmp_path))
