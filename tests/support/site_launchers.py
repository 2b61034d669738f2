"""Launchers that sites have, each with hosts: MPICH's Hydra, Open MPI's mpirun, and Slurm with its daemons.

Hydra and mpirun start their part of a host by a remote shell, which here enters a host's namespaces; Slurm has daemons
of its own on this machine, one for each of its nodes.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from tests.support.running import BIN
from tests.support.sites import Site
from tests.support.waiting import wait_until

SLURM = ("munged", "slurmctld", "slurmd", "srun")
NODES = 2
NETWORK = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0", "FI_PROVIDER": "tcp", "MPIR_CVAR_NOLOCAL": "1"}


@dataclass(frozen=True)
class SiteLauncher:
    """How a site starts programs: the words before a program and its arguments, once for each host."""

    name: str
    compiler: str  # of the transport
    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[str, ...] = ()  # that have to be there

    def command(self, *words: object) -> list[str]:
        """Return a command that starts `words` on each host."""
        return [*self.words, *(str(word) for word in words)]

    def full_environment(self) -> dict[str, str]:
        """Return this process's environment with what the launcher needs."""
        return {**os.environ, **self.environment}

    def run(self, *words: object, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run rankrun under the launcher, to its end."""
        command = self.command(BIN / "rankrun", *words)
        environment = self.full_environment()
        return subprocess.run(command, capture_output=True, text=True, timeout=180, input=given, env=environment)


def hydra(site: Site, shell: Path) -> SiteLauncher:
    """MPICH's launcher, with hosts that are namespaces; its messages go by TCP alone."""
    words = ("mpiexec.mpich", "-launcher", "ssh", "-launcher-exec", str(shell), "-iface", "bridge")
    hosts = ("-hosts", ",".join(site.names), "-ppn", "1", "-n", str(NODES))
    return SiteLauncher("mpich", "mpicc.mpich", (*site.home, *words, *hosts), NETWORK, ("mpiexec.mpich",))


def open_mpi(site: Site, shell: Path) -> SiteLauncher:
    """Open MPI's launcher, likewise."""
    network = "10.99.0.0/24"
    options = {
        "plm_rsh_agent": str(shell),
        "oob_tcp_if_include": network,
        "btl_tcp_if_include": network,
        "btl": "tcp,self",
        "pml": "ob1",
    }
    words = [word for name, value in options.items() for word in ("--mca", name, value)]
    hosts = ("--host", ",".join(site.names), "-n", str(NODES))
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return SiteLauncher(
        "openmpi", "mpicc.openmpi", (*site.home, "mpirun.openmpi", *words, *hosts), allowed, ("mpirun.openmpi",)
    )


# ---- Slurm ----


def lacking_slurm() -> Optional[str]:
    """Why Slurm can't be started here."""
    if os.geteuid() != 0:
        return "Slurm's daemons take root"
    places = f"{os.environ.get('PATH', '')}:/usr/sbin"
    absent = [tool for tool in SLURM if shutil.which(tool, path=places) is None]
    return f"this machine has no {', '.join(absent)} (make test-launchers installs them)" if absent else None


def free_ports(count: int) -> list[int]:
    """Return ports that nothing listened at a moment ago."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def configuration(folder: Path, ports: Sequence[int], place: str) -> str:
    """Return a slurm.conf of two nodes on this machine; `place` names the munged of who reads it."""
    control, *nodes = ports
    host = socket.gethostname().partition(".")[0]
    lines = [
        "ClusterName=test",
        f"SlurmctldHost={host}(127.0.0.1)",
        f"SlurmctldPort={control}",
        "AuthType=auth/munge",
        f"AuthInfo=socket={folder}/munge-{place}/socket",
        "CryptoType=crypto/munge",
        "SlurmUser=root",
        f"StateSaveLocation={folder}/state",
        f"SlurmdSpoolDir={folder}/spool.%n",
        f"TmpFS={folder}/tmp.%n",
        f"SlurmctldPidFile={folder}/slurmctld.pid",
        f"SlurmdPidFile={folder}/slurmd.%n.pid",
        f"SlurmctldLogFile={folder}/slurmctld.log",
        f"SlurmdLogFile={folder}/slurmd.%n.log",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "JobAcctGatherType=jobacct_gather/none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_CPU",
        "SchedulerType=sched/builtin",
        "ReturnToService=2",
        "KillWait=5",
        "DebugFlags=NO_CONF_HASH",
        "SlurmdParameters=config_overrides",
        *(
            f"NodeName=node{place} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=64 State=UNKNOWN"
            for place, port in enumerate(nodes)
        ),
        f"PartitionName=all Nodes=node[0-{NODES - 1}] Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES",
    ]
    return "".join(f"{line}\n" for line in lines)


def start_munge(own: Path, key: bytes, stack: ExitStack) -> None:
    """Start munged with a socket and a log of its own: each host has one, and takes a credential but once."""
    own.mkdir(mode=0o755)
    (own / "key").write_bytes(key)
    (own / "key").chmod(0o400)
    names = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    options = [f"--{option}={own / name}" for option, name in names.items()]
    daemon = subprocess.Popen(
        ["/usr/sbin/munged", "--foreground", "--force", "--num-threads=2", *options], stderr=subprocess.DEVNULL
    )
    stack.callback(daemon.wait)
    stack.callback(daemon.terminate)
    wait_until((own / "socket").exists, "munged has not begun")


def is_idle(environment: Mapping[str, str]) -> bool:
    """Whether every node can be used."""
    words = ["sinfo", "--noheader", "--Node", "--format=%T"]
    done = subprocess.run(words, capture_output=True, text=True, env=dict(environment), timeout=60)
    return done.stdout.split() == ["idle"] * NODES


@contextmanager
def slurm(folder: Path) -> Iterator[Mapping[str, str]]:
    """Slurm's daemons on this machine; gives the environment by which its commands find them."""
    folder.chmod(0o755)
    (folder / "state").mkdir()
    ports, key = free_ports(1 + NODES), os.urandom(128)
    daemons = {"control": ["slurmctld", "-D"]}
    daemons.update({f"node{place}": ["slurmd", "-D", "-N", f"node{place}"] for place in range(NODES)})
    settings = {place: folder / f"{place}.conf" for place in daemons}
    environment = {"SLURM_CONF": str(settings["control"]), **OPEN_MPI_AT_HOME}
    whole = {**os.environ, **environment}
    with ExitStack() as stack:
        for place, (name, *words) in daemons.items():
            (folder / f"tmp.{place}").mkdir()
            settings[place].write_text(configuration(folder, ports, place))
            start_munge(folder / f"munge-{place}", key, stack)
            daemon = subprocess.Popen(
                [f"/usr/sbin/{name}", "-f", str(settings[place]), *words],
                env={**whole, "SLURM_CONF": str(settings[place])},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(daemon.wait)
            stack.callback(daemon.terminate)
        wait_until(lambda: is_idle(whole), "Slurm's nodes have not become idle")
        try:
            yield environment
        finally:  # what a failed test has left
            subprocess.run(["scancel", "--signal=KILL", "--user=root"], env=whole, timeout=60)
            wait_until(lambda: is_idle(whole), "Slurm's jobs have not ended")


OPEN_MPI_AT_HOME = {"OMPI_MCA_btl": "tcp,self", "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl_tcp_if_include": "lo"}


def srun(environment: Mapping[str, str], plugin: str) -> SiteLauncher:
    """Slurm's launcher with a plugin for MPI: pmi2 for MPICH, pmix for Open MPI."""
    compiler = "mpicc.mpich" if plugin == "pmi2" else "mpicc.openmpi"
    return SiteLauncher(
        f"slurm-{plugin}", compiler, ("srun", f"--mpi={plugin}", "-N", str(NODES), "-n", str(NODES)), environment
    )
