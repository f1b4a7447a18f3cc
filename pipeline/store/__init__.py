"""The decode store: what an ensemble's decoder leaves for everything after it."""

from pipeline.store.hypothesis import Hypothesis, TopK
from pipeline.store.reader import Store, is_store, look_ahead, open_store
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
    "is_store",
    "look_ahead",
    "open_store",
    "validate",
]
