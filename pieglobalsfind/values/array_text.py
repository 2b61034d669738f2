"""Writes an array as GDB's `print` does: a bounded number of elements, runs of equal ones once.

Takes bytes and a function that writes one element; knows nothing of what elements are.
"""

from __future__ import annotations

from collections.abc import Callable

from pieglobalsfind.dwarf.types import Array, Base, TypeTable
from pieglobalsfind.values.array_extents import Elements, Extent, dense_extents, described_elements
from pieglobalsfind.values.scalar_text import MOST_ELEMENTS, REPEATS, decode_characters
from pieglobalsfind.values.surroundings import Surroundings, VariableBytes

WriteElement = Callable[[VariableBytes], str]


def array_text(around: Surroundings, bare: Array, variable_bytes: VariableBytes, write: WriteElement) -> str:
    """Dense arrays from the bytes at hand, described ones (Fortran) from where their descriptor says."""
    element = around.types.size(bare.element)
    if bare.data_location is not None:
        return _described_text(around, bare, variable_bytes, element, write)
    extents = dense_extents(bare, element)
    if extents is None:
        return (
            "<of unknown length>"
            if not variable_bytes.data
            else f"<of unknown length, {len(variable_bytes.data)} bytes>"
        )
    return Elementwise(around, bare, write).dimension(variable_bytes, extents)


def _described_text(
    around: Surroundings, bare: Array, variable_bytes: VariableBytes, element: int, write: WriteElement
) -> str:
    """A Fortran allocatable or pointer array."""
    elements = described_elements(around, bare, variable_bytes, element)
    if isinstance(elements, Elements):
        return Elementwise(around, bare, write).dimension(elements.content, elements.extents)
    return elements


class Elementwise:
    """Writes one array, all dimensions, slowest first: at most `MOST_ELEMENTS` elements in all.

    Long runs of elements with equal bytes are written once, and count as `REPEATS` elements.
    """

    def __init__(self, around: Surroundings, bare: Array, write: WriteElement) -> None:
        self._around = around
        self._bare = bare
        self._write_element = write
        self._left = MOST_ELEMENTS
        self._fortran = around.language == "Fortran"

    def dimension(self, variable_bytes: VariableBytes, extents: list[Extent]) -> str:
        """One dimension and all within it."""
        extent, inner = (extents[0], extents[1:]) if extents else (Extent(1, 0), [])
        if not inner and _is_characters(self._around.types, self._bare):
            return decode_characters(variable_bytes.data[: extent.count])
        size = sum((extent.count - 1) * extent.stride for extent in inner) + self._around.types.size(self._bare.element)
        parts: list[str] = []
        number = 0
        while number < extent.count and self._left > 0:
            start = number * extent.stride
            part = VariableBytes(variable_bytes.address + start, variable_bytes.data[start : start + max(size, 0)])
            text = self.dimension(part, inner) if inner else self._write_element(part)
            run = run_length(variable_bytes.data, extent, number, part.data)
            number += self._write(parts, text, run, bool(inner))
        return self._joined(parts, bool(inner), number < extent.count)

    def _write(self, parts: list[str], text: str, run: int, nested: bool) -> int:
        """Add an element that stands `run` times; returns how many of them are dealt with."""
        if run >= REPEATS:
            parts.append(f"{text}{',' if self._fortran else ''} <repeats {run} times>")
            self._left -= 0 if nested else REPEATS
            return run
        shown = 1 if nested else min(run, self._left)
        parts += [text] * shown
        self._left -= 0 if nested else shown
        return shown

    def _joined(self, parts: list[str], nested: bool, more: bool) -> str:
        opening, closing = ("(", ")") if self._fortran else ("{", "}")
        separator = " " if nested and self._fortran else ", "
        return opening + separator.join(parts) + ("..." if more else "") + closing


def run_length(data: bytes, extent: Extent, number: int, element: bytes) -> int:
    """How many elements from `number` on have the bytes `element`; dense ones are compared in growing blocks."""
    size, length = len(element), 1
    if size and extent.stride == size:
        step = 1
        while step:
            block = min(step, extent.count - number - length)
            start = (number + length) * size
            if block > 0 and data[start : start + block * size] == element * block:
                length += block
                step = min(step * 2, 1 << 16)
            else:
                step = min(step, block) // 2
        return length
    while number + length < extent.count:
        start = (number + length) * extent.stride
        if data[start : start + size] != element:
            break
        length += 1
    return length


def _is_characters(types: TypeTable, bare: Array) -> bool:
    element = types.strip(bare.element)
    return isinstance(element, Base) and element.size == 1 and element.encoding in ("signed_char", "unsigned_char")
