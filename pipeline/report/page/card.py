"""A data card, Markdown that holds sentences of unknown origin, as HTML that cannot act."""

from __future__ import annotations

from html import escape

from markdown_it import MarkdownIt
from markdown_it.token import Token

# What a sentence of a corpus may look like by chance, and what would lead out of the page.
_OFF = ("link", "image", "autolink", "emphasis", "html_inline", "html_block")
_DEEPEST_HEADING = 6


def card_html(markdown: str, name: str, below_level: int) -> str:
    """The card with headings from `below_level` + 1 on, tables in boxes that scroll.

    HTML, links and images in the text are shown as text; `name` tells the tables of several cards
    apart for those who hear the page.
    """
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable(_OFF)
    shown: list[Token] = []
    heading, n_table = "", 0
    for token in parser.parse(markdown):
        if token.type in ("heading_open", "heading_close"):
            level = min(int(token.tag.removeprefix("h")) + below_level, _DEEPEST_HEADING)
            token.tag = f"h{level}"
        elif token.type == "inline" and shown[-1].type == "heading_open":
            heading = token.content
        elif token.type == "th_open":
            token.attrSet("scope", "col")
        elif token.type == "table_open":
            n_table += 1
            shown.append(_opened_box(f"{name}, table {n_table}: {heading}"))
        shown.append(token)
        if token.type == "table_close":
            shown.append(_html("</div>"))
    return str(parser.renderer.render(shown, parser.options, {}))


def _opened_box(label: str) -> Token:
    return _html(f'<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0">')


def _html(content: str) -> Token:
    return Token("html_block", "", 0, content=content)
