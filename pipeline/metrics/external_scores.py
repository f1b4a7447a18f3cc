"""External scores of sentences, such as human judgements or COMET, read from TSV files."""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.errors import ConfigError, DataError
from pipeline.metrics.cell import METRIC_NAMES
from pipeline.metrics.decodes import Decode
from pipeline.quality.weighted_metric import FloatArray
from pipeline.run.files import digest, file_sha256
from pipeline.run.settings import ScoresConfig

_log = logging.getLogger(__name__)
_ID, _SCORE, _HYPOTHESIS = "sentence_id", "score", "hypothesis"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"
_EXAMPLES = 3  # of the names that a message lists


@dataclass(frozen=True)
class ExternalScores:
    """One kind of external score, of the 1-best hypotheses of some decodes.

    values: store -> [sentence], as in the file, NaN for a sentence that was not scored.
    sha256: store -> digest of its file.
    """

    name: str
    higher_is_better: bool
    values: Mapping[Path, FloatArray]
    sha256: Mapping[Path, str]

    def has(self, decode: Decode) -> bool:
        """Whether a decode has a file of scores."""
        return decode.path in self.values

    def badness(self, decode: Decode) -> FloatArray:
        """The scores with the sign that makes higher values worse, [sentence]."""
        values = self.values[decode.path]
        return -values if self.higher_is_better else values

    def signature(self, decodes: Sequence[Decode]) -> str:
        """The part of a cell's signature that describes the scores of these decodes."""
        files = digest(*(self.sha256[decode.path] for decode in decodes))[:12]
        better = "higher" if self.higher_is_better else "lower"
        return f"score:{self.name}|better:{better}|files:{files}"


def read_external_scores(
    settings: Mapping[str, ScoresConfig], task: str, decodes: Mapping[str, Decode]
) -> list[ExternalScores]:
    """Read the files of setting `metrics.scores` for the searches among `decodes` (by part).

    A decode without a file has no scores, and the log counts these decodes. Raises ConfigError for
    the name of a metric, DataError if no decode has a file, if a file stands for several decodes,
    or if a file is not a list of the scores of its decode.
    """
    for name in settings:
        if name in METRIC_NAMES:
            raise ConfigError(
                f"metrics.scores.{name}: is the name of a metric of the pipeline. "
                "Choose another name."
            )
    searches = {part: decode for part, decode in decodes.items() if decode.is_search}
    return [_read_kind(name, setting, task, searches) for name, setting in settings.items()]


def provenance_of_scores(
    scores: Sequence[ExternalScores], decodes: Mapping[str, Decode]
) -> dict[str, str]:
    """Entries in `made_from` of what is made from the scores."""
    return {
        f"scores/{kind.name}/{part}": kind.sha256[decode.path]
        for kind in scores
        for part, decode in decodes.items()
        if kind.has(decode)
    }


def _read_kind(
    name: str, setting: ScoresConfig, task: str, searches: Mapping[str, Decode]
) -> ExternalScores:
    key = f"metrics.scores.{name}.files"
    parts_of_file: dict[Path, list[str]] = defaultdict(list)
    for part, decode in searches.items():
        path = Path(setting.files.format(part=part, task=task, test_set=decode.cell.test_set))
        parts_of_file[path].append(part)
    present = {path: parts for path, parts in parts_of_file.items() if path.is_file()}
    if not present:
        example = next(map(str, parts_of_file), "there is no decode by search")
        raise DataError(
            f"{key}: no decode of {task} has a file of scores ({setting.files}; for example "
            f"{example}). Write one file per decode, with {{part}} in {key}, or remove "
            f"metrics.scores.{name}."
        )
    for path, parts in present.items():
        if len(parts) > 1:
            raise DataError(
                f"{path}: stands for {len(parts)} decodes ({_some(parts)}), but scores belong to "
                f"the hypotheses of one. Put {{part}} into {key}."
            )
    part_of_file = {path: parts[0] for path, parts in present.items()}
    values = {
        searches[part].path: _read_file(path, searches[part]) for path, part in part_of_file.items()
    }
    without = [part for part in searches if part not in part_of_file.values()]
    _log.info(
        "metrics.scores.%s: %d of %d decodes have scores%s; %d of their %d sentences have none",
        name,
        len(values),
        len(searches),
        f" (no file for {_some(without)})" if without else "",
        sum(int(np.isnan(scores).sum()) for scores in values.values()),
        sum(map(len, values.values())),
    )
    sha256 = {searches[part].path: file_sha256(path) for path, part in part_of_file.items()}
    return ExternalScores(name, setting.higher_is_better, values, sha256)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_EXAMPLES])
    return shown if len(names) <= _EXAMPLES else f"{shown} and {len(names) - _EXAMPLES} more"


def _read_file(path: Path, decode: Decode) -> FloatArray:
    """The scores of one file, [sentence]; NaN for a sentence that was not scored."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 ({error}). Convert it to UTF-8.") from None
    if text.startswith(_BYTE_ORDER_MARK):
        _log.info("%s: a byte-order mark was removed", path)
    lines = text.removeprefix(_BYTE_ORDER_MARK).removesuffix("\n").split("\n")
    rows = [line.split("\t") for line in lines]
    if len(rows[0]) == 1 and _SCORE in lines[0] and lines[0].strip() != _SCORE:
        raise DataError(
            f"{path}: columns must be separated by tabs (got the first line {lines[0]!r}). "
            "Write a .tsv file."
        )
    if _ID in rows[0] or _SCORE in rows[0] or len(rows[0]) > 1:
        return _by_id(path, rows, decode)
    return _by_line(path, rows, len(decode.texts))


def _by_line(path: Path, rows: Sequence[Sequence[str]], n_sentence: int) -> FloatArray:
    """The scores of a file with one score per line."""
    if len(rows) != n_sentence:
        raise DataError(
            f"{path}: has {len(rows)} lines, but the decode has {n_sentence} sentences. Write one "
            "score per line in the order of the test set; an empty line is a sentence without one."
        )
    for number, row in enumerate(rows, start=1):
        if len(row) > 1:
            raise DataError(
                f"{path}: line {number} has {len(row)} columns, the first line has one. Write "
                f"one column, or name {_ID} and {_SCORE} in a first line."
            )
    return np.array([_score(path, number, row[0]) for number, row in enumerate(rows, start=1)])


def _by_id(path: Path, rows: Sequence[Sequence[str]], decode: Decode) -> FloatArray:
    """The scores of a file whose first line names its columns."""
    header, n_sentence = list(rows[0]), len(decode.texts)
    for name in (_ID, _SCORE):
        if header.count(name) != 1:
            raise DataError(
                f"{path}: the first line must name the columns {_ID} and {_SCORE}, each once (got "
                f"{', '.join(header)}). Add the names, or write one column without names."
            )
    line_of_id: dict[int, int] = {}
    values = np.full(n_sentence, np.nan)
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            raise DataError(
                f"{path}: line {number} has {len(row)} columns, the first line has {len(header)}. "
                "Separate columns by tabs, and leave tabs out of texts."
            )
        columns = dict(zip(header, row, strict=True))
        sentence = _sentence(path, number, columns[_ID], n_sentence)
        if sentence in line_of_id:
            raise DataError(
                f"{path}: line {number} repeats {_ID} {sentence} of line {line_of_id[sentence]}. "
                "Write one line per sentence."
            )
        line_of_id[sentence] = number
        values[sentence] = _score(path, number, columns[_SCORE])
        if _HYPOTHESIS in columns:
            _check_hypothesis(path, number, columns[_HYPOTHESIS], decode.texts[sentence])
    missing = [sentence for sentence in range(n_sentence) if sentence not in line_of_id]
    if missing:
        raise DataError(
            f"{path}: has no line for {len(missing)} of {n_sentence} sentences ({_ID} "
            f"{_some([str(sentence) for sentence in missing])}). Leave the score of a sentence "
            "empty if it was not scored."
        )
    return values


def _sentence(path: Path, number: int, text: str, n_sentence: int) -> int:
    if not (text.isdecimal() and int(text) < n_sentence):
        raise DataError(
            f"{path}: line {number}: {_ID} must be a whole number from 0 to {n_sentence - 1}, the "
            f"position in the test set (got {text!r}). Number the sentences as in the store."
        )
    return int(text)


def _score(path: Path, number: int, text: str) -> float:
    text = text.strip()
    if not text:
        return np.nan
    value = float(text) if _NUMBER.fullmatch(text) else np.nan
    if not np.isfinite(value):
        raise DataError(
            f"{path}: line {number}: a score must be a finite number (got {text!r}). Leave the "
            f"score empty if the sentence was not scored; a first line names {_ID} and {_SCORE} or "
            "is a score."
        )
    return value


def _check_hypothesis(path: Path, number: int, scored: str, decoded: str | None) -> None:
    """Compare the text that was scored with that of the decode, up to white space."""
    if scored.split() != (decoded or "").split():
        raise DataError(
            f"{path}: line {number}: {_HYPOTHESIS} is not that of the decode (got {scored!r}, "
            f"expected {decoded or ''!r}). Score the hypotheses of this decode."
        )
