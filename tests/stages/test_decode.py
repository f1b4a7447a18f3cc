from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from sentencepiece import SentencePieceTrainer

from pipeline.errors import ConfigError, DataError
from pipeline.store import Flag, open_store
from stages.decode import decode
from tests.stages.trained_members import (
    SEARCHED,
    decoded_store,
    prepare_and_train,
    settings,
    write_manifest,
)


def test_case_17_store_below_any_path_has_all_sentences_and_attributes(root: Path) -> None:
    with open_store(decoded_store(root, "random_init.prex.help")) as store:
        assert store.n_sentence == 5
        assert store.flag[0] == Flag.EMPTY_SOURCE | Flag.NO_HYPOTHESIS
        attributes = store.attributes
        assert attributes["members"] == ["seed_1", "seed_2"]
        assert (attributes["regime"], attributes["combination"]) == ("beam", "prex")
        assert attributes["ensemble"] == "random_init"
        assert attributes["signature"].startswith("task:nmt_ende|set:help|")
        assert str(root) not in str(attributes)


def test_single_member_is_an_ensemble_of_one(root: Path) -> None:
    with open_store(decoded_store(root, "seed_2.beam.help")) as store:
        assert store.attributes["members"] == ["seed_2"]
        assert store.n_member == 1


def test_references_are_scored_by_teacher_forcing(root: Path) -> None:
    with open_store(decoded_store(root, "random_init.teacher_forcing.help")) as store:
        assert store.attributes["regime"] == "teacher_forcing"
        assert "beam" not in store.attributes
        assert store.best_texts()[1:] == ["w1", "w2", "w3", "w4"]


@pytest.mark.parametrize("dump", ["full", "topk"])
def test_requested_distributions_are_stored(root: Path, dump: str) -> None:
    with open_store(decoded_store(root, "random_init.prex.permuted", f"dump={dump}")) as store:
        assert store.dump == dump


def test_greedy_search_has_one_hypothesis_per_sentence(root: Path) -> None:
    with open_store(
        decoded_store(root, "seed_1.greedy.help", "decode=greedy", "decode.beam=1")
    ) as store:
        assert store.regime == "greedy"
        assert store.n_hypothesis == 4


def test_stores_of_samples_record_the_sampling_settings(root: Path) -> None:
    part = "random_init.member.help"
    overrides = ["decode=sample", "decode.combination=member", "decode.beam=3", "seed=5"]
    with open_store(decoded_store(root, part, *overrides)) as store:
        attributes = store.attributes
        assert (attributes["regime"], attributes["combination"]) == ("sample", "member")
        assert (attributes["sampling_temperature"], attributes["seed"]) == (1.0, 5)
        assert "sampling_top_k" not in attributes
        assert store.read("/hypothesis/member").tolist() == [0, 0, 0, 1, 1, 1] * 4
    with open_store(decoded_store(root, "random_init.prex.help")) as store:
        assert not {"seed", "sampling_temperature", "sampling_top_p"} & set(store.attributes)


def test_hypotheses_of_one_member_or_another_store_are_rescored(root: Path) -> None:
    part = "random_init.expr.help"
    overrides = ["decode.search_members=[seed_2]", "decode.self_check=true"]
    with open_store(decoded_store(root, part, *overrides)) as store:
        assert store.attributes["search_members"] == ["seed_2"]
        assert store.attributes["members"] == ["seed_1", "seed_2"]
        texts = store.best_texts()
    for role in SEARCHED:  # all test sets have the same sources
        given = root / "given" / f"{role}.h5"
        given.parent.mkdir(exist_ok=True)
        shutil.copy(root / "decode" / "nmt_ende" / part / "store.h5", given)
    pattern = str(given.parent / "{test_set}.h5")
    with open_store(decoded_store(root, part, f"decode.hypotheses='{pattern}'")) as store:
        assert store.attributes["search_members"] == ["seed_2"]
        assert store.best_texts() == texts
        assert str(root) not in str(store.attributes)
    with pytest.raises(ConfigError, match=r"decode\.hypotheses: no such file \(a\.h5\)"):
        decode(settings(root, f"part={part}", "decode.hypotheses=a.h5"))


def test_hypotheses_of_a_text_file_are_scored(root: Path) -> None:
    prepared = root / "prepare" / "nmt_ende"
    with (prepared / "units.model").open("wb") as file:
        words = iter([f"w{index}" for index in range(10)])
        SentencePieceTrainer.train(
            sentence_iterator=words, model_writer=file, model_type="word", vocab_size=13,
            minloglevel=2,
        )  # fmt: skip
    write_manifest(prepared)
    for role in SEARCHED:
        # More words than the length limit of a search, and a word outside the vocabulary.
        text = f"w1\n\nw3 w3\nw4 ü\n{'w5 ' * 40}\n"
        (root / f"{role}.txt").write_text(text, encoding="utf-8")
    overrides = ["decode.self_check=true", f"decode.hypotheses='{root}/{{test_set}}.txt'"]
    with open_store(decoded_store(root, "random_init.prex.help", *overrides)) as store:
        empty = Flag.NO_HYPOTHESIS
        assert store.flag.tolist() == [Flag.EMPTY_SOURCE | empty, empty, 0, 0, 0]
        assert store.best_texts()[1:] == [None, "w3 w3", "w4<unk>", " ".join(["w5"] * 40)]
        assert store.attributes["search_members"] == []
        assert store.attributes["members"] == ["seed_1", "seed_2"]
        assert set(store.read("/hypothesis/finished")) == {1}
    (root / "debian-reference.txt").write_text("w1\n", encoding="utf-8")
    with pytest.raises(
        DataError, match=r"debian-reference\.txt: must have one line for each of the 5"
    ):
        decode(settings(root, "part=random_init.prex.debian-reference", *overrides))


def test_decoding_a_part_again_gives_the_same_bytes(root: Path) -> None:
    first = decoded_store(root, "random_init.expr.help").read_bytes()
    assert decoded_store(root, "random_init.expr.help").read_bytes() == first


SHARDED = ["decode.part_sentences=2", "decode.batch_sentences=1"]


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize(
    "part", ["random_init.expr.debian-reference", "random_init.teacher_forcing.debian-reference"]
)
def test_shards_are_joined_without_loading_a_model(
    root: Path, monkeypatch: pytest.MonkeyPatch, count: int, part: str
) -> None:
    unsharded = decoded_store(root, part, *SHARDED).read_bytes()
    assert decoded_store(root, part).read_bytes() != unsharded  # the setting is in the attributes
    for number in range(count, 0, -1):
        decode(settings(root, f"part={part}@{number}of{count}", *SHARDED))
    with monkeypatch.context() as patch:
        patch.delattr("pipeline.decoding.part.decoder_of")
        assert (
            decoded_store(root, part, f"decode.shards={count}", *SHARDED).read_bytes() == unsharded
        )


def test_missing_shard_is_decoded_with_the_part(root: Path) -> None:
    part = "random_init.prex.debian-reference"
    unsharded = decoded_store(root, part, *SHARDED).read_bytes()
    decode(settings(root, f"part={part}@2of3", *SHARDED))
    (blocks,) = (root / "resume" / "decode" / "nmt_ende" / part).iterdir()
    assert [path.name for path in blocks.iterdir()] == ["block_000001.h5"]
    assert decoded_store(root, part, *SHARDED).read_bytes() == unsharded


def test_unknown_part_is_refused_and_the_parts_are_named(root: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"part: no such part \(x\)\. .*random_init\.prex\.permuted"
    ):
        decode(settings(root, "part=x"))


def test_vocabulary_that_differs_from_training_is_refused(root: Path, tmp_path: Path) -> None:
    prepare_and_train(tmp_path)
    path = tmp_path / "prepare" / "nmt_ende" / "fairseq" / "dict.de.txt"
    path.write_text("▁other 1\n", encoding="utf-8")
    write_manifest(tmp_path / "prepare" / "nmt_ende")
    with pytest.raises(DataError, match=r"dict\.de\.txt: not the vocabulary that member seed_1"):
        decode(settings(tmp_path))


def test_test_set_with_missing_rows_is_refused(tmp_path: Path) -> None:
    prepare_and_train(tmp_path)
    path = tmp_path / "prepare" / "nmt_ende" / "test" / "permuted.jsonl"
    path.write_text("".join(path.read_text(encoding="utf-8").splitlines(True)[:2]), "utf-8")
    with pytest.raises(DataError, match=r"permuted\.jsonl: changed since stage prepare wrote it"):
        decode(settings(tmp_path))


def test_missing_inputs_name_the_stage_to_run(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"Run python -m stages\.train first"):
        decode(settings(tmp_path))
