from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.data.speech.sounds import writing_sounds
from pipeline.metrics.cell import Cell, absent_set_cell, write_cells
from pipeline.report.cells import read_cells
from pipeline.report.claims import Claim, Side, Verdict
from pipeline.report.page import PageContent, PageFigure, TaskFolders
from pipeline.report.table import Heading, Row, Table, TableCell
from pipeline.run.artifacts import PartFolder
from pipeline.store import Hypothesis, StoreWriter, open_own_store
from pipeline.uncertainty.offline import write_measures
from pipeline.uncertainty.sequence import Grid
from pipeline.uncertainty.token import token_statistics
from tests.artifacts import made_by

FORCED = "L-DEEN"  # scored by teacher forcing
RIGHT_TO_LEFT = "שלום"
LONG_WORD = "Donaudampfschifffahrt" * 20
SUBWORDS = ["▁Das", "▁Menü", "</script>", "▁<b>", "s", f"▁{RIGHT_TO_LEFT}", f"▁{LONG_WORD}"]
SPECIAL = 4
VOCAB_SIZE = SPECIAL + len(SUBWORDS)
EOS = 2
MEMBERS = ["seed_1", "seed_2", "seed_3"]
HOSTILE = [
    "</script><script>document.title = 'owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "<!-- <script> {{ 7 * 7 }} {% raw %} &lt;b&gt; \u202e gnp.exe",
    f"{RIGHT_TO_LEFT} </script> 12",
    f"\x01 \x7f \x85 \u2028 \ufffe \U0001f469\u200d\U0001f467 {LONG_WORD}",
]
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="600" height="60"><path d="M0 60L90 0"/></svg>'
WriteResults = Callable[..., PageContent]


@pytest.fixture(scope="session")
def write_results(tmp_path_factory: pytest.TempPathFactory) -> WriteResults:
    """Return a function that writes the results of a task and returns the content of its page."""

    def write(
        n_sentence: int = 60,
        test_sets: Sequence[str] = ("newstest14", "PRM"),
        most_sentences: int = 3000,
        *,
        is_speech: bool = False,
    ) -> PageContent:
        folder = tmp_path_factory.mktemp("outputs")
        parts = [f"random_init.prex.{name}" for name in test_sets]
        decode = PartFolder(
            folder / "decode",
            "decode",
            dict.fromkeys([*parts, "seed_1.beam.newstest14"], made_by("decode")),
        )
        for part in decode.parts:
            with decode.building(part) as out:
                _write_store(out / "store.h5", part, n_sentence)
        decode.write_manifest()
        for part in parts:
            (folder / "uncertainty" / part).mkdir(parents=True)
            with open_own_store(folder / "decode" / part / "store.h5") as store:
                grid = Grid([1, 2], [10.0], [True])
                write_measures(store, folder / "uncertainty" / part, grid)
        _write(folder / "dict.de.txt", "".join(f"{subword} 1\n" for subword in SUBWORDS))
        _write(folder / "card.md", f"# Card\n\n| Source |\n| --- |\n| {HOSTILE[1]} |\n")
        _write(folder / "figure.svg", SVG)
        task = TaskFolders(
            "nmt_ende",
            folder / "decode",
            folder / "uncertainty",
            folder / "card.md",
            folder / "dict.de.txt",
            _sounds(folder / "sounds.h5", test_sets[0], n_sentence) if is_speech else {},
        )
        cells = _cells(test_sets)
        if is_speech:
            cells = [replace(cell, family="speech") for cell in cells]
        write_cells(folder / "cells.csv", cells)
        return PageContent(
            tables=[_table(cells)],
            claims=[
                _verdict("holds", value=3.5, cells=cells[:2]),
                _verdict("undecided", reason="not run"),
            ],
            figures=[
                PageFigure("Rejection curve", "How error falls.", folder / "figure.svg"),
                PageFigure("Ablation", "", None, "there is one member"),
            ],
            tasks=[task],
            cells=read_cells([folder / "cells.csv"]),
            most_sentences=most_sentences,
        )

    return write


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _sounds(path: Path, test_set: str, n_sentence: int) -> dict[str, Path]:
    """The sounds of one test set, of which those of every second sentence are empty."""
    random = np.random.default_rng(0)
    with writing_sounds(path, 8000) as add:
        for sentence in range(n_sentence):
            n_sample = 4000 if sentence % 2 else 0
            add(random.uniform(-0.1, 0.1, n_sample).astype(np.float32))
    return {test_set: path}


def _write_store(path: Path, part: str, n_sentence: int) -> None:
    ensemble, search, test_set = part.split(".")
    single = search == "beam"
    random = np.random.default_rng(len(test_set))
    with StoreWriter(
        path,
        task="nmt_ende",
        test_set=test_set,
        ensemble=ensemble,
        regime="teacher_forcing" if test_set == FORCED else "beam",
        combination="prex",
        beam=2,
        length_penalty=1.0,
        members=[ensemble] if single else MEMBERS,
        vocab_size=VOCAB_SIZE,
    ) as store:
        for sentence in range(n_sentence):
            source = HOSTILE[sentence] if sentence < len(HOSTILE) else f"Satz {sentence}"
            # PRM has no references, and the last sentence of each set has no hypothesis.
            reference = None if test_set == "PRM" else f"Referenz {sentence} <i>"
            n_hypothesis = 0 if sentence == n_sentence - 1 else 2
            hypotheses = [
                _hypothesis(random, sentence, rank, 1 if single else len(MEMBERS))
                for rank in range(n_hypothesis)
            ]
            store.add_sentence(sentence, source, reference, hypotheses)


def _hypothesis(random: np.random.Generator, sentence: int, rank: int, n_member: int) -> Hypothesis:
    n_token = 3 + sentence % 5
    logit = random.normal(size=(n_token, n_member, VOCAB_SIZE))
    logprob = logit - np.log(np.exp(logit).sum(axis=-1, keepdims=True))
    token = np.append(random.integers(SPECIAL, VOCAB_SIZE, n_token - 1), EOS)
    token[0] = SPECIAL + rank  # hypotheses of a search are distinct
    statistics = token_statistics(logprob, token)
    given = HOSTILE[sentence] if sentence < len(HOSTILE) else "<u>"
    text = f"Hypothese {sentence}.{rank} {given}"
    return Hypothesis(token, text, -1.0 - rank, True, statistics)


def _cells(test_sets: Sequence[str]) -> list[Cell]:
    shared = {"task": "nmt_ende", "signature": "task:nmt_ende|set:x; BLEU|nrefs:1"}
    cells = [
        Cell(test_set="newstest14", ensemble="single", hypotheses="-", regime="beam",
             column="bleu", metric="bleu", value=17.2, spread=0.6, low=15.3, high=19.1, n=60,
             data="Help pages", **shared)
    ]  # fmt: skip
    for name in test_sets:
        bleu = {"value": 20.7, "low": 18.4, "high": 23.0} if name == "newstest14" else {}
        cells.append(
            Cell(test_set=name, ensemble="random_init", hypotheses="prex", regime="beam",
                 column="bleu", metric="bleu", reason="" if bleu else "no reference",
                 data="Help pages" if bleu else "Help pages, permuted (SYNTHETIC)",
                 **bleu, **shared)
        )  # fmt: skip
        if name != "newstest14":
            cells.append(
                Cell(test_set=name, ensemble="random_init", hypotheses="prex", regime="beam",
                     column="prex_rmi_s", metric="roc_auc", value=60.0, **shared)
            )  # fmt: skip
    return [*cells, absent_set_cell("nmt_ende", "LTO", "no folder <was> named", "")]


def _table(cells: Sequence[Cell]) -> Table:
    first, second = TableCell(cells[0], paper=28.8, best=True), TableCell(cells[2])
    return Table(
        "tab:bleu",
        "BLEU <of> all",
        (
            (Heading("Task"), Heading("Set"), Heading("Scores", 2)),
            (Heading(""), Heading(""), Heading("BLEU"), Heading("NLL")),
        ),
        (Row(("EN-DE", "nwt14"), (first, second)),),
        ("Bold: the best.",),
    )


def _verdict(
    verdict: str, value: float | None = None, reason: str = "", cells: Sequence[Cell] = ()
) -> Verdict:
    claim = Claim("Ensembles <beat> singles.", "sec:x", (), ("bleu",), Side(), Side())
    spread = None if value is None else value / 2
    high = None if value is None else value * 2
    of_interval = ("bleu", value, spread, high, 1, 1, 0)
    keys = tuple(cell.key for cell in cells)
    return Verdict(
        "c", claim, "nmt_ende", verdict, "EN-DE", (), *of_interval, reason=reason, cells=keys
    )
