"""Decode a complete test set without running stage decode."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.decoding.blocks import Decoder, block_plan, decode_blocks, join_blocks
from pipeline.decoding.test_set import PreparedSentence


def decode_to_store(
    decoder: Decoder,
    test_set: Sequence[PreparedSentence],
    path: Path,
    attributes: dict[str, Any],
    title: str,
    resume: Path,
) -> None:
    """Decode all sentences into the store `path`; remove the blocks in `resume` at the end."""
    blocks = block_plan(resume, len(test_set), decoder.decode.part_sentences)
    decode_blocks(decoder, test_set, blocks, attributes, title)
    join_blocks(test_set, blocks, path, attributes)
    shutil.rmtree(resume)
