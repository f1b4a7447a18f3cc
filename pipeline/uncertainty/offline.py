"""From one decode store to all its measures on disk, in one pass over the file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.run.files import write_json
from pipeline.store import Store
from pipeline.uncertainty.blocks import Block, measured_blocks
from pipeline.uncertainty.checks import StoreChecks, refuse_impossible
from pipeline.uncertainty.heuristics import HEURISTICS, heuristic_measures, heuristics_reason
from pipeline.uncertainty.hypothesis import TotalsBuilder
from pipeline.uncertainty.sequence import KEYS, Grid, refusals, sequence_table

if TYPE_CHECKING:
    import pyarrow as pa


def write_measures(
    store: Store,
    folder: Path,
    grid: Grid,
    eos: str = "include",
    member_stores: Sequence[Store] = (),
) -> dict[str, Any]:
    """Write sequence.parquet, token.parquet and checks.json of a store; the checks as plain values.

    folder: exists already. A value that a sentence cannot have is null, as is NaN of a measure of
    the user's own; a measure that the store cannot give is absent, and checks.json says why. Raises
    StoreError, naming task, test set and sentence, for any other measure that is NaN, or that no
    distributions can have.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    builder, checks = TotalsBuilder(store), StoreChecks(store)
    sentence = np.repeat(np.arange(store.n_sentence), np.diff(store.hypothesis_offset))
    rank = np.arange(store.n_hypothesis) - store.hypothesis_offset[:-1][sentence]
    # Dictionaries cost most of the time of writing and gain nothing on numbers that do not repeat.
    columns = ["sentence_id", "hypothesis", "position", "token_id"]
    path = folder / "token.parquet"
    with pq.ParquetWriter(path, token_schema(), use_dictionary=columns) as file:
        for block in measured_blocks(store, eos=eos):
            refuse_impossible(store, block)
            builder.add(block)
            checks.add(block)
            file.write_table(_token_table(block, sentence, rank))
    totals = builder.totals()
    refused = refusals(store, None, grid.weights_from)
    heuristics = heuristic_measures(store, member_stores)
    table = sequence_table(store, totals, grid, refused, heuristics)
    pq.write_table(
        pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata(),
        folder / "sequence.parquet",
        use_dictionary=list(KEYS),
    )
    report = checks.report(totals)
    report["settings"] = {"weights_from": grid.weights_from, "eos": eos}
    report["absent"] = {name: reason for name, reason in refused.items() if reason is not None}
    reason = heuristics_reason(store, member_stores)
    report["null"] = dict.fromkeys(HEURISTICS, reason) if reason else {}
    write_json(folder / "checks.json", report)
    return report


def token_schema() -> pa.Schema:
    """Columns of token.parquet: where the token stands, then the measures in nats."""
    import pyarrow as pa

    from pipeline.uncertainty.token import TOKEN_MEASURES

    return pa.schema(
        [
            ("sentence_id", pa.int64()),
            ("hypothesis", pa.int32()),
            ("position", pa.int32()),
            ("token_id", pa.int32()),
            *((name, pa.float32()) for name in TOKEN_MEASURES),
        ]
    )


def _token_table(block: Block, sentence: np.ndarray, rank: np.ndarray) -> pa.Table:
    import pyarrow as pa

    lengths = np.diff(block.token_offset)
    position = np.arange(block.token_offset[-1]) - np.repeat(block.token_offset[:-1], lengths)
    columns = {
        "sentence_id": np.repeat(sentence[block.first : block.last], lengths),
        "hypothesis": np.repeat(rank[block.first : block.last], lengths).astype(np.int32),
        "position": position.astype(np.int32),
        "token_id": block.token_id,
        **{name: values.astype(np.float32) for name, values in block.measures.items()},
    }
    return pa.table(columns, schema=token_schema())
