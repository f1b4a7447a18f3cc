"""What comes after decoding, imported as a whole: no model and no runner comes with it."""

import subprocess
import sys

FOREIGN = ("torch", "fairseq", "sentencepiece", "hydra", "mlflow", "dvc")
CODE = f"""
import importlib, pkgutil, sys
from pipeline import metrics, report, store, uncertainty
for room in (metrics, report, store, uncertainty):
    for module in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print([name for name in {FOREIGN} if name in sys.modules], end="")
"""


def test_what_comes_after_decoding_needs_no_model_and_no_runner() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]", "")
