"""Greedy decoding of the dev set, compared with fairseq's generator, and its quality."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.corpus.binarised import write_dictionaries, write_split
from pipeline.fairseq_bridge.models.configuration import build_model, model_configuration
from pipeline.fairseq_bridge.training.learning_curve import greedy_dev_texts
from pipeline.fairseq_bridge.training.settings import FAMILIES
from pipeline.quality.speech import corpus_wer_percent
from pipeline.quality.translation import corpus_bleu

N_SENTENCE = 70
SIDE = {"embed_dim": 16, "ffn_embed_dim": 16, "layers": 1, "attention_heads": 2}


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The parts of fairseq's Trainer that the function uses, with a model of random weights."""
    folder = tmp_path_factory.mktemp("data")
    chooser = random.Random(0)
    subwords = ["▁a", "b", "▁c", "d", "▁e"]
    write_dictionaries(folder, ("en", "de"), dict.fromkeys(subwords, 1))
    sides = [
        [["▁a", *chooser.choices(subwords, k=chooser.randint(1, 6))] for _ in range(N_SENTENCE)]
        for _ in range(2)
    ]
    write_split(folder, "valid", ("en", "de"), (sides[0], sides[1]))
    translation = import_fairseq("fairseq.tasks.translation")
    config = translation.TranslationConfig(
        data=str(folder),
        source_lang="en",
        target_lang="de",
        dataset_impl="mmap",
        required_seq_len_multiple=1,
    )
    task = translation.TranslationTask.setup_task(config)
    task.load_dataset("valid")
    torch.manual_seed(4)
    model = build_model(
        model_configuration("transformer", {"encoder": SIDE, "decoder": SIDE}),
        task.source_dictionary,
        task.target_dictionary,
    )
    return SimpleNamespace(
        task=task, get_model=lambda: model, _prepare_sample=lambda sample: (sample, False)
    )


def test_greedy_search_equals_that_of_fairseq_with_a_beam_of_one(trainer: Any) -> None:
    hypotheses, references = greedy_dev_texts(trainer, 1000)
    dataset, dictionary = trainer.task.dataset("valid"), trainer.task.target_dictionary
    assert len(hypotheses) == len(references) == N_SENTENCE
    longest = 2 * max(map(len, (dataset[place]["target"] for place in range(64)))) + 10
    generator = import_fairseq("fairseq.sequence_generator").SequenceGenerator(
        [trainer.get_model()],
        dictionary,
        beam_size=1,
        min_len=0,
        max_len_a=0,
        max_len_b=longest + 5,
    )
    sample = dataset.collater([dataset[place] for place in range(64)])
    expected = [
        dictionary.string(best[0]["tokens"], "sentencepiece")
        for best in generator.generate([], sample)
    ]
    pairs = list(zip(hypotheses, expected, strict=False))
    assert all(longer.startswith(hypothesis) for hypothesis, longer in pairs)
    n_finished = sum(hypothesis == longer for hypothesis, longer in pairs)
    assert 0 < n_finished < 64, "some hypotheses finish, some are cut"


def test_only_the_first_sentences_are_decoded(trainer: Any) -> None:
    some, all_of_them = greedy_dev_texts(trainer, 5), greedy_dev_texts(trainer, 1000)
    dataset, dictionary = trainer.task.dataset("valid"), trainer.task.target_dictionary
    expected = {dictionary.string(dataset[place]["target"], "sentencepiece") for place in range(5)}
    assert set(some[1]) == expected
    assert set(some[1]) <= set(all_of_them[1])


@pytest.mark.parametrize(
    ("family", "quality"), [("translation", corpus_bleu), ("speech", corpus_wer_percent)]
)
def test_quality_equals_that_of_stage_metrics(family: str, quality: Any) -> None:
    hypotheses = ["a lamp in the red hall of", "open the door to the garden", ""]
    references = ["the lamp in the red hall", "open the door to the garden", "one two"]
    assert FAMILIES[family].quality(hypotheses, references, "de") == pytest.approx(
        quality(hypotheses, references)
    )
