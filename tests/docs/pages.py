"""Read fenced blocks and commands from README, CONTRIBUTING and the pages of docs/."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

from pipeline.run.settings import ROOT
from stages.__main__ import PROGRAM

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
# A block without a language holds shell commands.
SHELL = ("", "sh")
_PROGRAMS = (
    *("python", "pip", PROGRAM, "make", "dvc", "mkdocs"),
    *("pytest", "ruff", "mypy", "pre-commit", "sacrebleu"),
)


@dataclass(frozen=True)
class Block:
    """A fenced block. Its title is the file to write, or `prints` for expected output."""

    language: str
    title: str
    text: str


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    tokens = MarkdownIt().parse(page.read_text(encoding="utf-8"))
    fenced = []
    for token in tokens:
        if token.type == "fence":
            language, _, rest = token.info.partition(" ")
            title = re.search(r'title="(.*?)"', rest)
            fenced.append(Block(language, title[1] if title else "", token.content))
    return fenced


def commands(page: Path) -> list[list[str]]:
    """Return the commands of a page, split into words, from shell blocks and inline code."""
    shell = [block.text for block in blocks(page) if block.language in SHELL]
    return [words for text in [*shell, *_inline_commands(page)] for words in split(text)]


def split(text: str) -> Iterator[list[str]]:
    """Yield the words of each simple command of a shell text, without output redirections."""
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


def _inline_commands(page: Path) -> Iterator[str]:
    for token in MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8")):
        for child in token.children or []:
            words = child.content.split()
            is_command = child.type == "code_inline" and len(words) > 1
            if is_command and Path(words[0]).name in _PROGRAMS:
                yield child.content
