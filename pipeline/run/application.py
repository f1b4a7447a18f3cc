"""The Hydra application around every stage: settings, locks, logs, errors and exit codes."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NoReturn, cast

import hydra
import yaml
from hydra.core.hydra_config import HydraConfig
from hydra.errors import CompactHydraException, HydraException
from omegaconf import DictConfig, OmegaConf, read_write
from omegaconf.errors import MissingMandatoryValue

from pipeline import tracking
from pipeline.errors import ConfigError, DataError, PipelineError, StoreError
from pipeline.run.code import declared_params
from pipeline.run.environment import THREAD_COUNTS
from pipeline.run.extras import extras_named
from pipeline.run.help import HELP_FLAGS, print_help
from pipeline.run.interruption import (
    Interrupted,
    code_of_interruption,
    interrupt_on_signals,
    no_process_left_behind,
)
from pipeline.run.jobs import parts_of_job
from pipeline.run.locks import exclusive_lock, lock_holder
from pipeline.run.logs import kept_log
from pipeline.run.overrides import (
    check_launcher,
    check_overrides,
    tidied,
    with_swept_keys,
    yaml_message,
)
from pipeline.run.points import (
    Record,
    folder_of_job,
    is_multirun,
    own_results,
    point_settings,
)
from pipeline.run.settings import CONF, PipelineConfig, masked, plain, typed, typed_file

Stage = Callable[[PipelineConfig], None]
LockScope = Literal["task", "root"]
# A full disk, a quota, a limit on the size of files, a read-only folder, a missing permission.
_REFUSALS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM)
_STAGE = re.compile(r"python -m stages\.(\w+)")  # in the advice of an error
_RESUME = "finished parts are kept and the next run resumes"

# Registered at import, because jobs run in separate processes, which import this module and need
# the resolvers too. Runs that start in the same instant get different folders by the process id.
OmegaConf.register_new_resolver("process_id", os.getpid, use_cache=True, replace=True)


def run(
    stage: Stage,
    *,
    lock: LockScope | None = "task",
    makes_points: bool = False,
    has_parts: bool = False,
    needs_root: bool = False,
    uses: Collection[str] = (),
) -> None:
    """Run `stage` as a Hydra application: check the command line, compose, mask, call.

    lock: the results that only one run of the stage at a time may write: those of its task
    ("task") or of all tasks ("root"). None: the stage holds its own locks.
    makes_points: whether the stage itself works in the folders of the points of a multirun;
    otherwise each job runs with the settings of `point_settings`.
    has_parts: whether the stage can make only the part that setting `part` names.
    needs_root: whether the stage reads io.root and so does not start if there is no such folder.
    uses: the settings of group io, besides root, that the stage uses; it refuses all others.

    Settings that the stage's `params:` in dvc.yaml do not list read as missing, under DVC and by
    hand alike. Exit codes: 0 done; 1 the stage failed; 2 the command line is wrong; 130 or 143
    interrupted by SIGINT or SIGTERM, together with its jobs.
    """
    sys.argv[1:] = tidied(sys.argv[1:])
    try:
        if {*HELP_FLAGS} & {*sys.argv[1:]}:
            print_help(stage, sys.argv[1:], uses)
            return
        settings = check_overrides(sys.argv[1:])
        check_launcher(sys.argv[1:])
        if needs_root and settings:
            _check_root(settings)
        sys.argv[1:] = with_swept_keys(sys.argv[1:])
    except PipelineError as error:
        _print_error(error)
        sys.exit(2 if isinstance(error, ConfigError) else 1)
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises errors instead of printing them
    interrupt_on_signals()
    hydra_main = hydra.main(version_base="1.3", config_path=str(CONF), config_name="pipeline")
    name = stage.__name__
    with _reported_errors(name), _reported_interruption(name), no_process_left_behind():
        application = hydra_main(_application(stage, lock, makes_points, has_parts, uses))
        tracking.run_and_end_sweep(application, _end_of_multirun)


def _check_root(settings: PipelineConfig) -> None:
    """Raise DataError for results that are not there, before Hydra makes a folder for them."""
    io = settings.io
    if io.store is None and io.out is None and not Path(io.root).exists():
        raise DataError(
            f"io.root: no such folder of results ({io.root}). Correct the path, or run "
            "python -m stages.prepare first, and then the stages after it."
        )


def _end_of_multirun(sweep: tracking.Sweep) -> None:
    from pipeline.multirun import close  # it imports pandas and matplotlib

    close(sweep)


def _application(
    stage: Stage,
    lock: LockScope | None,
    makes_points: bool,
    has_parts: bool,
    uses: Collection[str],
) -> Callable[[DictConfig], None]:
    """Return what Hydra calls: once for a run, or once for each job of a multirun."""
    name = stage.__name__

    def application(config: DictConfig) -> None:
        # The jobs that make the parts of a stage are no points.
        record = Record.started(name) if is_multirun() and config.part is None else None
        try:
            if record:
                record.claim("hydra.sweep.subdir", folder_of_job())
            settings = _settings(config)
            _refuse_unused(settings, name, uses)
            if record and not makes_points:
                settings = point_settings(name, settings)
                if settings.io.out is not None:
                    record.claim("io.out", Path(settings.io.out))
            if settings.part is None:
                own_results(name, settings)
            _run_all(stage, settings, lock, has_parts)
        except Exception as error:
            interruption = code_of_interruption(error)
            if interruption is not None:
                raise Interrupted(interruption) from error
            message = _message(error, name)
            if record:
                unexpected = f"{type(error).__name__}: {error}; see logs/ in its folder"
                with suppress(OSError):  # a full disk is reported anyway
                    record.write(ended=True, reason=message or unexpected)
            if message is None:
                raise
            _fail(message)
        if record:
            record.write(ended=True)

    application.__module__ = f"stages.{name}"  # Hydra names the job after it
    return application


@contextmanager
def _reported_errors(name: str) -> Iterator[None]:
    """Turn an error of stage `name` into one line and an exit code."""
    try:
        yield
    except HydraException as error:  # from a job, which has already written it as one line
        print(error, file=sys.stderr)
        sys.exit(1)
    except yaml.YAMLError as error:  # composed in a job of a sweep
        _print_error(yaml_message(error))
        sys.exit(1)
    except Exception as error:  # while Hydra writes its own files, or after a sweep
        message = _message(error, name)
        if message is None:
            raise
        _print_error(message)
        sys.exit(1)


@contextmanager
def _reported_interruption(name: str) -> Iterator[None]:
    """Turn an interruption of stage `name` into one line and an exit code that names the signal.

    This includes errors to which an interruption has led.
    """
    try:
        yield
    except BaseException as error:
        code = code_of_interruption(error)
        if code is None:
            raise
        is_job = any(argument.startswith("part=") for argument in sys.argv)
        if not is_job:  # the run reports it once for all of its jobs
            _print_error(f"stage {name}: interrupted; {_RESUME}")
        sys.exit(code)


def _print_error(message: object) -> None:
    print(f"error: {message}", file=sys.stderr)


def _fail(message: str) -> NoReturn:
    """End the run, or this job of a multirun, with one line."""
    if is_multirun():
        raise CompactHydraException(f"error: {message}")
    _print_error(message)
    sys.exit(1)


def _message(error: Exception, name: str) -> str | None:
    """Return one line about an error of stage `name`; None for an unexpected error."""
    if isinstance(error, PipelineError):
        return str(error)
    if isinstance(error, MissingMandatoryValue):
        return (
            f"{error.full_key}: not among the params of stage {name} in dvc.yaml. "
            "List it there, since the stage reads it."
        )
    return _os_error_message(error) if isinstance(error, OSError) else None


def _os_error_message(error: OSError) -> str | None:
    """Return one line about a file that the system refuses; None for other errors."""
    reason = os.strerror(error.errno) if error.errno is not None else None
    if error.errno in _REFUSALS:
        path = error.filename or "io.root"
        return (
            f"{path}: cannot be read or written ({reason}). Make room or grant access; {_RESUME}."
        )
    if reason is not None and error.filename is not None:
        return (
            f"{error.filename}: cannot be read or written ({reason}). "
            "Run the stage that writes it again."
        )
    return None


def _settings(config: DictConfig) -> PipelineConfig:
    """Return the checked settings: from the file that from_config names, or as composed."""
    if config.from_config is None:
        path = Path(HydraConfig.get().runtime.output_dir) / "settings.yaml"
        path.write_text(OmegaConf.to_yaml(config, resolve=True), encoding="utf-8")
        return typed(cast(DictConfig, OmegaConf.merge(config, {"from_config": str(path)})))
    given = [str(override).split("=")[0] for override in HydraConfig.get().overrides.task]
    return typed_file(Path(config.from_config), config, given)


def _refuse_unused(settings: PipelineConfig, name: str, uses: Collection[str]) -> None:
    """Raise ConfigError for a setting of group io that stage `name` would ignore."""
    for key, value in plain(settings.io).items():
        if key != "root" and key not in uses and value not in (None, []):
            raise ConfigError(f"io.{key}: is not used by stage {name} (got {value}). Leave it out.")


def _run_all(
    stage: Stage, settings: PipelineConfig, lock: LockScope | None, has_parts: bool
) -> None:
    """Run the stage: once for all of its work, or once for each part of this job."""
    if settings.part is None:
        _run_logged(stage, settings, lock)
        return
    if not has_parts:
        raise ConfigError(
            f"part: must be null, since stage {stage.__name__} has no parts (got {settings.part})."
        )
    failures = []
    for part in parts_of_job(settings.part):
        with read_write(cast(DictConfig, settings)):
            settings.part = part
        try:
            _run_logged(stage, settings, lock)
        except PipelineError as error:  # reported after all parts of the job have been tried
            failures.append(str(error))
    if failures:
        raise PipelineError(" ".join(failures))


def _run_logged(stage: Stage, settings: PipelineConfig, lock: LockScope | None) -> None:
    # What io.out gets is not of the task of the settings.
    task = None if lock == "root" or settings.io.out is not None else settings.task.name
    work = ".".join(name for name in (stage.__name__, task, settings.part) if name)
    root = Path(settings.io.root)
    try:
        log = kept_log(root / "logs" / f"{work}.log", _first_line(settings))
        with log, extras_named(f"stage {stage.__name__}"):
            lock_file = None if lock is None else root / "hydra" / "locks" / work
            _run_locked(stage, settings, lock_file)
    except OSError as error:
        if error.errno in _REFUSALS and error.filename is None:
            error.filename = str(root)  # a write to a full disk does not name its file
        raise


def _first_line(settings: PipelineConfig) -> str:
    """Return the first line of the log: settings, seeds and thread counts of the run."""
    threads = ", ".join(f"{name}={os.environ.get(name, 'unset')}" for name in THREAD_COUNTS)
    seeds = f"seed {settings.seed}, ensemble.seeds {settings.ensemble.seeds}"
    return f"start: {settings.from_config}; {seeds}; {threads}"


def _run_locked(stage: Stage, settings: PipelineConfig, lock_file: Path | None) -> None:
    visible = declared_params(stage.__name__)
    if visible is not None:
        settings = masked(settings, visible)
    if settings.io.out is not None or lock_file is None:
        stage(settings)
        return
    is_job = settings.part is not None or is_multirun()
    with exclusive_lock(lock_file, lock_file.name, wait=is_job):
        try:
            stage(settings)
        except (DataError, StoreError) as error:
            running = _running(str(error), lock_file)
            if not running:
                raise
            raise DataError(f"{error}{running}") from None


def _running(message: str, own_lock: Path) -> str:
    """Say whether the stage that an error asks to run is running already, for the same task."""
    for name in _STAGE.findall(message):
        task = own_lock.name.partition(".")[2]
        for lock_file in own_lock.parent.glob(f"{name}.{task or '*'}"):
            holder = lock_holder(lock_file) if lock_file != own_lock else None
            if holder:
                return f" It is running now ({lock_file.name}, {holder}): wait until it ends."
    return ""
