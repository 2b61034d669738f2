"""Carries messages between collectors by the site's own MPI, in a process of its own: MPI may hang, or end it.

MPI_Init waits for every process of the launch, and a library whose peer is gone may end its own process. Takes orders
from a channel; gives what comes. It knows nothing of what the messages mean.

Uses mpi4py, because sites have an MPI and its launcher, and nothing else that starts a process on each node.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from typing import Any, Union

from . import mpi_library
from .worker_process import Channel, work_and_end

PAUSE, LONGEST_PAUSE = 0.002, 0.02  # seconds between two looks for a message; longer while none comes
# Seconds without a call of MPI before all end it: under MPICH 4.0 with UCX over TCP, MPI_Finalize hangs where
# another process still answered while the first ones had begun it, and answers no more once it begins its own.
QUIET = 0.3


@dataclass(frozen=True)
class Unavailable:
    """There is no mpi4py, or no MPI for it: "--mpi needs" the reason, and what to install."""

    reason: str
    hint: str


@dataclass(frozen=True)
class Begun:
    """This collector's place among all of them, and its host."""

    place: int
    size: int
    host: str


@dataclass(frozen=True)
class Ending:
    """All have said all; what is left is MPI's own end."""


@dataclass(frozen=True)
class ChannelMessage:
    """To be sent to a place, or come from one."""

    place: int
    tag: int
    content: bytes


def speak(channel: Channel) -> None:
    """Until the order is None, and everything has been sent."""
    site = mpi_library.of_launch(os.environ)
    try:
        mpi_library.choose(site, channel.fileno(), f"from {__name__} import speak_again; speak_again()")
        from mpi4py import MPI
    except ImportError as error:
        channel.send(Unavailable(*mpi_library.why_not(site, error)))
        return
    world = MPI.COMM_WORLD
    started = mpi_library.processes_of_launch(os.environ)
    if world.Get_size() == 1 < started:
        hint = "srun: add --mpi=pmi2 (MPICH) or --mpi=pmix (Open MPI); else use the launcher of mpi4py's MPI"
        name = MPI.Get_library_version().partition("\n")[0].rstrip("\0")
        channel.send(
            Unavailable(f"an MPI that its launcher knows: {started} collectors don't find each other by {name}", hint)
        )
        return
    channel.send(Begun(world.Get_rank(), world.Get_size(), MPI.Get_processor_name()))
    simple_queue: Told = SimpleQueue()
    teller = Thread(target=tell, args=(channel, simple_queue), daemon=True)
    teller.start()
    sent: list[Any] = []  # requests, kept until they are done
    ends, pause = False, PAUSE
    while sent or not ends:
        is_idle = not pass_on(MPI, simple_queue) and not sent
        pause = min(2 * pause, LONGEST_PAUSE) if is_idle else PAUSE
        sent = [request for request in sent if not is_done(MPI, request)]
        readable, _, _ = select.select([] if ends else [channel], [], [], pause)
        if readable:
            order = channel.receive()
            ends = order is None
            if order is not None:
                sent += send(MPI, order)
    together = world.Ibarrier()
    while not is_done(MPI, together):
        pass_on(MPI, simple_queue)  # or who has sent what is not needed here any more never comes to the barrier
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
    simple_queue.put(Ending())
    simple_queue.put(None)
    teller.join()
    time.sleep(QUIET)
    MPI.Finalize()


Told = SimpleQueue[Union[ChannelMessage, Ending, None]]  # for the collector; None: that was all


def tell(channel: Channel, simple_queue: Told) -> None:
    """A thread of its own: where the collector sends just then, each would wait for the other to listen."""
    with suppress(OSError):  # the collector has ended
        while (message := simple_queue.get()) is not None:
            channel.send(message)


def pass_on(mpi: Any, simple_queue: Told) -> int:
    """What has come from others; returns how many messages."""
    world, status, count = mpi.COMM_WORLD, mpi.Status(), 0
    while world.iprobe(source=mpi.ANY_SOURCE, tag=mpi.ANY_TAG, status=status):
        place, tag, content = status.Get_source(), status.Get_tag(), bytearray(status.Get_count(mpi.BYTE))
        world.Recv([content, mpi.BYTE], source=place, tag=tag)
        simple_queue.put(ChannelMessage(place, tag, bytes(content)))
        count += 1
    return count


def send(mpi: Any, order: ChannelMessage) -> list[Any]:
    """The request to wait for; none if who was to have it is gone."""
    try:
        return [mpi.COMM_WORLD.Isend([order.content, mpi.BYTE], dest=order.place, tag=order.tag)]
    except mpi.Exception:
        return []


def is_done(mpi: Any, request: Any) -> bool:
    """Also if it never will be, as who was to have it is gone."""
    try:
        return bool(request.Test())
    except mpi.Exception:
        return True


def speak_again() -> None:
    """What the second start does (`mpi_library.choose`); its channel is named on the command line."""
    work_and_end(speak, Channel(socket.socket(fileno=int(sys.argv[1]))), os.getppid(), False)
