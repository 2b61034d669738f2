"""What collectors send one another: a value, sealed so that damage, and another version's message, is noticed.

Takes a value of this program's own data classes; gives bytes and back. Nothing of a message whose seal does not fit is
decoded, and no message makes anything but data: pickle alone would call whatever function a message names.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from dataclasses import is_dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar, Union

from pieglobalsfind.cli.version import PACKAGE
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.machine.lookup import processor_of

MAGIC = b"ranklens message "
DIGEST = 16  # bytes
# An installed package has a name of its own.
OWN = {module.partition(".")[0] for module in (__name__, RanklensError.__module__)}
PLAIN = {
    *(("builtins", name) for name in ("tuple", "frozenset", "set", "bytearray")),
    *(("collections", name) for name in ("Counter", "OrderedDict", "deque")),
    *(("array", name) for name in ("array", "_array_reconstructor")),
}
FUNCTIONS = {(processor_of.__module__, processor_of.__name__)}  # a processor is sent by its number

Wanted = TypeVar("Wanted")


class DamagedMessageError(RanklensError):
    """A message that can't be believed; its sentence continues "what it sends "."""


def sealed(value: object) -> bytes:
    """Return the message that holds a value."""
    content = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return b"".join((_head(), _digest(content), content))


def opened(message: bytes, wanted: type[Wanted]) -> Wanted:
    """Return the value of a message; raises `DamagedMessageError` if it is not whole, not ours or of another class."""
    head = _head()
    if not message.startswith(head):
        is_ours = message.startswith(MAGIC) and b"\n" in message[:200]
        raise DamagedMessageError("is of another version of ranklens" if is_ours else "is damaged")
    content = memoryview(message)[len(head) + DIGEST :]
    if message[len(head) : len(head) + DIGEST] != _digest(content):
        raise DamagedMessageError("is damaged")
    try:
        value = _DataUnpickler(io.BytesIO(content)).load()
    except (pickle.UnpicklingError, AttributeError, ImportError, RanklensError) as error:
        raise DamagedMessageError(f"is not data of ranklens ({error})") from error
    if not isinstance(value, wanted):
        raise DamagedMessageError(f"is a {type(value).__name__} instead of a {wanted.__name__}")
    return value


@cache
def _head() -> bytes:
    try:
        number = version(PACKAGE)
    except PackageNotFoundError:  # a folder that has no version
        number = "?"
    return MAGIC + number.encode() + b"\n"


def _digest(content: Union[bytes, memoryview]) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST).digest()


class _DataUnpickler(pickle.Unpickler):
    """Makes objects of the standard library's plain types, and of this program's data classes, alone."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a class that a message may make."""
        loaded = super().find_class(module, name) if self._is_known(module, name) else None
        if (module, name) in PLAIN | FUNCTIONS or is_dataclass(loaded) or _is_named_tuple(loaded):
            return loaded
        raise pickle.UnpicklingError(f"{module}.{name}")

    @staticmethod
    def _is_known(module: str, name: str) -> bool:
        """No name with dots: it would lead out of the module to what that imports."""
        return (module, name) in PLAIN or (module.partition(".")[0] in OWN and "." not in name)


def _is_named_tuple(loaded: object) -> bool:
    return isinstance(loaded, type) and issubclass(loaded, tuple) and hasattr(loaded, "_fields")
