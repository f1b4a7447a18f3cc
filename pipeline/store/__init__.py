"""The decode store: the file in which decoding stores hypotheses and token statistics."""

from pipeline.store.hypothesis import Hypothesis, TopK
from pipeline.store.reader import (
    Store,
    check_stores,
    is_store,
    open_own_store,
    open_store,
    read_hypotheses,
)
from pipeline.store.schema import SEARCHES, SUBSET, Flag
from pipeline.store.statistics import TokenStatistics
from pipeline.store.validate import validate
from pipeline.store.writer import StoreWriter

__all__ = [
    "SEARCHES",
    "SUBSET",
    "Flag",
    "Hypothesis",
    "Store",
    "StoreWriter",
    "TokenStatistics",
    "TopK",
    "check_stores",
    "is_store",
    "open_own_store",
    "open_store",
    "read_hypotheses",
    "validate",
]
