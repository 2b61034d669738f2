"""Hosts to run a job on: namespaces, each with its network, processes and name.

A remote shell is a script that starts its command there, as `ssh` would.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

import pytest

SPACES = ("alpha", "beta")
NETWORK = "10.99.0.{}/24"  # of home, of the first host, ...
TOOLS = ("ip", "unshare", "nsenter")
UNSHARE = ("unshare", "--net", "--pid", "--fork", "--mount", "--uts")
LAST_PID = "/proc/sys/kernel/ns_last_pid"
HOST = 'set -e; mount -t proc none /proc; echo "$0" >/proc/sys/kernel/hostname; ip link set lo up; echo there; exec cat'


@dataclass(frozen=True)
class Site:
    """Two hosts, and where the user is."""

    names: tuple[str, ...]
    home: tuple[str, ...]  # words before a command that runs where the user is
    inside: tuple[int, ...]  # a process of each host's namespaces, as seen from here

    def shell(self, folder: Path) -> Path:
        """Write a remote shell, as launchers start one: options, a host's name, and words of a command for a shell."""
        script = folder / "remote-shell"
        targets = " ".join(f"{name}) pid={pid};;" for name, pid in zip(self.names, self.inside))
        script.write_text(
            '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nhost=$1\nshift\n'
            f'case $host in {targets} esac\nexec nsenter -t $pid --net --pid --mount --uts -- sh -c "$*"\n'
        )
        script.chmod(0o755)
        return script

    def on(self, place: int, *words: object) -> list[str]:
        """A command as it is run on one of the hosts that are namespaces."""
        entered = ("nsenter", "-t", self.inside[place], "--net", "--pid", "--mount", "--uts", "--")
        return [str(one) for one in (*entered, *words)]


def alive(program: Path) -> list[int]:
    """Processes of jobs of a program, launchers and agents included, on all hosts."""
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if str(program).encode() in words and Path(os.fsdecode(words[0])).name == "rankrun":
                found.append(int(folder.name))
    return found


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def agents(program: Path) -> dict[int, int]:
    """Of a job of several hosts that runs, rankrun on each: they alone have made processes of it."""
    own = alive(program)
    return {int(setting(pid, "RANKRUN_HOST").split()[0]): pid for pid in own if set(children(pid)) & set(own)}


def setting(pid: int, name: str) -> str:
    """In the environment that a process was started with."""
    words = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return next(word.partition("=")[2] for word in words if word.startswith(f"{name}="))


# ---- namespaces ----


def lacking() -> Optional[str]:
    """Why there can be no hosts of namespaces here."""
    if os.geteuid() != 0:
        return "namespaces as hosts take root"
    absent = [tool for tool in TOOLS if shutil.which(tool) is None]
    if absent:
        return f"namespaces as hosts take {', '.join(absent)}"
    links = "ip link add bridge type bridge; ip link add cable type veth peer name other"
    script = f"{HOST.rpartition(';')[0]}; {links}; echo 20000 >{LAST_PID}"
    words = [*UNSHARE, "sh", "-c", script, "trial"]
    made = subprocess.run(words, capture_output=True, text=True, timeout=60)
    return f"this machine makes no such namespaces as hosts take: {made.stderr}" if made.returncode else None


@contextmanager
def held(name: str) -> Iterator[int]:
    """A process alone in namespaces of its own; all in them ends with the block."""
    words = [*UNSHARE, "--kill-child", "sh", "-c", HOST, name]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdin is not None and holder.stdout is not None
        assert holder.stdout.readline() == "there\n"
        (first,) = children(holder.pid)
        try:
            yield first
        finally:
            holder.stdin.close()


def command(words: Sequence[object]) -> None:
    subprocess.run([str(word) for word in words], check=True, timeout=60)


def connect(home: int, place: int, host: int) -> None:
    """Joins a host to the bridge at home by a cable."""
    here, there = (["nsenter", "-t", str(one), "--net", "ip"] for one in (home, host))
    cable = f"host{place}"
    command([*here, "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", host])
    command([*here, "link", "set", cable, "master", "bridge", "up"])
    command([*there, "addr", "add", NETWORK.format(place + 2), "dev", "eth0"])
    command([*there, "link", "set", "eth0", "up"])


@contextmanager
def spaces() -> Iterator[Site]:
    """Two hosts and a home on one network."""
    with held("home") as home, held(SPACES[0]) as first, held(SPACES[1]) as second:
        ip = ["nsenter", "-t", home, "--net", "ip"]
        command([*ip, "link", "add", "bridge", "type", "bridge"])
        command([*ip, "addr", "add", NETWORK.format(1), "dev", "bridge"])
        command([*ip, "link", "set", "bridge", "up"])
        for place, host in enumerate((first, second)):
            connect(home, place, host)
        yield Site(SPACES, ("nsenter", "-t", str(home), "--net", "--uts", "--"), (first, second))


def only_where_possible() -> None:
    reason = lacking()
    if reason is not None:
        pytest.skip(reason)
