"""The points of a multirun: their folders, with links to what they build on, and their records.

The point of a job is Hydra's folder of this job, {hydra.sweep.dir}/{hydra.sweep.subdir}. It is
organised like io.root, so that every stage also runs on a point, with io.root=POINT.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import OmegaConf

from pipeline.errors import ConfigError, DataError
from pipeline.run.code import (
    declared_params,
    input_folders,
    is_read,
    output_folders,
    readers_before,
    resumed_folders,
)
from pipeline.run.files import digest, read_json, write_json
from pipeline.run.locks import exclusive_lock
from pipeline.run.settings import MACHINE_KEYS, PipelineConfig, changed

# Overrides that do not tell points apart; from_config and stores do.
_NOT_IN_NAMES = ("io.root", "part", "tracking")
_ODD = re.compile(r"[^A-Za-z0-9._+-]+")  # what --io.root=POINT would have to quote
_INTERPOLATION = re.compile(r"\$\\?\{")  # Hydra escapes it in the overrides of jobs
_LONGEST_NAME = 120
_DIGITS = 8  # of the digest that tells long or odd names apart
_HYDRA = ".hydra"  # a folder with this one is that of a job, and so a point
_STORES = "stores.json"  # lists the stores in a folder io.out
_OF_GIVEN_STORES = ("decode", "uncertainty", "metrics")  # what stage metrics writes beside it
_SYMBOLS = {"uncertainty.temperature": "T", "decode.beam": "B"}  # those of tables and figures


def folder_of_points(stage: str, task: str, overrides: Any, swept: Sequence[str] = ()) -> str:
    """Return the default folder of a multirun in io.root, such as `multirun/decode.beam`.

    It is named after the keys that are swept, so that a multirun with further values, or of the
    next stage, continues the same points. Stage sweep has a folder for each task.
    """
    if stage == "sweep":
        return f"sweep/{task}"
    keys = [key for key, _ in _divided(overrides, swept)[0] if key.split(".")[0] != "io"]
    return f"multirun/{_file_name('+'.join(keys)) or 'all'}"


def point_name(overrides: Any, swept: Sequence[str] = ()) -> str:
    """Return the default folder of a point in that of its multirun, such as `point-decode.beam-5`.

    It names the overrides whose keys are in `swept`, and has a digest of those that all points
    share; if none is swept, it names all. Characters that Hydra's command line does not accept
    without quotes become `-`, and of a path only the last component stays; a digest then tells
    names apart.
    """
    pairs, shared = _divided(overrides, swept)
    exact = "+".join(f"{key}-{value}" for key, value in pairs)
    short = "+".join(f"{key}-{value.rpartition('/')[2]}" for key, value in pairs)
    is_exact = short == exact and not any("+" in value for _, value in pairs)
    name = _file_name(short, None if is_exact else exact)
    return "-".join(filter(None, ["point", name, digest(*shared)[:_DIGITS] if shared else ""]))


def _divided(
    overrides: Any, swept: Sequence[str]
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return (key, value) of the overrides that names contain, and of those that points share."""
    pairs = [pair for pair in sorted(_pairs(overrides)) if not _is_any(pair[0], _NOT_IN_NAMES)]
    named = [pair for pair in pairs if pair[0] in swept] or pairs
    return named, [pair for pair in pairs if pair not in named]


def label_of_point(overrides: Any, swept: Sequence[str]) -> str:
    """Return what the lines that a point logs begin with, such as `T=1 B=5: `; empty if alone."""
    names = short_names(pair for pair in _pairs(overrides) if pair[0] in swept)
    return f"{names}: " if names else ""


def short_names(settings: Iterable[tuple[str, str]]) -> str:
    """Return `T=1 resamples=100 ~checkpoint` for two values and a key that is removed."""
    names = [(_SYMBOLS.get(key) or key.rpartition(".")[2], key, value) for key, value in settings]
    return " ".join(f"~{name}" if key[0] == "~" else f"{name}={v}" for name, key, v in names)


# Registered at import, because jobs run in separate processes, which need the resolvers too.
for _resolver in (folder_of_points, point_name, label_of_point):
    OmegaConf.register_new_resolver(_resolver.__name__, _resolver, replace=True)


def label_of_job() -> str:
    """Return the label of the point that this process works for; empty outside of a sweep."""
    if not HydraConfig.initialized():
        return ""
    return str(HydraConfig.get().callbacks["sweep_parent"].label)


def overrides_of_job() -> dict[str, str]:
    """Return key -> value of the overrides of this job that may tell its point from others."""
    return {key: value for key, value in _pairs(_overrides()) if not _is_any(key, _NOT_IN_NAMES)}


def swept_keys_of_job() -> list[str]:
    """Return the keys and groups that the multirun of this job sweeps; none outside of one."""
    return [*HydraConfig.get().callbacks["sweep_parent"].swept] if is_multirun() else []


def keys_of_job() -> list[str]:
    """Return the keys and groups that the overrides of this job set, without packages."""
    return [key.rpartition("@")[2] for key, _ in _pairs(_overrides())]


def _overrides() -> Any:
    return HydraConfig.get().overrides.task if HydraConfig.initialized() else []


def is_multirun() -> bool:
    """Whether this process runs a job of a multirun."""
    return HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN


def folder_of_job() -> Path:
    """Return Hydra's folder of this job of a multirun, relative if the settings are."""
    sweep = HydraConfig.get().sweep
    return Path(sweep.dir) / str(sweep.subdir)


def folder_of_sweep(config: PipelineConfig) -> Path:
    """Return the folder of all points of stage sweep, which makes one without a multirun too."""
    if is_multirun():
        return Path(HydraConfig.get().sweep.dir)
    return Path(config.io.root) / folder_of_points("sweep", config.task.name, [])


def folder_in_sweep(config: PipelineConfig) -> Path:
    """Return the folder of this point of stage sweep."""
    if is_multirun():
        return folder_of_job()
    return folder_of_sweep(config) / point_name(_overrides())


def folder_of_process() -> Path:
    """Return Hydra's folder of the files that describe this run or job."""
    return Path(HydraConfig.get().runtime.output_dir)


def is_point(folder: Path) -> bool:
    """Whether a folder of results is a point, which has links to what it builds on."""
    return any((folder / name).is_symlink() for name in ("prepare", "train", "decode"))


def point_settings(stage: str, config: PipelineConfig) -> PipelineConfig:
    """Return the settings with which a stage works in the point of this job.

    io.root becomes the folder of the point, which has links to the results of io.root that the
    stage reads, and hard links to the parts that it may resume. io.out becomes a folder of its own
    as well, unless the command line makes it depend on the job. Runs are tracked where they would
    be without a multirun. Raises DataError if a swept setting concerns an earlier stage that has
    not run on the point.
    """
    root, folder = Path(config.io.root), folder_of_job()
    if config.io.store is None and config.io.out is None:
        _check_swept_inputs(stage, folder)
    with locked_folder(folder):
        link(folder, root, *input_folders(stage))
        _unlink(folder, output_folders(stage))
        for name in resumed_folders(stage):
            hard_link(root / name / config.task.name, folder / name / config.task.name)
    changes: dict[str, Any] = {"io.root": str(folder)}
    if config.tracking.uri is None:
        changes["tracking.uri"] = f"sqlite:///{root / 'mlflow.db'}"
    if config.io.out is not None:
        changes["io.out"] = str(_out_of_point(config))
    return changed(config, changes)


def _check_swept_inputs(stage: str, folder: Path) -> None:
    """Raise DataError if the results of io.root would pass for those of a swept setting."""
    params = declared_params(stage)
    for key in swept_keys_of_job():
        if params is None or _is_any(key, params) or not _is_of_results(key):
            continue
        readers = readers_before(stage, key)
        outputs = [folder / name for reader in readers for name in output_folders(reader)]
        if readers and not any(path.is_dir() and not path.is_symlink() for path in outputs):
            raise DataError(
                f"{key}: is a setting of stage {readers[-1]}, which has not run on this point. Run "
                f"python -m stages.{readers[-1]} with the same overrides first."
            )


def _is_of_results(key: str) -> bool:
    """Whether a key changes results; groups task and experiment choose many settings at once."""
    name = re.split("[./]", key)[0]
    return name not in (*MACHINE_KEYS, "hydra", "experiment") and key != "task"


def own_results(stage: str, config: PipelineConfig) -> None:
    """Let a stage that runs on a point write there, in place of what the point has links to.

    In a folder of results that is no point, links are the user's own.
    """
    root = Path(config.io.root)
    if config.io.store is not None and config.io.out is not None:
        _unlink(Path(config.io.out), _OF_GIVEN_STORES)
    elif config.io.out is None and (root / _HYDRA).is_dir():
        _unlink(root, output_folders(stage))


def _unlink(folder: Path, names: Iterable[str]) -> None:
    """Remove links as `link` makes them, which are relative and lead to a folder of this name."""
    for path in (folder / name for name in names):
        target = path.readlink() if path.is_symlink() else Path()
        if target.name == path.name and not target.is_absolute():
            path.unlink(missing_ok=True)


def _out_of_point(config: PipelineConfig) -> Path:
    """Return the folder of this point in io.out; stage tables reads its input there as well.

    It is io.out itself if that tells the points apart: nothing else is swept, or it depends on the
    job.
    """
    out = Path(str(config.io.out))
    raw, swept = dict(_pairs(_overrides())), swept_keys_of_job()
    if swept == ["io.out"] or _INTERPOLATION.search(raw.get("io.out", "")):
        return out
    others = [f"{key}={value}" for key, value in raw.items() if key != "io.out"]
    own = out / point_name(others, swept)
    if config.io.store is None and (out / _STORES).is_file():
        with locked_folder(own):
            link(own, out, _STORES, *_OF_GIVEN_STORES)
    return own


def unread_keys(stage: str, keys: Iterable[str]) -> list[str]:
    """Return the keys that make no difference between points until a later stage reads them."""
    params = declared_params(stage)
    if params is None:
        return []
    return [
        key
        for key in keys
        if _is_of_results(key) and not is_read(key, params) and not readers_before(stage, key)
    ]


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Make a folder and wait until no other point works on it."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder.with_name(f".{folder.name}.lock")
    with exclusive_lock(lock, f"a point in {folder}", wait=True):
        yield


def link(folder: Path, source: Path, *names: str) -> None:
    """Make links in `folder` to what `source` has of these names.

    What `folder` has of its own stays; a link to another source is replaced.
    """
    for name in names:
        path, target = folder / name, os.path.relpath(source / name, folder)
        if path.is_symlink() and str(path.readlink()) != target:
            path.unlink()
        if (source / name).exists() and not os.path.lexists(path):
            path.symlink_to(target)


def hard_link(source: Path, folder: Path) -> None:
    """Make `folder` a copy of `source` by hard links, unless it exists.

    Files are copied where the file system has no hard links, or is another one.
    """
    if source.is_dir() and not folder.exists():
        temporary = folder.with_name(f".{folder.name}.linking")
        shutil.rmtree(temporary, ignore_errors=True)
        unfinished = shutil.ignore_patterns(".*")
        shutil.copytree(
            source, temporary, symlinks=True, copy_function=_link_or_copy, ignore=unfinished
        )
        temporary.replace(folder)


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK):
            raise
        shutil.copy2(source, target)


class Record:
    """What the process that started a multirun learns about one of its points, from a file.

    | key | content |
    |---|---|
    | number | the number of the job |
    | stage | the stage that ran |
    | overrides | pairs of key and value, as requested |
    | summary | the folder of the summary |
    | folder | the folder of the results, once it is known |
    | numbers, intervals | name -> value, name -> its ends, if the stage reports them itself |
    | ended, reason | whether the job has ended, and why it failed; null if it did not |
    """

    def __init__(self) -> None:
        hydra = HydraConfig.get()
        self.multirun = Path(hydra.callbacks["sweep_parent"].folder)
        self._number = int(hydra.job.num)
        self._path = _folder_of_records(self.multirun) / f"{self._number}.json"

    @classmethod
    def started(cls, stage: str) -> Self:
        """Return the record of this job, which has just started."""
        record = cls()
        record._path.parent.mkdir(parents=True, exist_ok=True)
        content: dict[str, Any] = {"number": record._number, "stage": stage}
        content |= {"ended": False, "reason": None}
        content |= {
            "overrides": [*overrides_of_job().items()],
            "summary": str(HydraConfig.get().sweep.dir),
        }
        write_json(record._path, content)
        return record

    def write(self, **entries: Any) -> None:
        """Change entries of the record."""
        write_json(self._path, read_json(self._path, "sweep") | entries)

    def claim(self, key: str, folder: Path) -> None:
        """Record where the results go, which setting `key` says.

        Raises ConfigError if another point of the multirun has the same folder.
        """
        self.write(folder=str(folder))
        for other in read_records(self.multirun):
            if other["number"] != self._number and other.get("folder") == str(folder):
                raise ConfigError(
                    f"{key}: points {other['number']} and {self._number} have the same folder "
                    f"({folder}). Leave it out, or make it depend on ${{hydra:job.num}}."
                )


def read_records(multirun: Path) -> list[dict[str, Any]]:
    """Return the records of a multirun, in the order of its jobs."""
    records = [read_json(path, "sweep") for path in _folder_of_records(multirun).glob("*.json")]
    return sorted(records, key=lambda record: int(record["number"]))


def _folder_of_records(multirun: Path) -> Path:
    return multirun / "points"


def _pairs(overrides: Any) -> list[tuple[str, str]]:
    """Return (key, value) of overrides, without resolving them."""
    texts: Sequence[str] = (
        OmegaConf.to_container(overrides, resolve=False)  # type: ignore[assignment]
        if OmegaConf.is_config(overrides)
        else overrides
    )
    pairs = [str(text).lstrip("+").partition("=") for text in texts]
    return [(key, value) for key, _, value in pairs]


def _is_any(key: str, names: Iterable[str]) -> bool:
    return any(f"{key}.".startswith(f"{name}.") for name in names)


def _file_name(text: str, exact: str | None = None) -> str:
    """Return a text as the name of a file; `exact` is what a digest at its end tells apart."""
    name = _ODD.sub("-", text)
    if exact is None and name == text and len(name) <= _LONGEST_NAME:
        return name
    readable = re.sub("-+", "-", name)[:_LONGEST_NAME].strip("-")
    return f"{readable}-{digest(exact or text)[:_DIGITS]}"
