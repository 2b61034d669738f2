"""Numbers, characters, truth values, enumerators and strings as GDB's `print` writes them.

Takes bytes and a type without parts; gives text without control characters. Pure.
"""

from __future__ import annotations

import struct
from decimal import Context, Decimal

from pieglobalsfind.dwarf_types import Base, Enum

MOST_ELEMENTS = 200  # GDB's `print elements`
REPEATS = 10  # GDB's `print repeats`
LARGEST_STEP = 1 << 16  # bytes
EXTENDED_DIGITS = 21  # tell two 80-bit values apart


def decode_base(bare: Base, data: bytes, language: str) -> str:
    """A number, a character or a truth value."""
    if bare.encoding in ("float", "imaginary_float"):
        return decode_float(data)
    if bare.encoding == "complex_float":
        half = len(data) // 2
        real, imaginary = decode_float(data[:half]), decode_float(data[half:])
        return f"({real},{imaginary})" if language == "Fortran" else f"{real} + {imaginary}i"
    value = int.from_bytes(data, "little", signed=bare.encoding in ("signed", "signed_char"))
    if bare.encoding == "boolean":
        return decode_boolean(value, language)
    if bare.encoding in ("signed_char", "unsigned_char", "UTF") and language != "Fortran":
        prefix = {2: "u", 4: "U"}.get(len(data), "") if bare.encoding == "UTF" else ""
        return f"{value} {prefix}{character(value & 0xFF if len(data) == 1 else value)}"
    return str(value)


def decode_boolean(value: int, language: str) -> str:
    if value not in (0, 1):
        return str(value)
    names = (".FALSE.", ".TRUE.") if language == "Fortran" else ("false", "true")
    return names[value]


def decode_float(data: bytes) -> str:
    """With as many digits as tell two values of this format apart, like GDB."""
    if len(data) == 4:
        return plain_float(struct.unpack("<f", data)[0], 9)
    if len(data) == 8:
        return plain_float(struct.unpack("<d", data)[0], 17)
    if len(data) in (12, 16):
        return decode_extended(data)
    return f"<{len(data)}-byte float>"


def plain_float(value: float, digits: int) -> str:
    if value != value:
        return "nan"
    text = f"{value:.{digits}g}"
    return "inf" if text == "inf" else text


def decode_extended(data: bytes) -> str:
    """x87's 80-bit format: 64 bits with an explicit integer bit, 15 of exponent, a sign."""
    significand, head = struct.unpack_from("<QH", data)
    sign, exponent = "-" if head & 0x8000 else "", head & 0x7FFF
    if exponent == 0x7FFF:
        return sign + ("inf" if significand << 1 & 0xFFFFFFFFFFFFFFFF == 0 else "nan")
    wide = Context(prec=60)
    value = wide.multiply(Decimal(significand), wide.power(Decimal(2), Decimal(exponent - 16383 - 63)))
    digits, power = f"{value:.{EXTENDED_DIGITS - 1}e}".split("e") if value else ("0", "0")
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    if -5 < int(power) < EXTENDED_DIGITS:
        return sign + f"{Decimal(digits + 'e' + power):f}"
    return f"{sign}{digits}e{power[0]}{int(power[1:]):02d}"


def decode_enum(bare: Enum, data: bytes, language: str) -> str:
    value = int.from_bytes(data[: bare.size], "little", signed=bare.signed)
    for one in bare.enumerators:
        if one.value == value:
            return f"{bare.name}::{one.name}" if language == "C++" and bare.name else one.name
    flags = [one for one in bare.enumerators if one.value > 0 and one.value & value == one.value]
    if value and flags and all(one.value & (one.value - 1) == 0 for one in bare.enumerators if one.value > 0):
        rest = value & ~sum(one.value for one in flags)
        names = [one.name for one in flags] + ([f"unknown: {rest:#x}"] if rest else [])
        return f"({' | '.join(names)})"
    return str(value)


def decode_characters(data: bytes) -> str:
    """A char array as GDB shows it: the last zero left out, long runs of equal characters folded."""
    text = data[:-1] if data.endswith(b"\0") and len(data) <= MOST_ELEMENTS else data
    parts: list[str] = []
    plain = b""
    left = MOST_ELEMENTS
    start = 0
    while start < len(text) and left > 0:
        end = run_end(text, start)
        length = end - start
        left -= min(length, REPEATS)
        if length > REPEATS:
            parts += [quoted(plain, '"')] if plain else []
            parts.append(f"{character(text[start])} <repeats {length} times>")
            plain = b""
        else:
            plain += text[start:end]
        start = end
    parts += [quoted(plain, '"')] if plain or not parts else []
    return ", ".join(parts) + ("..." if left <= 0 and len(text) > MOST_ELEMENTS and plain else "")


def run_end(text: bytes, start: int) -> int:
    """Where the run of equal bytes that begins at `start` ends; a run may be millions of bytes long."""
    same, end, step = text[start : start + 1], start + 1, 16
    while end < len(text):
        window = text[end : end + step]
        if window != same * len(window):  # much faster than stripping, where it is one long run
            return end + len(window) - len(window.lstrip(same))
        end += len(window)
        step = min(2 * step, LARGEST_STEP)
    return end


_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 27: "\\033", 92: "\\\\"}


def character(code: int, quote: str = "'") -> str:
    """A character literal, control and non-ASCII characters escaped."""
    return quote + escaped(code, quote) + quote


def escaped(code: int, quote: str) -> str:
    if code in _ESCAPES:
        return _ESCAPES[code]
    if 32 <= code < 127:
        return f"\\{quote}" if chr(code) == quote else chr(code)
    return f"\\{code:03o}" if code < 256 else f"\\u{code:04x}"


def quoted(data: bytes, quote: str) -> str:
    return quote + "".join(escaped(byte, quote) for byte in data) + quote
