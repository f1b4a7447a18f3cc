"""The folder io.out of results from stores that a user names; it is laid out like io.root.

It has links to the stores, and stores.json, which lists them by task. Several tasks can share it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline.errors import ConfigError, DataError
from pipeline.metrics.given_stores import GivenStores, read_given_stores
from pipeline.run.artifacts import Artifact, PartFolder, Provenance
from pipeline.run.files import file_sha256, read_json, write_json
from pipeline.run.locks import exclusive_lock
from pipeline.run.settings import PipelineConfig, changed

_log = logging.getLogger(__name__)
_LIST = "stores.json"
_RESULTS = ("decode", "uncertainty", "metrics", "tables", "report")


@contextmanager
def results_of_stores(config: PipelineConfig) -> Iterator[PipelineConfig]:
    """Yield settings whose task is that of the stores of `config.io` and whose root is io.out.

    The stores are linked there as decodes. Nothing is logged to MLflow, because the other settings
    are not those of the decodes. Raises PipelineError if the stores are not valid or do not fit
    together, or if io.out holds other results.
    """
    out = _out(config)
    given = read_given_stores(config)
    with _locked(out):
        _link(out, given)
        quality = config.task.quality
        _log.info(
            "task %s of the stores: test sets %s (in-domain: %s); quality %s",
            given.task,
            ", ".join(dict.fromkeys(store.test_set for store in given.stores)),
            given.baseline,
            quality,
        )
        family = "speech" if quality == "wer_percent" else "translation"
        yield changed(config, _inside(out) | given.settings | {"task.family": family})


@contextmanager
def results_of_tasks(config: PipelineConfig) -> Iterator[tuple[PipelineConfig, list[str]]]:
    """Yield settings whose root is io.out, and the tasks that `results_of_stores` made there.

    Raises DataError if a store has changed since then.
    """
    out = _out(config)
    again = f"Run python -m stages.metrics io.store=FILE io.out={out}"
    if not (out / _LIST).is_file():
        raise ConfigError(f"io.out: has no results of stores ({out}). {again} first.")
    with _locked(out):
        tasks = list(read_json(out / _LIST, "metrics"))
        for task in tasks:
            try:
                Artifact(out / "decode" / task, "decode").parts()
            except DataError:
                raise DataError(
                    f"{out / _LIST}: a store of task {task} has changed or is no longer there. "
                    f"{again} again."
                ) from None
        yield changed(config, _inside(out)), tasks


def _out(config: PipelineConfig) -> Path:
    if config.io.out is None:
        raise ConfigError("io.out: missing. Set it to the folder for the results of io.store.")
    return Path(config.io.out)


def _inside(out: Path) -> dict[str, Any]:
    """Setting -> value, so that a stage works in `out` as it does in io.root."""
    return {
        "io.root": str(out),
        **dict.fromkeys(("io.store", "io.baseline", "io.out")),
        "io.member_stores": [],
        "tracking.enabled": False,
    }


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    if out.exists() and not out.is_dir():
        raise ConfigError(f"io.out: not a folder ({out}). Name a folder or a new path.")
    if not (out / _LIST).is_file():
        for name in _RESULTS:
            if (out / name).exists():
                raise ConfigError(
                    f"io.out: holds results of other stages ({out / name}). Name another folder."
                )
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"io.out: cannot be written ({error}). Name another folder.") from None
    with exclusive_lock(out / ".lock", f"a stage that writes into {out}", wait=False):
        yield


def _link(out: Path, given: GivenStores) -> None:
    """Make {out}/decode/{task}, with a link to each store, and list the stores."""
    root = out / "decode" / given.task
    sha256 = {name: file_sha256(store.path) for name, store in given.parts().items()}
    made_from = {
        name: Provenance("decode", "", "", {"store": content}) for name, content in sha256.items()
    }
    folder = PartFolder(root, "decode", made_from)
    for name, store in given.parts().items():
        target = os.path.relpath(store.path.resolve(), (root / name).resolve())
        with folder.building(name) as part:
            (part / "store.h5").symlink_to(target)
    folder.write_manifest()
    listed = read_json(out / _LIST, "metrics") if (out / _LIST).is_file() else {}
    paths = {
        name: os.path.relpath(store.path.resolve(), out.resolve())
        for name, store in given.parts().items()
    }
    write_json(out / _LIST, listed | {given.task: paths})
