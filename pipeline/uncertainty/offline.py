"""Write all measures of a decode store to a folder, in one pass over the store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.run.files import write_json
from pipeline.run.measure_rules import GRID
from pipeline.store import SEARCHES, SUBSET, Store
from pipeline.uncertainty.blocks import HypothesisSummation, TokenBlock, token_blocks
from pipeline.uncertainty.checks import StoreChecks, reject_out_of_range
from pipeline.uncertainty.heuristics import HEURISTICS, heuristic_measures, heuristics_reason
from pipeline.uncertainty.hypothesis_report import hypothesis_report
from pipeline.uncertainty.lexical import hypothesis_measures
from pipeline.uncertainty.measures_of_sequences import SEQUENCE_MEASURES, SINGLE_MODEL
from pipeline.uncertainty.measures_of_tokens import TOKEN_MEASURES
from pipeline.uncertainty.sequence import (
    KEYS,
    Grid,
    hypothesis_measures_refusal,
    refusals,
    sequence_table,
)

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


_OF_SINGLE = "with one member it is 0 or equal to another measure"


def write_measures(
    store: Store, folder: Path, grid: Grid, member_stores: Sequence[Store] = ()
) -> dict[str, Any]:
    """Write sequence.parquet, token.parquet and checks.json; return the checks as plain values.

    folder: must exist. A sentence without a value gets null, and so does a NaN of the user's
    measures, which checks.json counts. A measure that the store cannot give is absent, and
    checks.json says why. Raises StoreError, naming task, test set and sentence, for any other
    measure that is NaN or out of its range.
    """
    import pyarrow.parquet as pq

    summation, checks = HypothesisSummation(store), StoreChecks(store)
    sentence = np.repeat(np.arange(store.n_sentence), np.diff(store.hypothesis_offset))
    rank = np.arange(store.n_hypothesis) - store.hypothesis_offset[:-1][sentence]
    # Dictionary encoding takes most of the writing time and saves nothing on measures.
    columns = ["sentence_id", "hypothesis", "position", "token_id"]
    path = folder / "token.parquet"
    with pq.ParquetWriter(path, token_schema(), use_dictionary=columns) as file:
        for block in token_blocks(store, eos=grid.rules.eos):
            reject_out_of_range(store, block)
            summation.add(block)
            checks.add(block)
            file.write_table(_token_table(block, sentence, rank))
    return _write_sequences(store, folder, grid, member_stores, summation, checks)


def write_measures_of_single(store: Store, folder: Path, grid: Grid) -> dict[str, Any]:
    """Write sequence.parquet and checks.json of a decode by a single member by itself.

    They have the measures of a single model, `SINGLE_MODEL`, and none of the user's. Arguments,
    result and errors are those of `write_measures`.
    """
    summation, checks = HypothesisSummation(store), StoreChecks(store)
    for block in token_blocks(store, eos=grid.rules.eos):
        reject_out_of_range(store, block)
        summation.add(block)
        checks.add(block)
    grid = replace(grid, extra_measures={}, hypothesis_measures={})
    return _write_sequences(store, folder, grid, (), summation, checks, SINGLE_MODEL)


def _write_sequences(
    store: Store,
    folder: Path,
    grid: Grid,
    member_stores: Sequence[Store],
    summation: HypothesisSummation,
    checks: StoreChecks,
    measures: Collection[str] = SEQUENCE_MEASURES,
) -> dict[str, Any]:
    """Write sequence.parquet with these measures, and checks.json, from the sums of all blocks."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sums = summation.sums()
    rules = grid.rules
    refused = refusals(store, None, rules.weights_from)
    refused |= {name: _OF_SINGLE for name in refused if name not in measures}
    of_texts = heuristic_measures(store, member_stores, rules.bleu_tokeniser, rules.transcripts)
    of_texts |= hypothesis_measures(store)
    of_texts = {name: values for name, values in of_texts.items() if name in measures}
    table = sequence_table(store, sums, grid, refused, of_texts)
    pq.write_table(
        pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata(),
        folder / "sequence.parquet",
        use_dictionary=list(KEYS),
    )
    report = checks.report(sums)
    report["settings"] = grid.rules.as_dict()
    report["grid"] = {name: list(getattr(grid, name)) for name in GRID}
    report |= hypothesis_report(store, grid.beam)
    report["absent"] = {name: reason for name, reason in refused.items() if reason is not None}
    reason = hypothesis_measures_refusal(store, grid.rules.weights_from)
    report["absent"] |= dict.fromkeys(grid.hypothesis_measures, reason) if reason else {}
    report["sentences_without_own_measure"] = _without_value(store, table, grid)
    reason = heuristics_reason(store, member_stores)
    report["null"] = dict.fromkeys(HEURISTICS, reason) if reason else {}
    write_json(folder / "checks.json", report)
    return report


def _without_value(store: Store, table: pd.DataFrame, grid: Grid) -> dict[str, int]:
    """Count the sentences with a hypothesis where a measure of the user is NaN, per measure.

    A sentence counts if the measure is NaN at any point of the grid.
    """
    has_hypothesis = np.diff(store.hypothesis_offset) > 0
    names = [name for name in (*grid.extra_measures, *grid.hypothesis_measures) if name in table]
    is_nan = table[names].isna().groupby(table["sentence_id"]).any()
    return {name: int((is_nan[name].to_numpy() & has_hypothesis).sum()) for name in names}


def decodes_of_single_members(stores: Mapping[str, Store]) -> Iterator[tuple[str, Store]]:
    """Yield the searches of single members by themselves: part, store; stores: part -> store."""
    for part, store in stores.items():
        if _is_single_member(store) and store.regime in SEARCHES:
            yield part, store


def ensemble_decodes(stores: Mapping[str, Store]) -> Iterator[tuple[str, Store, list[Store]]]:
    """Yield the decodes of ensembles: part, store, and the decodes of its members on the same set.

    stores: part -> store of a task. Decodes of single members are left out, and so are those of
    subsets, unless all members of an ensemble but one decoded.
    """
    single = [store for store in stores.values() if _is_single_member(store)]
    for part, store in stores.items():
        is_ensemble = not _is_single_member(store)
        if is_ensemble and (not _is_subset(store) or _lacks_one_member(store, stores.values())):
            yield part, store, [member for member in single if _is_decode_of_member(member, store)]


def _is_single_member(store: Store) -> bool:
    """Whether a member decoded by itself, rather than an ensemble of one member."""
    return store.n_member == 1 and store.attributes.get("ensemble") == store.members[0]


def _is_subset(store: Store) -> bool:
    return store.attributes.get("ensemble") == SUBSET


def _lacks_one_member(subset: Store, stores: Iterable[Store]) -> bool:
    return any(
        not _is_subset(store)
        and store.n_member == subset.n_member + 1
        and set(subset.members) < set(store.members)
        and all(
            store.attributes.get(name) == subset.attributes.get(name)
            for name in ("test_set", "regime")
        )
        and store.combination == subset.combination
        for store in stores
    )


def _is_decode_of_member(single: Store, store: Store) -> bool:
    is_same = all(
        single.attributes.get(name) == store.attributes.get(name) for name in ("test_set", "regime")
    )
    return is_same and single.members[0] in store.members


def token_schema() -> pa.Schema:
    """Return the columns of token.parquet: the position of the token, then its measures in nats."""
    import pyarrow as pa

    return pa.schema(
        [
            ("sentence_id", pa.int64()),
            ("hypothesis", pa.int32()),
            ("position", pa.int32()),
            ("token_id", pa.int32()),
            *((name, pa.float32()) for name in TOKEN_MEASURES),
        ]
    )


def _token_table(block: TokenBlock, sentence: np.ndarray, rank: np.ndarray) -> pa.Table:
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
