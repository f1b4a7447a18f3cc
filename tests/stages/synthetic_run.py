"""Synthetic outputs of stages decode and uncertainty, for the tests of later stages."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipeline.metrics.evaluation import read_replicates
from pipeline.run.artifacts import PartFolder
from pipeline.run.settings import PipelineConfig
from pipeline.store import Hypothesis, StoreWriter, TokenStatistics
from stages.metrics import metrics
from tests.artifacts import made_by
from tests.composed_settings import composed_settings

WORDS = ["a", "b", "c", "d", "e"]
N = 12
SEEDS = ["seed_1", "seed_2"]
FORCED = "random_init.teacher_forcing.help"


def settings(root: Path, *overrides: str) -> PipelineConfig:
    # Other tests draw the figures.
    fixed = [f"io.root='{root}'", "metrics.resamples=50", "tracking=off", "~report.figures"]
    return composed_settings(*fixed, *overrides)


class SyntheticRun:
    """Output folders of stages decode and uncertainty with random texts and numbers.

    `stores` lists the parts to write: name, root attributes, and whether there are references.
    """

    def __init__(self, root: Path, task: str = "nmt_ende") -> None:
        self.root = root
        self.task = task
        self.random = np.random.default_rng(0)
        self.references = [self._text() for _ in range(N)]
        self.texts: dict[str, list[str | None]] = {}
        self.logprob: list[np.ndarray] = []
        self.sources = ["source"] * N
        self.stores: list[tuple[str, dict[str, Any], bool]] = [
            *(
                (f"random_init.prex.{name}", {"test_set": name}, name == "help")
                for name in ("help", "permuted", "french-source", "german-source")
            ),
            ("random_init.expr.help", {"combination": "expr"}, True),
            *((f"{s}.beam.help", {"ensemble": s, "members": [s]}, True) for s in SEEDS),
            (FORCED, {"regime": "teacher_forcing"}, True),
        ]

    def write(self) -> None:
        folder = PartFolder(
            self.root / "decode" / self.task,
            "decode",
            {part: made_by("decode", part) for part, _, _ in self.stores},
        )
        for part, attributes, with_references in self.stores:
            with folder.building(part) as path:
                self._store(path / "store.h5", part, attributes, with_references)
            self.write_measures(part)
        folder.write_manifest()

    def write_measures(self, part: str, **columns: object) -> pd.DataFrame:
        rows = [
            pd.DataFrame(
                {
                    "sentence_id": np.arange(N),
                    "beam": beam,
                    "temperature": 10.0,
                    "length_norm": True,
                    "flag": np.zeros(N, dtype=np.uint8),
                    "prex_entropy_s": self.random.random(N),
                    "prex_rmi_s": np.zeros(N),
                    "xbleu": np.full(N, np.nan),
                    "var_p": np.zeros(N),
                    "ln_var_p": self.random.random(N),
                    **columns,
                }
            )
            for beam in (1, 5)
        ]
        frame = pd.concat(rows, ignore_index=True)
        path = self.root / "uncertainty" / self.task / part
        path.mkdir(parents=True, exist_ok=True)
        frame.to_parquet(path / "sequence.parquet")
        self._token_measures(part).to_parquet(path / "token.parquet")
        null = {"xbleu": "needs the decodes of at least two single members, got 0"}
        (path / "checks.json").write_text(json.dumps({"null": null}))
        return frame

    def _token_measures(self, part: str) -> pd.DataFrame:
        """Return random measures of the tokens of the store: one token per word, and EOS."""
        lengths = [0 if text is None else len(text.split()) + 1 for text in self.texts[part]]
        n_token = sum(lengths)
        return pd.DataFrame(
            {
                "sentence_id": np.repeat(np.arange(N), lengths),
                "hypothesis": np.zeros(n_token, dtype=np.int32),
                "token_id": np.zeros(n_token, dtype=np.int32),
                "prex_score": self.random.random(n_token),
                "expr_score": self.random.random(n_token),
            }
        )

    def replicates(
        self, test_set: str, ensemble: str, metric: str, column: str = ""
    ) -> dict[str, float]:
        """Return training runs -> value of one cell, decoded by PrEx if by an ensemble."""
        path = self.root / "metrics" / self.task / "replicates.csv"
        (values,) = (
            values
            for key, values in read_replicates([path]).items()
            if (key.test_set, key.ensemble, key.metric, key.column)
            == (test_set, ensemble, metric, column or metric)
            and key.hypotheses in ("-", "prex")
        )
        return values

    def cells(self, *overrides: str) -> dict[tuple[str, ...], dict[str, str]]:
        config = settings(self.root, f"task={self.task}", *overrides)
        metrics(config)
        path = self.root / "metrics" / self.task / "cells.csv"
        with path.open(encoding="utf-8", newline="") as file:
            names = ("test_set", "ensemble", "hypotheses", "B", "column", "metric")
            return {tuple(row[name] for name in names): row for row in csv.DictReader(file)}

    def _text(self) -> str:
        return " ".join(self.random.choice(WORDS, self.random.integers(1, 7)))

    def _store(self, path: Path, part: str, updates: dict[str, Any], with_references: bool) -> None:
        attributes = {
            "task": self.task,
            "test_set": "help",
            "ensemble": "random_init",
            "regime": "beam",
            "combination": "prex",
            "members": SEEDS,
            "vocab_size": 9,
            "signature": f"part:{part}",
        } | updates
        forced = attributes["regime"] == "teacher_forcing"
        self.texts[part] = [*self.references] if forced else [self._text() for _ in range(N)]
        with StoreWriter(path, **attributes) as store:
            for i in range(N):
                reference = self.references[i] if with_references else None
                text = self.texts[part][i]
                hypotheses = [] if text is None else [self._hypothesis(text, attributes)]
                if forced:
                    self.logprob.append(hypotheses[0].statistics.logprob)
                store.add_sentence(i, self.sources[i], reference, hypotheses)

    def _hypothesis(self, text: str, attributes: dict[str, Any]) -> Hypothesis:
        n_token, n_member = len(text.split()) + 1, len(attributes["members"])
        logprob = np.float32(-self.random.random((n_token, n_member)))
        zeros = [np.zeros(n_token)] * 5
        statistics = TokenStatistics(logprob, np.zeros((n_token, n_member)), *zeros)
        return Hypothesis(np.zeros(n_token, dtype=int), text, 0.0, True, statistics)
