from __future__ import annotations

import logging

from pipeline.fairseq_bridge import import_fairseq


def test_the_root_logger_is_restored() -> None:
    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    import_fairseq("fairseq.tasks.text_to_speech")
    assert (list(root.handlers), root.level) == before
