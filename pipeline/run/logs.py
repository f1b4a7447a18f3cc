"""The log file of a run: what it logs and how it ends, next to the results."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pipeline.errors import PipelineError

# What is said about each of many parts: it stands in the log files and is not printed (see the
# loggers in conf/pipeline.yaml).
DETAILS = logging.getLogger("details")
_FORMAT = "%(asctime)s %(process)d %(levelname)s %(message)s"


@contextmanager
def kept_log(path: Path, start: str) -> Iterator[None]:
    """Append the line `start`, what the block logs and how it ends to the file `path`.

    If the file cannot be written any more, one warning is printed and the run continues. Raises
    OSError if the file cannot be opened.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = _LogFile(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter(_FORMAT))
    # In an application details do not propagate, so that they are not printed.
    loggers = [logging.getLogger(), *([] if DETAILS.propagate else [DETAILS])]
    for logger in loggers:
        logger.addHandler(handler)
    _write(handler, logging.INFO, start)
    try:
        yield
    except PipelineError as error:
        _write(handler, logging.ERROR, str(error))
        raise
    except (KeyboardInterrupt, SystemExit) as error:
        _write(handler, logging.ERROR, f"interrupted ({type(error).__name__} {error})")
        raise
    except BaseException as error:
        _write(handler, logging.ERROR, "failed with an unexpected error", error)
        raise
    else:
        _write(handler, logging.INFO, "done")
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
        with suppress(OSError):  # a full disk was reported before
            handler.close()


class _LogFile(logging.FileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
            return
        self.addFilter(lambda _: False)
        reason = os.strerror(error.errno or 0)
        print(
            f"warning: {self.baseFilename}: cannot be written ({reason}). "
            "The run continues without it.",
            file=sys.stderr,
        )


def _write(
    handler: logging.Handler, level: int, text: str, error: BaseException | None = None
) -> None:
    trace = (type(error), error, error.__traceback__) if error else None
    handler.handle(logging.LogRecord(__name__, level, __file__, 0, text, None, trace))
