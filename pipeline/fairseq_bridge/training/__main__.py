"""One of the processes that train a member: `python -m pipeline.fairseq_bridge.training JOB`."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from pipeline.fairseq_bridge.training.job import read_job
from pipeline.run.settings import implementation

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s][%(name)s] %(message)s")
    job = read_job(Path(sys.argv[1]))
    implementation(job.train["_target_"], "train._target_")(job)
