"""Spoken English with translations: the dialogue of the game Fish Fillets NG (GPL-2)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pipeline.data.debian_packages import Package, origin, package_files, packages_of
from pipeline.data.text.corpus import Corpus, Paragraph, cached_paragraphs, split_sentences
from pipeline.errors import DataError
from pipeline.run.settings import DataConfig

_SCRIPTS = "usr/share/games/fillets-ng/script/"
_STRING = r'"((?:[^"\\]|\\.)*)"'
_LINE = re.compile(
    rf"""dialogId\(\s*{_STRING}\s*,\s*{_STRING}\s*,\s*{_STRING}\s*\)\s*dialogStr\(\s*{_STRING}\s*\)""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def read_game_dialogue(data: DataConfig, languages: list[str]) -> Corpus:
    """Lines that are translated into all `languages`, joined on level and line id, in their order.

    What was parsed is kept in `data.downloads`. Raises MachineError where the package cannot be
    had, DataError where it holds no line in all of the languages.
    """
    downloads = Path(data.downloads)
    packages = packages_of(data, ["fillets-ng-data"])
    others = [language for language in languages if language != "en"]
    every = cached_paragraphs(Path(__file__), downloads, packages, lambda: _lines(packages[0]))
    if not any(all(one.sentences.get(other) for other in others) for one in every()):
        raise DataError(
            f"{packages[0].path} must hold dialogue in {', '.join(languages)}, got no such line"
        )
    return Corpus(
        name="Fish Fillets NG dialogue",
        licence="GPL-2",
        domain="spoken, game dialogue",
        packages=origin(packages),
        languages=frozenset(languages),
        paragraphs=every,
    )


def parse_dialogue(script: str) -> dict[str, tuple[str, str]]:
    """Line id -> (English, translation) of a script; of a repeated id, the first."""
    lines: dict[str, tuple[str, str]] = {}
    for match in _LINE.finditer(script):
        name, _, english, translation = (_unescaped(one) for one in match.groups())
        lines.setdefault(name, (english, translation))
    return lines


def _unescaped(text: str) -> str:
    return " ".join(_ESCAPE.sub(r"\1", text).split())


def _lines(package: Package) -> Iterator[Paragraph]:
    levels: dict[str, dict[str, dict[str, str]]] = {}
    for path, content in package_files(package, _SCRIPTS, ".lua"):
        level, _, file = path.rpartition("/")
        language = file.removesuffix(".lua").removeprefix("dialogs_")
        if file.startswith("dialogs_") and len(language) == 2:
            parsed = parse_dialogue(content.decode("utf-8"))
            for name, (english, translation) in parsed.items():
                sides = levels.setdefault(level, {}).setdefault(name, {})
                # The English beside a stale translation is an older line than the current one.
                if sides.setdefault("en", english) == english:
                    sides[language] = translation
    for level, lines in sorted(levels.items()):
        for _, sides in sorted(lines.items()):
            yield Paragraph(level, {name: split_sentences(text) for name, text in sides.items()})
