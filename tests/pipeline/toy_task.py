"""A toy task with stores and measures of every kind, written in a second."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pipeline.metrics.decodes import read_decodes
from pipeline.metrics.evaluation import Evaluation
from pipeline.quality.registry import QUALITIES
from pipeline.report.figures import TaskEvidence
from pipeline.run.measure_rules import MeasureRules
from pipeline.run.settings import TaskConfig, TestSetConfig
from pipeline.store import Hypothesis, StoreWriter, open_own_store
from pipeline.uncertainty.offline import write_measures
from pipeline.uncertainty.sequence import Grid
from pipeline.uncertainty.token import token_statistics

MEMBERS = ("seed_1", "seed_2", "seed_3")
N_SENTENCE, N_VOCAB, EOS = 12, 9, 2
_WORDS = ("", "", "", "eins", "zwei", "drei", "vier", "fünf", "sechs")
_TEST_SETS = {"help": True, "debian-reference": True, "french-source": False}


class Toy:
    """A task with two in-domain sets and one OOD set, decoded by members that differ a little."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.decode, self.uncertainty = root / "decode", root / "uncertainty"
        self._random = np.random.default_rng(1)
        self.references = {
            name: [self._tokens(3 + sentence % 3) for sentence in range(N_SENTENCE)]
            for name in _TEST_SETS
        }

    def write(self) -> None:
        for test_set, in_domain in _TEST_SETS.items():
            for combination in ("prex", "expr"):
                part = f"random_init.{combination}.{test_set}"
                self._search(part, test_set, "random_init", combination, MEMBERS)
                self._measure(part)
            if in_domain:
                self._force(f"random_init.teacher_forcing.{test_set}", test_set)
                for member in MEMBERS:
                    self._search(f"{member}.beam.{test_set}", test_set, member, "prex", (member,))
        pair = MEMBERS[:2]
        self._search("subset.1.prex.help", "help", "subset", "prex", pair)

    def evidence(self) -> TaskEvidence:
        sets = {
            name: TestSetConfig(kind="held_out", corpus=f"corpus of {name}", in_domain=in_domain)
            for name, in_domain in _TEST_SETS.items()
        }
        task = TaskConfig(name="nmt_ende", family="translation", test_sets=sets)
        parts = sorted(path.name for path in self.decode.iterdir())
        return TaskEvidence(
            "nmt_ende",
            read_decodes(self.decode, parts, task),
            self.uncertainty,
            "help",
            Evaluation(QUALITIES["bleu"], resamples=20, seed=0, measures_signature=""),
            rules=MeasureRules(),
        )

    def _tokens(self, n_word: int) -> list[int]:
        return [*self._random.integers(3, N_VOCAB, n_word).tolist(), EOS]

    def _search(
        self, part: str, test_set: str, ensemble: str, combination: str, members: tuple[str, ...]
    ) -> None:
        with self._writer(part, test_set, ensemble, "beam", combination, members) as store:
            for sentence, reference in enumerate(self.references[test_set]):
                hypotheses: list[Hypothesis] = []
                for rank in range(3):
                    words = [self._slip(token, sentence) for token in reference[:-1]]
                    if rank:  # hypotheses of a search are distinct: the last words differ
                        of_best = int(hypotheses[0].token_id[-2])
                        words[-1] = 3 + (of_best - 3 + rank) % (N_VOCAB - 3)
                    hypotheses.append(self._hypothesis([*words, EOS], len(members), -float(rank)))
                store.add_sentence(sentence, "source", _text(reference), hypotheses)

    def _force(self, part: str, test_set: str) -> None:
        with self._writer(
            part, test_set, "random_init", "teacher_forcing", "prex", MEMBERS
        ) as store:
            for sentence, reference in enumerate(self.references[test_set]):
                hypothesis = self._hypothesis(reference, len(MEMBERS), 0.0)
                store.add_sentence(sentence, "source", _text(reference), [hypothesis])

    def _slip(self, token: int, sentence: int) -> int:
        """Return a wrong token more often in later sentences."""
        wrong = self._random.random() < sentence / N_SENTENCE
        return int(self._random.integers(3, N_VOCAB)) if wrong else token

    def _hypothesis(self, tokens: list[int], n_member: int, score: float) -> Hypothesis:
        logit = self._random.normal(size=(len(tokens), n_member, N_VOCAB))
        logit[np.arange(len(tokens)), :, tokens] += 2
        logprob = logit - np.log(np.exp(logit).sum(axis=2, keepdims=True))
        token = np.array(tokens)
        statistics = token_statistics(logprob, token)
        return Hypothesis(token, _text(tokens), score, True, statistics)

    def _writer(
        self,
        part: str,
        test_set: str,
        ensemble: str,
        regime: str,
        combination: str,
        members: tuple[str, ...],
    ) -> StoreWriter:
        (self.decode / part).mkdir(parents=True)
        return StoreWriter(
            self.decode / part / "store.h5",
            task="nmt_ende",
            test_set=test_set,
            ensemble=ensemble,
            regime=regime,
            combination=combination,
            n_member=len(members),
            members=list(members),
            vocab_size=N_VOCAB,
            beam=3,
            length_penalty=1.0,
            signature=f"part:{part}",
        )

    def _measure(self, part: str) -> None:
        (self.uncertainty / part).mkdir(parents=True)
        with open_own_store(self.decode / part / "store.h5") as store:
            grid = Grid(beam=[1, 3], temperature=[10.0], length_norm=[True])
            write_measures(store, self.uncertainty / part, grid)


def _text(tokens: list[int]) -> str:
    return " ".join(_WORDS[token] for token in tokens[:-1])
