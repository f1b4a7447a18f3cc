from pipeline.report.paper_numbers import paper_cells, paper_columns


def test_the_tables_of_the_paper_are_read():
    cells = paper_cells("tab:sequence-error-detection")
    assert len(cells) == 60
    first = cells[0]
    assert (first.key.task, first.key.test_set, first.key.T, first.key.B) == ("asr", "LTC", "", "1")
    assert (first.key.column, first.value, first.spread) == ("prex_entropy_c", 61.2, None)
    assert paper_cells("tab:nmt-bleu-asr-wer")[0].spread == 0.2
    assert paper_columns("tab:nmt-bleu-asr-wer") == ["bleu", "wer_percent", "nll"]


def test_an_unknown_table_is_empty():
    assert paper_cells("tab:mine") == []
