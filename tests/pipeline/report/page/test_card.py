from __future__ import annotations

from pipeline.report.page.sections import card_html


def test_headings_go_below_the_page_s_and_tables_are_labelled() -> None:
    html = card_html("# Card\n\n###### Deep\n\n| A |\n| --- |\n| 1 |\n", "nmt", 2)
    assert "<h3>Card</h3>" in html
    assert "<h6>Deep</h6>" in html
    assert '<th scope="col">A</th>' in html
    assert 'aria-label="nmt, table 1: Deep" tabindex="0"><table>' in html
    assert html.count("<div") == html.count("</div>") == 1


def test_hostile_text_of_a_corpus_stays_text() -> None:
    card = (
        '## "><script>x</script>\n\n| S |\n| --- |\n| <script>alert(1)</script> *a* '
        "![b](http://c) [d](javascript:e) <http://f> |\n\n<iframe></iframe>\n"
    )
    html = card_html(card, "nmt", 2)
    for tag in ("<script", "<img", "<a ", "<em", "<iframe"):
        assert tag not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt; *a* ![b](http://c)" in html
    assert 'aria-label="nmt, table 1: &quot;&gt;&lt;script&gt;' in html
