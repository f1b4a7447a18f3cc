"""One of the processes that train a member: `torchrun -m pipeline.fairseq_bridge.worker JOB`."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from pipeline.config import implementation
from pipeline.fairseq_bridge.job import read_job

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s][%(name)s] %(message)s")
    job = read_job(Path(sys.argv[1]))
    implementation(job.train["_target_"], "train._target_")(job)
