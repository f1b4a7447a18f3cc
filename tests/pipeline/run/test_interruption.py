from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from pipeline.run.settings import ROOT

pytestmark = pytest.mark.slow

START = """
import os, signal, subprocess, sys, time, weakref
from multiprocessing.shared_memory import SharedMemory
from pipeline.run.interruption import interrupt_on_signals, no_process_left_behind
"""


def _run(body: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", START + body]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to an ancestor")
def test_orphans_of_a_failed_run_are_killed() -> None:
    # The first shell has ended and left an orphan; the second starts orphans until it is killed.
    result = _run("""
with no_process_left_behind():
    subprocess.run(["sh", "-c", "sleep 4321 >/dev/null &"], check=True)
    subprocess.Popen(
        ["sh", "-c", "for i in $(seq 300); do setsid sleep 4321 >/dev/null & sleep 0.001; done"]
    )
    time.sleep(0.2)
    raise ValueError
""")
    assert result.stderr.endswith("ValueError\n")
    commands = [process.info["cmdline"] for process in psutil.process_iter(["cmdline"])]
    assert ["sleep", "4321"] not in commands


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no folder shows shared memory")
def test_shared_memory_of_a_failed_run_is_freed() -> None:
    result = _run("""
with no_process_left_behind():
    print(SharedMemory(create=True, size=8).name, flush=True)
    raise ValueError
""")
    assert "ValueError" in result.stderr
    assert result.stdout.strip()
    assert not (Path("/dev/shm") / result.stdout.strip()).exists()


def test_processes_of_a_run_without_errors_are_left_alone() -> None:
    result = _run("""
with no_process_left_behind():
    sleep = subprocess.Popen(["sleep", "4322"])
print(sleep.poll(), flush=True)
sleep.kill()
""")
    assert result.stdout == "None\n"


DROPPED = {
    "in_del": """
class Object:
    def __del__(self):
        interrupt()

def drop():
    Object()
""",
    "in_callback_of_weak_reference": """
class Object:
    pass

def drop():
    thing = Object()
    reference = weakref.ref(thing, lambda _: interrupt())
    del thing
""",
    "twice": """
class First:
    def __del__(self):
        interrupt()

class Second:
    def __del__(self):
        time.sleep(60)

def drop():
    First()
    Second()
""",
}


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT"])
@pytest.mark.parametrize("where", [*DROPPED])
def test_interruption_that_python_drops_is_raised_again(where: str, how: str) -> None:
    result = _run(f"""
def interrupt():
    os.kill(os.getpid(), signal.{how})
{DROPPED[where]}
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
interrupt_on_signals()
try:
    drop()
    time.sleep(60)
except SystemExit as error:
    print(error.code)
""")
    assert result.stderr == ""
    assert result.stdout == {"SIGTERM": "143\n", "SIGINT": "130\n"}[how]


def test_other_errors_that_python_drops_are_printed() -> None:
    result = _run("""
interrupt_on_signals()
class Object:
    def __del__(self):
        raise ValueError("dropped")
Object()
""")
    assert result.returncode == 0
    assert "ValueError: dropped" in result.stderr
