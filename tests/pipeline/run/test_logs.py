"""The log of a run keeps messages and errors, and survives a full disk."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from pipeline.errors import DataError
from pipeline.run.logs import DETAILS, kept_log
from pipeline.run.settings import CONF

_log = logging.getLogger(__name__)


def test_log_has_the_messages_and_the_end_of_each_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    path = tmp_path / "logs" / "train.nmt_ende.log"
    with kept_log(path, "starts: settings.yaml"):
        _log.info("read 8, kept 7")
    with pytest.raises(DataError), kept_log(path, "starts again"):
        raise DataError("file must hold rows, got none")
    with pytest.raises(SystemExit), kept_log(path, "starts again"):
        raise SystemExit(143)
    with pytest.raises(ZeroDivisionError), kept_log(path, "starts again"):
        _ = 1 // 0
    _log.info("outside of a run")
    lines = path.read_text().splitlines()
    messages = [line.split(" ", 3)[3] for line in lines if line.startswith("20")]
    assert messages[:5] == [
        "INFO starts: settings.yaml",
        "INFO read 8, kept 7",
        "INFO done",
        "INFO starts again",
        "ERROR file must hold rows, got none",
    ]
    assert "ERROR interrupted (SystemExit 143)" in messages
    assert lines[-1] == "ZeroDivisionError: integer division or modulo by zero"


def test_log_that_cannot_be_written_gives_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)
    path = tmp_path / "full.log"
    path.symlink_to("/dev/full")
    with kept_log(path, "starts"):
        _log.info("first")
        _log.info("second")
    assert (
        capsys.readouterr().err == f"warning: {path}: cannot be written (No space left on device). "
        "The run continues without it.\n"
    )


def test_details_stand_in_the_file_and_are_not_printed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(DETAILS, "propagate", False)  # as conf/pipeline.yaml has it
    path = tmp_path / "decode.log"
    with kept_log(path, "starts"):
        DETAILS.info("part a: 5 sentences")
        _log.info("all parts: 10 sentences")
    assert caplog.messages == ["all parts: 10 sentences"]
    assert "part a: 5 sentences" in path.read_text()


def test_details_have_a_logger_of_their_own_in_conf() -> None:
    logging_of_jobs = OmegaConf.load(CONF / "pipeline.yaml").hydra.job_logging
    assert logging_of_jobs.loggers[DETAILS.name] == {
        "level": "INFO",
        "handlers": [],
        "propagate": False,
    }
