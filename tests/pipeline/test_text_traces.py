from __future__ import annotations

import pytest

from pipeline.text_traces import Traces, traces_of, unescaped


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        ("&apos;s &quot;a&quot; &#124; &lt;b&gt; &#91;c&#93;", '\'s "a" | <b> [c]'),
        ("R &amp; D", "R & D"),
        ("&amp;lt;", "&lt;"),  # once, as Moses' detokenizer.perl does
        ("AT&T; &copy; & &#65;", "AT&T; &copy; & &#65;"),
    ],
)
def test_escapes_of_moses_are_undone_and_no_others(escaped: str, text: str) -> None:
    assert unescaped(escaped) == text
    assert traces_of([escaped]).escaped == (escaped != text)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("Good morning .", {"tokenised": 1}),
        ("Well , good morning", {"tokenised": 1}),
        ("早上 好 。", {"tokenised": 1}),
        ("good mor@@ ning", {"subwords": 1}),
        ("good mor@@", {"subwords": 1}),
        ("▁good ▁mor ning", {"subwords": 1}),
        ("Use .NET, and wait ... Quoi ? A , 5 .5", {"tokenised": 1}),
        ("Use .NET, and wait ... Quoi ? me@example.or@@ g", {"subwords": 1}),
        ("@@ -1,2 +1,3 @@ a comparison of files", {}),
        ("Use .NET, and wait ... Quoi ? me@example.org .", {"tokenised": 1}),
        ("Use .NET, and wait ... Quoi ? me@example.org", {}),
        ("", {}),
    ],
)
def test_traces_of_a_text(text: str, counts: dict[str, int]) -> None:
    assert traces_of([text]).counts() == counts


def test_warnings_need_one_text_in_twenty() -> None:
    assert list(Traces(texts=0).warnings("x")) == []
    assert list(Traces(texts=100, subwords=4, tokenised=4, escaped=4).warnings("x")) == []
    subwords, tokenised, escaped = Traces(100, 5, 6, 7).warnings("x")
    assert subwords.startswith("x: 5 of 100 texts have subword markers")
    assert tokenised.startswith("x: 6 of 100 texts have a space before a full stop or comma")
    assert escaped.startswith("x: 7 of 100 texts have escapes of Moses' tokeniser")
