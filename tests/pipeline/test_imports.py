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


FAIRSEQ = """
import sys
from pipeline.fairseq_bridge import import_fairseq
import_fairseq("fairseq.trainer")
print([name for name in ("sklearn", "sklearn.metrics", "scipy.stats") if name in sys.modules])
from scipy.stats import spearmanr
from sklearn.metrics import f1_score
print(f1_score([1, 0], [1, 0]), round(spearmanr([1, 2, 3], [1, 2, 3]).statistic, 6), end="")
"""


def test_fairseq_comes_without_what_it_does_not_need_here_and_leaves_the_place_free() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAIRSEQ], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "[]\n1.0 1.0"), done.stderr
