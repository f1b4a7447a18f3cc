"""What tests of several parts need."""

from __future__ import annotations

import atexit
import gc
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from filelock import FileLock

from pipeline.run.settings import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# How many jobs a stage runs side by side, as joblib counts cores: one after the other in its own
# process, as other tests have the cores, but where `side_by_side` asks for more.
CORES_OF_A_STAGE = "LOKY_MAX_CPU_COUNT"
os.environ.setdefault(CORES_OF_A_STAGE, "1")
# As stages do, and before a test imports torch: one thread a process, whatever is imported first,
# and few looks for unreachable cycles.
for _variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
gc.set_threshold(50_000)
atexit.register(gc.freeze)

# Invented words: English, German, French.
_VERBS = [
    ("Open", "Öffnen", "Ouvrez"),
    ("Close", "Schließen", "Fermez"),
    ("Move", "Ziehen", "Mettez"),
]
_COLOURS = [("red", "roten", "rouge"), ("green", "grünen", "verte"), ("blue", "blauen", "bleue")]
_THINGS = [("door", "Deckel", "porte"), ("lamp", "Leuchter", "lampe"), ("box", "Kasten", "caisse")]
_PLACES = [
    ("garden", "Garten", "jardin"),
    ("kitchen", "Küche", "cuisine"),
    ("hall", "Saal", "salle"),
]
_ORDERS = ("{} the {} {} beyond the {}.", "{} den {} {} hinter: {}.", "{} la {} {} derrière {}.")
_PACKAGES = {
    "libreoffice-help-en-us": "en-US",
    "libreoffice-help-de": "de",
    "libreoffice-help-fr": "fr",
}


_LONGEST_FIRST = (
    "test_pipeline.py",
    "faults/test_killed.py",
    "stages/test_sweep.py",
    "test_dvc_runs.py",
    "stages/slurm/test_decodes_and_points.py",
    "stages/slurm/test_slurm.py",
    "stages/server/test_server.py",
    "pipeline/tracking/test_run.py",
    "docs/test_sessions.py",
    "faults/test_killed_under_dvc.py",
    "stages/test_application.py",
    "plugin/test_plugin.py",
    "pipeline/fairseq_bridge/training/test_trainer.py",
    "pipeline/test_config.py",
    "docs/test_published_models.py",
    "stages/test_decode.py",
    "pipeline/report/page/test_browser.py",
    "stages/test_sweep_failures.py",
)


@pytest.fixture(scope="module")
def side_by_side() -> Iterator[None]:
    """The stages that a module of tests starts run two jobs at once, each in its own process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CORES_OF_A_STAGE, "2")
        yield


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A headless browser; skipped where there is none."""
    # The system's own: those that Playwright would fetch come from a network.
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no chromium on PATH: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def build_deb(folder: Path, name: str, files: dict[str, str]) -> Path:
    """A Debian package of text files, made with dpkg-deb."""
    tree = folder / f"{name}.tree"
    control = (
        "Package: {}\nVersion: 1.0\nArchitecture: all\nMaintainer: A <a@b.c>\nDescription: t\n"
    )
    for path, text in {"DEBIAN/control": control.format(name), **files}.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text, encoding="utf-8")
    deb = folder / f"{name}_1.0_all.deb"
    command = ["dpkg-deb", "--root-owner-group", "-b", str(tree), str(deb)]
    subprocess.run(command, check=True, capture_output=True)
    return deb


def copy_repository(
    folder: Path, experiment: str, overrides: str, tasks: tuple[str, ...] = ("nmt_ende",)
) -> None:
    """The repository's files as they are now, with nothing made yet, set to an experiment."""
    listing = ["git", "ls-files", "-z", "-c", "-o", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in names.split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    (folder / "dvc.lock").unlink(missing_ok=True)
    dag = folder / "conf" / "dag.yaml"
    settings = yaml.safe_load(dag.read_text())
    settings |= {"tasks": [*tasks], "experiment": experiment, "overrides": overrides}
    dag.write_text(yaml.safe_dump(settings))


def environment_of_copy() -> dict[str, str]:
    """What a command in such a copy runs in: its own stages, this Python."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    return environment


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest first, so that none is left to one process at the end."""
    place = {Path(__file__).parent / name: place for place, name in enumerate(_LONGEST_FIRST)}
    items.sort(key=lambda item: place.get(item.path, len(place)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two processes more than cores, as many tests wait for programs that they have started."""
    return len(os.sched_getaffinity(0)) + 2


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--moments", type=int, default=2, help="how often tests/faults kills each stage"
    )


@contextmanager
def made_once(tmp_path_factory: pytest.TempPathFactory, name: str) -> Iterator[tuple[Path, bool]]:
    """A folder that all processes of a test run share, and whether this one is to fill it.

    The first that comes fills it inside the `with`, for which the others wait.
    """
    base = tmp_path_factory.getbasetemp()
    # Below pytest-xdist every process has a folder of its own in the one of the run.
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, done = shared / name, shared / f"{name}.done"
    with FileLock(shared / f"{name}.lock"):
        if done.exists():
            yield folder, False
        else:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            yield folder, True
            done.touch()


@pytest.fixture(scope="session")
def help_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with packages of the shape of LibreOffice's help, of 27 pages of 3 sentences."""
    with made_once(tmp_path_factory, "help packages: 日本") as (folder, is_first):
        if is_first:
            _build_help_packages(folder)
            _build_other_packages(folder)
    return folder


def _build_help_packages(folder: Path) -> None:
    for side, (name, locale) in enumerate(_PACKAGES.items()):
        pages: dict[str, list[str]] = {}
        for number, words in enumerate(itertools.product(_VERBS, _COLOURS, _THINGS, _PLACES)):
            sentence = _ORDERS[side].format(*(word[side] for word in words))
            pages.setdefault(f"page{number // 3:02d}", []).append(
                f'<p id="par_{number}" class="paragraph">{sentence}</p>'
            )
        files = {
            f"usr/share/libreoffice/help/{locale}/text/{page}.html": "<body>" + "".join(lines)
            for page, lines in pages.items()
        }
        build_deb(folder, name, files)


def _build_other_packages(folder: Path) -> None:
    """Packages of the shape of Debian Reference and of Fish Fillets, 24 sentences each."""
    languages = ("en", "de", "fr")
    verbs = {
        "en": ("Mount", "Check", "Erase"),
        "de": ("Binden", "Prüfen", "Löschen"),
        "fr": ("Montez", "Vérifiez", "Effacez"),
    }
    disks = {
        "en": "every slow disk number {} tonight",
        "de": "jede langsame Platte Nummer {} heute",
        "fr": "chaque disque lent numéro {} ensuite",
    }
    numbers = ("one", "two", "three", "four", "five", "six", "seven", "eight")
    for language in languages:
        body = "".join(
            f'<h3><a id="{verb_place}-{number}"></a>1.1. Title</h3>'
            f"<p>{verb} {disks[language].format(number)}.</p>"
            for (verb_place, verb), number in itertools.product(enumerate(verbs[language]), numbers)
        )
        path = f"usr/share/debian-reference/ch01.{language}.html"
        build_deb(folder, f"debian-reference-{language}", {path: f"<body>{body}</body>"})
    asked = {"de": "Warum schwimmt {} denn {}?", "fr": "Pourquoi {} nage-t-il {} ?"}
    fish = ("Anna", "Bert", "Carl")
    scripts = {
        f"usr/share/games/fillets-ng/script/cave/dialogs_{language}.lua": "".join(
            f'dialogId("line-{name}-{number}", "font_small", "So why is {name} swimming {number}?")'
            f'\ndialogStr("{text.format(name, number)}")\n\n'
            for name, number in itertools.product(fish, numbers)
        )
        for language, text in asked.items()
    }
    build_deb(folder, "fillets-ng-data", scripts)
