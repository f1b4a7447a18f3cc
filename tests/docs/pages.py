"""What README, CONTRIBUTING and docs/ show: fenced blocks, and commands wherever they stand."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

from pipeline.run.settings import ROOT

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
# A block without a language holds commands.
SHELL = ("", "sh")
_PROGRAMS = ("python", "make", "dvc", "mkdocs", "pytest", "ruff", "mypy", "pre-commit", "sacrebleu")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its title (a file to write, or `prints`) and its text."""

    language: str
    title: str
    text: str


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    tokens = MarkdownIt().parse(page.read_text(encoding="utf-8"))
    found = []
    for token in tokens:
        if token.type == "fence":
            language, _, rest = token.info.partition(" ")
            title = re.search(r'title="(.*?)"', rest)
            found.append(Block(language, title[1] if title else "", token.content))
    return found


def commands(page: Path) -> list[list[str]]:
    """The commands of a page, each as its words: of shell blocks, and those within sentences."""
    shell = [block.text for block in blocks(page) if block.language in SHELL]
    return [words for text in [*shell, *_within_sentences(page)] for words in split(text)]


def split(text: str) -> Iterator[list[str]]:
    """The words of each simple command of a shell text, without what redirects its output."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;<>")
        lexer.whitespace_split = True
        words: list[str] = []
        redirected = False
        for word in lexer:
            if word in ("&&", ";", "|"):
                yield words
                words, redirected = [], False
            elif word in (">", "2>"):
                redirected = True
            elif not redirected:
                words.append(word)
        if words:
            yield words


def _within_sentences(page: Path) -> Iterator[str]:
    for token in MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8")):
        for child in token.children or []:
            words = child.content.split()
            is_command = child.type == "code_inline" and len(words) > 1
            if is_command and Path(words[0]).name in _PROGRAMS:
                yield child.content
