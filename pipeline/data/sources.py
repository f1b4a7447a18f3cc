"""Where the text of a translation task comes from: what each value of `data.source` stands for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipeline.config import DataConfig
from pipeline.data.corpus import Corpus
from pipeline.data.libreoffice import read_libreoffice
from pipeline.data.sacrebleu_cache import read_sacrebleu
from pipeline.data.task_units import is_imported
from pipeline.data.user_files import read_user_files

# Every pair holds out the same pages, and finds its test sentences in all of these languages.
SHARED_LANGUAGES = frozenset({"de", "en", "fr"})


@dataclass(frozen=True)
class TaskText:
    """The text to train on; dev and test sets of their own, or None: held out of the former.

    `train` is None where nothing is trained and both sets are of their own.
    """

    train: Corpus | None
    dev: Corpus | None = None
    test: Corpus | None = None

    @property
    def main(self) -> Corpus:
        """The corpus that the task is of: the text to train on or, without it, to test on."""
        corpus = self.train or self.test
        assert corpus is not None  # the configuration was checked
        return corpus

    @property
    def test_languages(self) -> frozenset[str]:
        """The languages that every test sentence is in."""
        return (self.test or self.main).languages

    @property
    def test_name(self) -> str:
        """What the corpus of the test sentences is called."""
        return (self.test or self.main).name


def read_task_text(data: DataConfig, pair: tuple[str, str], languages: set[str]) -> TaskText:
    """The text that `data.source` names, in the pair and as far as may be in `languages`.

    Raises DataError where a file breaks a rule; MachineError where a package cannot be had.
    """
    return _SOURCES[data.source](data, pair, languages)


def _libreoffice(data: DataConfig, pair: tuple[str, str], languages: set[str]) -> TaskText:
    return TaskText(read_libreoffice(data, sorted(SHARED_LANGUAGES | {*pair} | languages)))


def _files(data: DataConfig, pair: tuple[str, str], languages: set[str]) -> TaskText:
    def read(name: str, where: str | None) -> Corpus | None:
        return _users_text(name, where, pair, languages)

    train = read(f"{data.corpus}, to train on", _where_to_train(data))
    return TaskText(train, read(f"{data.corpus}, dev", data.dev), read(data.corpus, data.test))


def _sacrebleu(data: DataConfig, pair: tuple[str, str], languages: set[str]) -> TaskText:
    train = _users_text(f"{data.corpus}, to train on", _where_to_train(data), pair, languages)
    sets = [None if name is None else read_sacrebleu(name, pair) for name in (data.dev, data.test)]
    return TaskText(train, *sets)


def _where_to_train(data: DataConfig) -> str | None:
    """Text that nothing is trained on is read only where a set is to be held out of it."""
    is_needed = not is_imported(data) or data.dev is None or data.test is None
    return data.train if is_needed else None


def _users_text(
    name: str, where: str | None, pair: tuple[str, str], languages: set[str]
) -> Corpus | None:
    others = sorted(languages - {*pair})
    return None if where is None else read_user_files(name, where, list(pair), others)


_SOURCES: dict[str, Callable[[DataConfig, tuple[str, str], set[str]], TaskText]] = {
    "libreoffice": _libreoffice,
    "files": _files,
    "sacrebleu": _sacrebleu,
}
