"""A real Slurm cluster with one node on the loopback interface, in a temporary folder."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

_PROGRAMS = ("munged", "slurmctld", "slurmd", "sinfo", "scontrol", "sbatch")
_PACKAGES = "apt-get install --no-install-recommends slurmctld slurmd slurm-client munge"
_START_SECONDS = 60
_CONFIGURATION = """
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
PlugStackConfig={folder}/plugstack.conf
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=500
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmdParameters=config_overrides
ReturnToService=2
JobRequeue=1
RequeueExit=99
KillWait=2
SlurmdTimeout=30
SchedulerParameters=sched_interval=1
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 CPUs=4 RealMemory=8000
PartitionName=main Nodes=n1 Default=YES State=UP
"""
# submitit asks Slurm's accounting how a job ended. This replacement asks the controller.
_SACCT = """#!/bin/sh
echo "JobID|State|NodeList"
scontrol -o show job 2>/dev/null | sed -nE '
s/^JobId=([0-9]+) ArrayJobId=([0-9]+) ArrayTaskId=([0-9]+) .*JobState=([A-Z_]+).*/\\2_\\3|\\4|n1/p;t
s/^JobId=([0-9]+) .*JobState=([A-Z_]+).*/\\1|\\2|n1/p'
"""


@dataclass(frozen=True)
class Cluster:
    """The folder of the cluster, and the environment in which its commands reach it."""

    folder: Path
    environment: dict[str, str]

    def command(self, *words: str) -> str:
        """Run a command of Slurm; return what it prints."""
        result = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, check=False, timeout=30
        )
        return result.stdout

    def jobs(self, name: str) -> set[str]:
        """Return the ids of all jobs with a name, including finished ones and tasks of arrays."""
        listing = self.command("scontrol", "-o", "show", "job")
        return set(re.findall(rf"^JobId=(\d+) .*\bJobName={name} ", listing, re.MULTILINE))


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start an idle cluster; skip with a hint what to install if that is impossible."""
    absent = [name for name in _PROGRAMS if _program(name) is None]
    if absent or os.geteuid() != 0:
        pytest.skip(f"needs root and {', '.join(absent) or 'no more'}: {_PACKAGES}")
    folder = Path(tmp_path_factory.mktemp("slurm"))
    cluster = _configured(folder)
    try:
        _start(cluster)
        yield cluster
    finally:
        _stop(cluster)


def _program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


def _configured(folder: Path) -> Cluster:
    folder.chmod(0o755)
    for name in ("state", "spool", "bin"):
        (folder / name).mkdir()
    (folder / "munge").mkdir(mode=0o700)
    key = folder / "munge" / "key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    (folder / "plugstack.conf").touch()
    controller_port, node_port = _free_ports(2)
    text = _CONFIGURATION.format(
        folder=folder, controller_port=controller_port, node_port=node_port
    )
    (folder / "slurm.conf").write_text(text.lstrip(), encoding="utf-8")
    accounting = folder / "bin" / "sacct"
    accounting.write_text(_SACCT, encoding="utf-8")
    accounting.chmod(0o755)
    path = f"{folder / 'bin'}:{os.environ['PATH']}:/usr/sbin:/sbin"
    variables = {"PATH": path, "SLURM_CONF": str(folder / "slurm.conf")}
    return Cluster(folder, {**os.environ, **variables})


def _start(cluster: Cluster) -> None:
    folder = cluster.folder
    munge = folder / "munge"
    daemons = (
        [
            *("munged", f"--key-file={munge / 'key'}", f"--socket={folder / 'munge.sock'}"),
            *(f"--pid-file={munge / 'pid'}", f"--seed-file={munge / 'seed'}"),
            *(f"--log-file={munge / 'log'}", "--force"),
        ],
        ["slurmctld", "-i", "-f", str(folder / "slurm.conf")],
        ["slurmd", "-N", "n1", "-f", str(folder / "slurm.conf")],
    )
    for command in daemons:
        subprocess.run(
            [str(_program(command[0])), *command[1:]],
            env=cluster.environment,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=30,
        )
    deadline = time.monotonic() + _START_SECONDS
    while "idle" not in cluster.command("sinfo", "--noheader", "--format=%T"):
        if time.monotonic() > deadline:
            log = (folder / "slurmctld.log").read_text(encoding="utf-8", errors="replace")
            pytest.fail(f"Slurm did not come up in {_START_SECONDS} s: {log[-1500:]}")
        time.sleep(0.2)


def _stop(cluster: Cluster) -> None:
    cluster.command("scancel", "--user=root")
    deadline = time.monotonic() + 20
    while cluster.command("squeue", "--noheader").strip() and time.monotonic() < deadline:
        time.sleep(0.2)
    for name in ("slurmd.pid", "slurmctld.pid", "munge/pid"):
        path = cluster.folder / name
        if path.is_file():
            try:
                os.kill(int(path.read_text()), signal.SIGTERM)
            except (ProcessLookupError, ValueError):
                continue


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for free in sockets:
            free.bind(("127.0.0.1", 0))
        return [free.getsockname()[1] for free in sockets]
