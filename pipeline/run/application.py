"""How a stage runs: one function, with a Hydra application, its checks and its parts around it."""

from __future__ import annotations

import errno
import inspect
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, Literal, NoReturn, cast

import hydra
import yaml
from hydra.core.hydra_config import HydraConfig
from hydra.errors import CompactHydraException, HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, read_write
from omegaconf.errors import MissingMandatoryValue

from pipeline import tracking
from pipeline.errors import ConfigError, PipelineError
from pipeline.run.artifacts import PartFolder
from pipeline.run.files import digest, file_sha256
from pipeline.run.locks import exclusive_lock
from pipeline.run.logs import kept_log
from pipeline.run.overrides import check_overrides, yaml_message
from pipeline.run.settings import CONF, ROOT, PipelineConfig, masked, typed, typed_file

_DVC_YAML = ROOT / "dvc.yaml"
FAILED = "failed.txt"  # in a run's own folder: why it failed
_BETWEEN_PARTS = " + "  # where one job has several
Stage = Callable[[PipelineConfig], None]
AfterSweep = Callable[[tracking.Sweep], None]
Alone = Literal["task", "root", "nowhere"]
# What a full disk, a quota, a limit on the size of files and a read-only folder answer.
_REFUSALS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM)
_RULES = {errno.EISDIR: "must be a file", errno.ENOTDIR: "must stand in a folder"}  # of others

# One thread a process, as many processes as cores: set before any numeric library is loaded.
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
for _variable in _THREADS:
    os.environ.setdefault(_variable, "1")
# glibc's allocator in the processes of parts: keep large blocks instead of giving each one back,
# which costs a fifth of the time of training in page faults.
for _variable in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"):
    os.environ.setdefault(_variable, str(2**32))
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("DO_NOT_TRACK", "1")
# The semaphores of workers that were ended are removed by a process that would say so.
os.environ.setdefault("PYTHONWARNINGS", "ignore:resource_tracker:UserWarning")

# Runs that start in the same instant get folders of their own.
OmegaConf.register_new_resolver("process_id", os.getpid, use_cache=True, replace=True)


def run(
    stage: Stage,
    *,
    alone_in: Alone = "task",
    after_sweep: AfterSweep | None = None,
    in_parts: bool = False,
) -> None:
    """Run `stage` as a Hydra application: check the command line, compose, mask, call.

    alone_in: where one run of the stage at a time may write: results of its task, of all tasks
    (root), or nowhere, where the stage itself keeps its runs apart.
    in_parts: whether it makes setting `part` alone where that is given.
    after_sweep: called once the jobs of a `--multirun` have ended; it may raise PipelineError.

    The keys that the stage's `params:` in dvc.yaml does not name read as missing, under DVC and by
    hand alike. Exit codes: 0 done; 1 the stage failed; 2 the command line is wrong; 130 or 143 it
    was told to end (SIGINT, SIGTERM), and its parts with it.
    """
    try:
        check_overrides(sys.argv[1:])
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra lets errors through, to be said in its place
    for ending in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) is signal.SIG_DFL:  # nohup ignores the second
            signal.signal(ending, _told_to_end)
    whole = hydra.main(version_base="1.3", config_path=str(CONF), config_name="pipeline")
    with _said_errors(stage.__name__):
        application = whole(_application(stage, alone_in, in_parts))
        tracking.run_and_end_sweep(application, after_sweep or (lambda _: None))


def _application(stage: Stage, alone_in: Alone, in_parts: bool) -> Callable[[DictConfig], None]:
    name = stage.__name__

    def application(config: DictConfig) -> None:
        try:
            _run_with_settings(stage, _settings(config), alone_in, in_parts)
        except Exception as error:
            message = _sentence(error, name)
            _keep_reason(message or f"{type(error).__name__}: {error}")
            if message is None:
                raise
            _end(message)

    application.__module__ = f"stages.{name}"  # Hydra names the job after it
    return application


@contextmanager
def _said_errors(name: str) -> Iterator[None]:
    """What ends the run of stage `name` is said in a sentence, and told by the exit code."""
    try:
        yield
    except KeyboardInterrupt:
        _say_interrupted(name)
        sys.exit(128 + signal.SIGINT)
    except _ToldToEnd:
        _say_interrupted(name)
        raise
    except HydraException as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    except yaml.YAMLError as error:  # on a command line that passed unchecked
        print(f"error: {yaml_message(error)}", file=sys.stderr)
        sys.exit(1)
    except Exception as error:  # of Hydra's own files, or after a sweep
        message = _sentence(error, name)
        if message is None:
            raise
        print(f"error: {message}", file=sys.stderr)
        sys.exit(1)


def run_parts(config: PipelineConfig, folder: PartFolder, parts_per_job: int = 1) -> list[str]:
    """Make the missing parts of {io.root}/{stage}/{task} by one Hydra multirun; their names.

    Jobs of some parts each run side by side through the launcher that was chosen. Raises
    PipelineError naming the parts that failed; those that were finished stay.
    """
    missing = folder.missing()
    if missing:
        jobs = [
            _BETWEEN_PARTS.join(missing[start : start + parts_per_job])
            for start in range(0, len(missing), parts_per_job)
        ]
        _run_jobs(config, folder, jobs)
        failed = folder.missing()
        if failed:
            raise PipelineError(
                f"{folder.root}: {len(failed)} of {len(missing)} parts failed: "
                f"{', '.join(failed)}; the rest is kept and the next run makes only these"
            )
    folder.write_manifest()
    return missing


def run_pieces(config: PipelineConfig, folder: PartFolder, pieces: Mapping[str, list[str]]) -> None:
    """Make the pieces of missing parts side by side, before `run_parts` puts them together.

    pieces: of each part, what setting `part` says for them; none where a part is made in one.
    Raises PipelineError where a job failed; the pieces that were finished stay.
    """
    jobs = [piece for part in folder.missing() for piece in pieces[part]]
    if jobs and _run_jobs(config, folder, jobs):
        raise PipelineError(
            f"{folder.root}: pieces of parts failed, see above; the rest is kept and the next run "
            f"makes only these"
        )


def declared_params(stage: str) -> list[str] | None:
    """The keys of the composed config that dvc.yaml lists as params of a stage; None: no limit."""
    if stage not in _dvc_stages():
        return None
    for entry in _dvc_stages()[stage].get("params", []):
        if isinstance(entry, dict):
            for path, keys in entry.items():
                if path.endswith("resolved.yaml"):
                    return [str(key) for key in keys]
    return None


def code_digest(stage: str, *implementations: Callable[..., Any]) -> str:
    """sha256 of the code behind a stage: the sources among its deps in dvc.yaml, and plug-ins.

    It stands in the digest of every part, so that an edit of code makes the parts again.
    """
    deps = _dvc_stages()[stage]["deps"]
    paths = [ROOT / dep for dep in deps if dep.startswith(("pipeline/", "stages/"))]
    sources = [source for path in paths for source in sorted(path.rglob("*.py")) or [path]]
    for function in implementations:
        source = _source(function)
        if source not in sources and not source.is_relative_to(ROOT / "pipeline"):
            sources.append(source)
    return digest([file_sha256(source) for source in sources])


@cache
def _dvc_stages() -> dict[str, Any]:
    stages: dict[str, Any] = yaml.safe_load(_DVC_YAML.read_text(encoding="utf-8"))["stages"]
    return stages


def _source(function: Callable[..., Any]) -> Path:
    try:
        return Path(inspect.getfile(function)).resolve()
    except TypeError:
        raise ConfigError(
            f"_target_ must name a function or class that is written in Python, got {function!r}"
        ) from None


def _run_jobs(config: PipelineConfig, folder: PartFolder, jobs: list[str]) -> int:
    """Run this stage once for each value of setting `part`, by one multirun; its exit code."""
    command = [sys.executable, "-m", f"stages.{folder.root.parent.name}", "--multirun"]
    command += [
        f"from_config={_quoted(str(config.from_config))}",
        f"io.root={_quoted(config.io.root)}",
        f"part={','.join(_quoted(one) for one in jobs)}",
        *_launcher(),
    ]
    return _run_group(command)


def _launcher() -> list[str]:
    """The overrides that choose where the parts of this run are made: as this run was asked.

    A job of a cluster makes its parts itself: were it to wait for others, jobs that wait could fill
    the cluster.
    """
    hydra_config = HydraConfig.get()
    chosen = hydra_config.runtime.choices["hydra/launcher"]
    if hydra_config.mode == RunMode.MULTIRUN and chosen != "local":
        return ["hydra/launcher=local"]
    settings = [one for one in hydra_config.overrides.hydra if "hydra.launcher." in one]
    return [f"hydra/launcher={chosen}", *settings]


def _run_group(command: list[str]) -> int:
    """Run a command whose processes, workers of workers too, end when this process has to."""
    with subprocess.Popen(command, process_group=0) as process:
        try:
            return process.wait()
        except BaseException:
            with suppress(ProcessLookupError):  # it has just ended by itself
                os.killpg(process.pid, signal.SIGTERM)
            raise


class _ToldToEnd(SystemExit):
    """A signal asked this process to end; the exit code says which."""


def _told_to_end(signal_number: int, _: FrameType | None) -> NoReturn:
    raise _ToldToEnd(128 + signal_number)


def _say_interrupted(name: str) -> None:
    if any(one.startswith("part=") for one in sys.argv):
        return  # the run that started these parts says it
    print(
        f"error: stage {name} was told to end: what is whole is kept, and the next run goes on",
        file=sys.stderr,
    )


def _refusal(error: OSError) -> str | None:
    """A sentence on what the machine refused: room, a permission, a file that is none.

    None where the error is of another kind and names no file.
    """
    if error.errno in _REFUSALS:
        place = error.filename or "the folder of results"
        rule = "must be readable and writable and have room"
    elif error.errno is not None and error.filename is not None:
        place = error.filename
        rule = _RULES.get(error.errno, "must be as a stage leaves it")
    else:
        return None
    return (
        f"{place} {rule}, got '{os.strerror(error.errno)}': "
        f"what is whole is kept, and the next run goes on"
    )


def _end(message: str) -> NoReturn:
    """End the run, or this job of a multirun, with one line."""
    if HydraConfig.get().mode == RunMode.MULTIRUN:
        raise CompactHydraException(f"error: {message}")
    print(f"error: {message}", file=sys.stderr)
    sys.exit(1)


def _keep_reason(message: str) -> None:
    """Write why this run failed into its own folder."""
    with suppress(OSError):  # what a full disk refuses is told all the same
        path = Path(HydraConfig.get().runtime.output_dir) / FAILED
        path.write_text(message, encoding="utf-8")


def _sentence(error: Exception, name: str) -> str | None:
    """What a person is told of an error of stage `name`; None: nothing foresaw it."""
    if isinstance(error, PipelineError):
        return str(error)
    if isinstance(error, MissingMandatoryValue):
        return (
            f"{error.full_key} must stand under params of stage {name} in dvc.yaml, "
            f"since the stage reads it"
        )
    return _refusal(error) if isinstance(error, OSError) else None


def _run_with_settings(
    stage: Stage, settings: PipelineConfig, alone_in: Alone, in_parts: bool
) -> None:
    if settings.part is not None and not in_parts:
        raise ConfigError(
            f"part must be null, as stage {stage.__name__} has none, got {settings.part}"
        )
    if settings.part is None:
        _run_logged(stage, settings, alone_in)
        return
    failures = []
    for part in str(settings.part).split(_BETWEEN_PARTS):
        with read_write(cast(DictConfig, settings)):
            settings.part = part
        try:
            _run_logged(stage, settings, alone_in)
        except PipelineError as error:  # told when all were tried
            failures.append(str(error))
    if failures:
        raise PipelineError("; ".join(failures))


def _run_logged(stage: Stage, settings: PipelineConfig, alone_in: Alone) -> None:
    task = None if alone_in == "root" else settings.task.name
    work = ".".join(one for one in (stage.__name__, task, settings.part) if one)
    root = Path(settings.io.root)
    lock = None if alone_in == "nowhere" else root / "hydra" / "locks" / work
    try:
        with kept_log(root / "logs" / f"{work}.log", _start(settings)):
            _run_alone(stage, settings, lock)
    except OSError as error:
        if error.errno in _REFUSALS and error.filename is None:
            error.filename = str(root)  # a write that finds no room does not say where
        raise


def _start(settings: PipelineConfig) -> str:
    """What of a run's surroundings can change its numbers, beside its settings file."""
    threads = ", ".join(f"{name}={os.environ[name]}" for name in _THREADS)
    seeds = f"seed {settings.seed}, ensemble.seeds {settings.ensemble.seeds}"
    return f"starts: {settings.from_config}; {seeds}; {threads}"


def _run_alone(stage: Stage, settings: PipelineConfig, lock: Path | None) -> None:
    name = stage.__name__
    visible = declared_params(name)
    if visible is not None:
        settings = masked(settings, visible)
    if settings.io.out is not None or lock is None:
        stage(settings)
        return
    is_job = settings.part is not None or HydraConfig.get().mode == RunMode.MULTIRUN
    with exclusive_lock(lock, lock.name, wait=is_job):
        stage(settings)


def _settings(config: DictConfig) -> PipelineConfig:
    """The full typed settings: from the file that from_config names, or as composed."""
    if config.from_config is None:
        path = Path(HydraConfig.get().runtime.output_dir) / "settings.yaml"
        path.write_text(OmegaConf.to_yaml(config, resolve=True), encoding="utf-8")
        return typed(cast(DictConfig, OmegaConf.merge(config, {"from_config": str(path)})))
    given = [str(one).split("=")[0] for one in HydraConfig.get().overrides.task]
    return typed_file(Path(config.from_config), config, given)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
