"""Hosts to run a job on: addresses of this machine's own, or namespaces, each with its network, processes and name.

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

LOCAL = ("127.0.0.1", "127.0.0.2")
SPACES = ("alpha", "beta")
FOUR, SIX = "10.99.0.{}/24", "fd99::{}/64"  # networks: of home, of the first host, ...
SPACES_OF_SIX = ("fd99::2", "fd99::3")
TOOLS = ("ip", "unshare", "nsenter")
UNSHARE = ("unshare", "--net", "--pid", "--fork", "--mount", "--uts")
LAST_PID = "/proc/sys/kernel/ns_last_pid"
HOST = 'set -e; mount -t proc none /proc; echo "$0" >/proc/sys/kernel/hostname; ip link set lo up; echo there; exec cat'


@dataclass(frozen=True)
class Site:
    """Two hosts, and where the user is."""

    names: tuple[str, ...]
    home: tuple[str, ...] = ()  # words before a command that runs where the user is
    inside: tuple[int, ...] = ()  # a process of each host's namespaces, as seen from here

    def shell(self, folder: Path, second: str = "", both: str = "") -> Path:
        """A remote shell; before the command, it runs a script on the second host, or on both."""
        script = folder / "remote-shell"
        enter = 'exec "$@"'
        if self.inside:
            targets = " ".join(f"{name}) pid={pid};;" for name, pid in zip(self.names, self.inside))
            enter = f'case $host in {targets} esac\nexec nsenter -t $pid --net --pid --mount --uts -- "$@"'
        chosen = f"case $host in {self.names[1]})\n{second or ':'}\n;; esac"
        script.write_text(f"#!/bin/sh\nhost=$1\nshift\n{both}\n{chosen}\n{enter}\n")
        script.chmod(0o755)
        return script

    def options(self, shell: Path) -> tuple[object, ...]:
        return ("--hosts", ",".join(self.names), "--remote-shell", shell)

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


def agents(program: Path, launcher: int) -> dict[str, int]:
    """Of a job that runs, by host: they alone have made processes of it; each was started with its host's name."""
    own = alive(program)
    found = [one for one in own if one != launcher and set(children(one)) & set(own)]
    return {setting(one, "RANKRUN_HOST").strip(): one for one in found}


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


def address(network: str, number: int, device: str) -> tuple[str, ...]:
    """Words for ip(8); nobody waits until a new address of IPv6 is known to be nobody else's."""
    return ("addr", "add", network.format(number), "dev", device, *(("nodad",) if network == SIX else ()))


def connect(home: int, place: int, host: int, network: str) -> None:
    """Joins a host to the bridge at home by a cable."""
    here, there = (["nsenter", "-t", str(one), "--net", "ip"] for one in (home, host))
    cable = f"host{place}"
    command([*here, "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", host])
    command([*here, "link", "set", cable, "master", "bridge", "up"])
    command([*there, *address(network, place + 2, "eth0")])
    command([*there, "link", "set", "eth0", "up"])


@contextmanager
def spaces(names: tuple[str, str] = SPACES, network: str = FOUR) -> Iterator[Site]:
    with held("home") as home, held(names[0]) as first, held(names[1]) as second:
        ip = ["nsenter", "-t", home, "--net", "ip"]
        command([*ip, "link", "add", "bridge", "type", "bridge"])
        command([*ip, *address(network, 1, "bridge")])
        command([*ip, "link", "set", "bridge", "up"])
        for place, host in enumerate((first, second)):
            connect(home, place, host, network)
        yield Site(names, ("nsenter", "-t", str(home), "--net", "--uts", "--"), (first, second))


@contextmanager
def cut(site: Site, place: int) -> Iterator[None]:
    """Pulls the cable of a host, which is not told."""
    link = [*site.home, "ip", "link", "set", f"host{place}"]
    command([*link, "nomaster"])
    try:
        yield
    finally:
        command([*link, "master", "bridge"])


def only_where_possible() -> None:
    reason = lacking()
    if reason is not None:
        pytest.skip(reason)
