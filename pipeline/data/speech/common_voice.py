"""Common Voice as it is published: a .tsv of clips, and clips/*.mp3 beside it; in any language."""

from __future__ import annotations

from pathlib import Path

from pipeline.data.speech.corpus import SpeechCorpus, Utterance, spoken_words
from pipeline.data.text import iterate_lines
from pipeline.errors import DataError

_CLIPS = "clips"
_COLUMNS = ("path", "sentence")


def read_common_voice(tsv: Path, name: str) -> SpeechCorpus:
    """The clips of a .tsv in its order; those without audio are left out and named.

    Raises DataError where a column is missing, a line has other columns than the first, or a clip
    is named by more than the name of a file in clips.
    """
    lines = iterate_lines(tsv)
    header = next(lines, "").split("\t")
    for column in _COLUMNS:
        if column not in header:
            raise DataError(f"{tsv} must have the column {column}, got {', '.join(header)}")
    path_column, sentence_column = map(header.index, _COLUMNS)
    present = {path.name for path in (tsv.parent / _CLIPS).glob("*")}
    utterances: list[Utterance] = []
    left_out: dict[str, str] = {}
    for number, line in enumerate(lines, 2):
        fields = line.split("\t")
        if len(fields) != len(header):
            raise DataError(
                f"{tsv}, line {number} must have {len(header)} columns, got {len(fields)}"
            )
        file_name = fields[path_column]
        if file_name in ("", "..") or Path(file_name).name != file_name:
            raise DataError(
                f"{tsv}, line {number} must name a file in clips, got {file_name[:60]!r}"
            )
        clip = Path(_CLIPS, file_name)
        clip = clip if clip.suffix else clip.with_suffix(".mp3")
        file = clip.as_posix()
        if clip.name in present:
            words = spoken_words(fields[sentence_column])
            utterances.append(Utterance(file, words or None))
        else:
            left_out[file] = "transcript without audio"
    return SpeechCorpus(
        name,
        licence="CC0-1.0",
        domain="general",
        folder=tsv.parent,
        utterances=utterances,
        left_out=left_out,
    )
