"""The processes of a launch on all its hosts, as a launcher tells tools that connect to it by PMIx.

Takes the pid of such a launcher on this host (`prterun`, `prte`: Open MPI 5, PRRTE); asks it by PMIx_tool_init and a
query of PMIX_QUERY_PROC_TABLE. The launcher's own library is loaded, in a process that may hang or die. It connects by
the launcher's rendezvous file alone: Open MPI 4.1's mpirun writes none, and dies of a tool that connects by its URI.
"""

from __future__ import annotations

import ctypes
import time
from ctypes import POINTER, Structure, byref, c_char, c_char_p, c_int, c_size_t, c_uint16, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Union

from pieglobalsfind.errors import RanklensError

from .worker_process import Channel, LostWorker, Worker

LAUNCHERS = ("prterun", "prte")
PATIENCE = 10.0  # seconds
SUCCESS, STRING, PID, PROC_INFO, DATA_ARRAY = 0, 3, 5, 38, 39  # pmix_common.h
SERVER_PID, NAMESPACE, NAMESPACES, PROC_TABLE = b"pmix.srvr.pidinfo", b"pmix.nspace", b"pmix.qry.ns", b"pmix.qry.ptable"
MOST_PROCESSES = 1 << 20


class Value(Structure):
    """`pmix_value_t`: `data` is a number, or a pointer; the union's other members are longer."""

    _fields_ = (("type", c_uint16), ("data", c_uint64), ("rest", c_uint64 * 2))


class Info(Structure):
    """`pmix_info_t`."""

    _fields_ = (("key", c_char * 512), ("flags", c_uint32), ("value", Value))


class Query(Structure):
    """`pmix_query_t`."""

    _fields_ = (("keys", POINTER(c_char_p)), ("qualifiers", POINTER(Info)), ("qualifier_count", c_size_t))


class Proc(Structure):
    """`pmix_proc_t`."""

    _fields_ = (("namespace", c_char * 256), ("rank", c_uint32))


class ProcInfo(Structure):
    """`pmix_proc_info_t`."""

    _fields_ = (
        ("proc", Proc),
        ("host", c_char_p),
        ("program", c_char_p),
        ("pid", c_int),
        ("status", c_int),
        ("state", c_uint16),
    )


class DataArray(Structure):
    """`pmix_data_array_t`."""

    _fields_ = (("type", c_uint16), ("size", c_size_t), ("array", c_void_p))


@dataclass(frozen=True)
class LaunchedProcess:
    """A process that a launcher has started."""

    namespace: str
    rank: int
    host: str
    program: str
    pid: int


def launched_by(launcher: int) -> list[LaunchedProcess]:
    """All that a launcher tells of, by namespace and rank; raises `RanklensError` with the reason if it does not."""
    worker = Worker(partial(_tell, launcher), is_quiet=True)
    answer: Union[list[LaunchedProcess], str, LostWorker] = worker.receive(time.monotonic() + PATIENCE)
    worker.close()
    if isinstance(answer, LostWorker):
        answer = f"the process that asks it {answer.reason}"
    if isinstance(answer, str):
        raise RanklensError(f"launcher {launcher} gives no table of its processes by PMIx: {answer}")
    return sorted(answer, key=lambda process: (process.namespace, process.rank))


def _tell(launcher: int, channel: Channel) -> None:
    try:
        channel.send(_ask(launcher))
    except RanklensError as error:
        channel.send(error.sentence)


def _ask(launcher: int) -> list[LaunchedProcess]:
    library = ctypes.CDLL(library_of(launcher))
    library.PMIx_Error_string.restype = c_char_p
    own, info = Proc(), Info(key=SERVER_PID, value=Value(PID, launcher))
    _check(library, "PMIx_tool_init", library.PMIx_tool_init(byref(own), byref(info), c_size_t(1)))
    names = _query(library, NAMESPACES)
    if names.type != STRING:
        raise RanklensError("it names no jobs")
    text = ctypes.cast(names.data, c_char_p).value or b""
    others = [name for name in text.split(b",") if name and name != own.namespace]
    processes = [process for name in others for process in _table(_query(library, PROC_TABLE, name))]
    library.PMIx_tool_finalize()
    return processes


def library_of(launcher: int) -> str:
    """The launcher's own libpmix: tools of another version need not understand it."""
    try:
        lines = Path(f"/proc/{launcher}/maps").read_text().splitlines()
    except OSError as error:
        raise RanklensError(f"its libraries can't be read, {error.strerror}") from error
    paths = (line.split(None, 5)[5] for line in lines if "/libpmix.so" in line)
    path = next(paths, None)
    if path is None:
        raise RanklensError("it has loaded no libpmix.so")
    return path


def _query(library: ctypes.CDLL, key: bytes, namespace: bytes = b"") -> Value:
    keys = (c_char_p * 2)(key, None)
    query = Query(keys, None, 0)
    if namespace:
        kept = ctypes.create_string_buffer(namespace)
        query = Query(keys, ctypes.pointer(Info(key=NAMESPACE, value=Value(STRING, ctypes.addressof(kept)))), 1)
    results, count = POINTER(Info)(), c_size_t()
    status = library.PMIx_Query_info(byref(query), c_size_t(1), byref(results), byref(count))
    _check(library, f"PMIx_Query_info of {key.decode()}", status)
    if not count.value:
        raise RanklensError(f"it answers nothing to {key.decode()}")
    value: Value = results[0].value
    return value


def _table(value: Value) -> list[LaunchedProcess]:
    array = ctypes.cast(value.data, POINTER(DataArray)).contents if value.type == DATA_ARRAY and value.data else None
    if array is None or array.type != PROC_INFO or array.size > MOST_PROCESSES:
        raise RanklensError("its table has another form")
    rows = ctypes.cast(array.array, POINTER(ProcInfo))
    return [
        LaunchedProcess(_text(row.proc.namespace), row.proc.rank, _text(row.host), _text(row.program), row.pid)
        for row in (rows[index] for index in range(array.size))
    ]


def _text(data: Union[bytes, None]) -> str:
    return (data or b"").decode("utf-8", "replace")


def _check(library: ctypes.CDLL, what: str, status: int) -> None:
    if status != SUCCESS:
        raise RanklensError(f"{what}: {_text(library.PMIx_Error_string(c_int(status)))}")
