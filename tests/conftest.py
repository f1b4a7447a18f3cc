"""Fixtures of several folders of tests, the order of tests, and which of them are slow."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
import yaml
from filelock import FileLock

from pipeline.run.environment import set_environment
from pipeline.run.settings import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# The number of cores that joblib counts. With one, a stage runs its jobs one after the other in its
# own process, since other tests use the other cores. Fixture `side_by_side` asks for two.
CORES_OF_A_STAGE = "LOKY_MAX_CPU_COUNT"
os.environ.setdefault(CORES_OF_A_STAGE, "1")
# Containers often set this variable. Then each of hundreds of processes compiles the same files.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
set_environment()  # before a test imports a numeric library
# Examples of Hypothesis have no time limit, since busy machines would exceed it. The profile "fast"
# is for `make test-fast`: the default is 100 examples; tests with a number of their own keep it.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.register_profile("fast", deadline=None, max_examples=25)
hypothesis.settings.load_profile("untimed")

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


_TESTS = Path(__file__).parent
# Tests in these folders, and tests with these fixtures, are slow; others are marked where they
# stand. All other tests are unit tests: `make test-fast` runs them.
_SLOW_FOLDERS = ("docs", "faults", "plugin", "stages")
_SLOW_FIXTURES = {"chromium", "help_packages"}
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
    "docs/test_published_models.py",
    "stages/test_decode.py",
    "pipeline/report/page/test_browser.py",
    "pipeline/report/page/test_browser_sentences.py",
    "stages/test_sweep_failures.py",
    "stages/test_sweep_interrupted.py",
)


@pytest.fixture(scope="module")
def side_by_side() -> Iterator[None]:
    """Let the stages that a module of tests starts run two jobs at once, in their own processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CORES_OF_A_STAGE, "2")
        yield


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Start a headless browser; skip if there is none."""
    # The system's own browser: Playwright would download others.
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no chromium on PATH: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Playwright closes it at the end of the block, within 30 seconds. `browser.close()` has no
        # limit: it waits for Chromium's crash handlers too, which share its output and may hang.
        yield playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])


def build_deb(folder: Path, name: str, files: dict[str, str]) -> Path:
    """Build a Debian package of text files with dpkg-deb; return its path."""
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
    """Copy the repository's files as they are now, without results, and choose an experiment.

    What Python and numba have compiled is copied too, with the times of the sources to which it
    belongs: otherwise every copy would compile all of it again.
    """
    listing = ["git", "ls-files", "-z", "-c", "-o", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in names.split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    for package in ("pipeline", "stages"):
        for compiled in (ROOT / package).rglob("__pycache__"):
            shutil.copytree(compiled, folder / compiled.relative_to(ROOT), ignore=_not_compiled)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    (folder / "dvc.lock").unlink(missing_ok=True)
    dag = folder / "conf" / "dag.yaml"
    settings = yaml.safe_load(dag.read_text())
    settings |= {"tasks": [*tasks], "experiment": experiment, "overrides": overrides}
    dag.write_text(yaml.safe_dump(settings))


def _not_compiled(_: str, names: list[str]) -> set[str]:
    """Return the names of files that another process is still writing."""
    return {name for name in names if not name.endswith((".pyc", ".nbi", ".nbc"))}


def environment_of_copy() -> dict[str, str]:
    """Return the environment of a command in such a copy: its own stages, this Python."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    return environment


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """In `make test-fast`, do not even import the folders and modules whose tests are all slow."""
    if config.option.markexpr != "not slow":
        return None
    if collection_path.suffix != ".py":
        return True if collection_path in {_TESTS / name for name in _SLOW_FOLDERS} else None
    is_slow = "\npytestmark = pytest.mark.slow" in collection_path.read_text(encoding="utf-8")
    return True if is_slow else None


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow tests, and run the longest files first.

    A long file that starts last would keep one process busy after the others have ended. For the
    same reason the slow folders come before the many short unit tests.
    """
    rank = {_TESTS / name: rank for rank, name in enumerate(_LONGEST_FIRST)}

    def place(item: pytest.Item) -> tuple[int, bool]:
        top = item.path.relative_to(_TESTS).parts[0]
        return rank.get(item.path, len(rank)), top not in _SLOW_FOLDERS

    items.sort(key=place)
    for item in items:
        fixtures = {*getattr(item, "fixturenames", ())}
        top = item.path.relative_to(_TESTS).parts[0]
        if top in _SLOW_FOLDERS or fixtures & _SLOW_FIXTURES:
            item.add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude the objects that imports make from garbage collection, and collect rarely later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(50_000, 20, 100)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """In `make test-fast`, fail a test that starts a process, or whose fixture does."""

    def refuse(*_: object, **__: object) -> None:
        pytest.fail(f"{item.nodeid} starts a process. Mark it: pytest.mark.slow")

    with pytest.MonkeyPatch.context() as patch:
        if item.config.option.markexpr == "not slow":
            # Not os.fork: reading a store forks, so that a hostile file cannot harm the reader.
            patch.setattr(subprocess.Popen, "__init__", refuse)
            for name in ("execv", "execve", "posix_spawn", "posix_spawnp", "system"):
                patch.setattr(os, name, refuse)
        return (yield)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Use two more processes than cores: many tests wait for programs that they have started."""
    return len(os.sched_getaffinity(0)) + 2


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--moments", type=int, default=2, help="how often tests/faults kills each stage"
    )


@contextmanager
def made_once(tmp_path_factory: pytest.TempPathFactory, name: str) -> Iterator[tuple[Path, bool]]:
    """Yield a folder that all processes of a test run share, and whether this one fills it.

    The first process fills it inside the `with` block, while the others wait.
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
    """Make a folder with packages like LibreOffice's help: 27 pages of 3 sentences."""
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
    """Make packages like Debian Reference and Fish Fillets, 24 sentences each."""
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
