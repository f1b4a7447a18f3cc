"""A model family of one's own: a kind of ensemble that names its loader and its tokenizer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.ensembles import Ensemble, Member
from pipeline.run.files import file_sha256
from pipeline.run.settings import EnsembleConfig
from pipeline.store import open_store
from tests.stages.trained_members import decoded_store

LETTERS = "*abcdefghijklmnopqrstuvwxyz0123456789 "
EOS = 0


class Letters:
    """A tokenizer of letters, whose first token is EOS."""

    vocab_size, eos, control = len(LETTERS), EOS, [EOS]
    pieces: Sequence[str] = LETTERS.replace(" ", "▁")

    def source(self, sentence: Any) -> list[int]:
        return self.target_of_text(sentence.source)

    def target(self, sentence: Any) -> list[int] | None:
        return None if sentence.reference is None else self.target_of_text(sentence.reference)

    def target_of_text(self, text: str) -> list[int]:
        return [*map(LETTERS.index, text), EOS]

    def text(self, token_id: Sequence[int]) -> str:
        return "".join(LETTERS[token] for token in token_id if token != EOS)


class Bigrams:
    """A MemberModel in which each token depends on the previous one only, and which has no start.

    Its source is therefore a prompt, and limits are shared.
    """

    vocab_size, eos, pad, unk, start = len(LETTERS), EOS, None, None, ()
    max_source_tokens, max_target_tokens, max_shared_tokens = 100, 100, 30

    def __init__(self, weights: Path) -> None:
        seed = int(weights.read_text(encoding="utf-8"))
        shape = (self.vocab_size, self.vocab_size)
        self.logits = torch.randn(shape, generator=torch.Generator().manual_seed(seed))

    def suppressed(self, n_token: int) -> Sequence[int]:
        return ()

    def encode(self, source: Any) -> Any:
        last = (source >= 0).sum(dim=1) - 1
        return source.gather(1, last[:, None])

    def step(self, state: Any, prefix: Any) -> Any:
        return self.logits[torch.cat([state, prefix], dim=1)[:, -1]]

    def reorder(self, state: Any, row: Any, beam: int) -> Any:
        return state[row]

    def force(self, source: Any, prefix: Any, length: list[int]) -> Iterator[Any]:
        rows = torch.cat([self.encode(source), prefix], dim=1)
        for row, n_token in zip(rows, length, strict=True):
            yield self.logits[row[:n_token]]


def load(member: Member, tokenizer: Any, device: str, dtype: str) -> Bigrams:
    assert isinstance(tokenizer, Letters)
    return Bigrams(member.weights)


def load_letters(member: Member) -> Letters:
    return Letters()


def bigrams(train_folder: Path, ensemble: EnsembleConfig) -> list[Ensemble]:
    members = tuple(
        Member(
            Path(path).stem, Path(path), file_sha256(Path(path)), None,
            {"model": {}, "vocabulary_sha256": ""}, loader=f"{__name__}.load",
        )
        for path in ensemble.settings["files"]
    )  # fmt: skip
    return [Ensemble("bigrams", "bigrams", members, tokenizer=f"{__name__}.load_letters")]


@pytest.mark.parametrize("regime", ["prex", "teacher_forcing"])
def test_a_family_needs_a_loader_and_a_tokenizer_only(
    root: Path, tmp_path: Path, regime: str
) -> None:
    files = [tmp_path / f"{name}.txt" for name in ("first", "second")]
    for seed, path in enumerate(files):
        path.write_text(str(seed), encoding="utf-8")
    names = ",".join(f"'{path}'" for path in files)
    overrides = [
        "ensemble.seeds=[]", f"ensemble._target_={__name__}.bigrams",
        "ensemble.name=bigrams", f"+ensemble.settings.files=[{names}]", "decode.self_check=true",
    ]  # fmt: skip
    with open_store(decoded_store(root, f"bigrams.{regime}.help", *overrides)) as store:
        assert store.members == ["first", "second"]
        assert store.vocab_size == len(LETTERS)
        if regime == "teacher_forcing":
            assert list(store.read("/hypothesis/text")) == [f"w{index}" for index in range(5)]
