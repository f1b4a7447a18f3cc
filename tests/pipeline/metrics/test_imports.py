import subprocess
import sys

FOREIGN = ("torch", "fairseq", "hydra", "mlflow", "dvc")
CODE = f"""
import sys
from pipeline.metrics import error_detection, headline, ood_detection, performance, token_errors
from pipeline.report import beyond, latex, markdown, paper_layouts, released_rules, results
found = [name for name in {FOREIGN} if name in sys.modules]
print(found, end="")
"""


def test_metrics_and_tables_need_no_model_and_no_runner():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]", "")
