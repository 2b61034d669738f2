"""Numbers, characters, truth values, enumerators and strings as GDB's `print` writes them.

Takes bytes and a type without parts; gives text without control characters. Pure.
"""

from __future__ import annotations

import re
import struct
from decimal import Context, Decimal

from pieglobalsfind.dwarf.types import Base, Enum

MOST_ELEMENTS = 200  # GDB's `print elements`
REPEATS = 10  # GDB's `print repeats`
LARGEST_STEP = 1 << 16  # bytes
MOST_RAW = 32  # bytes of no known type that are shown
# Of IEEE 754's binary128, whose size is that of the x87's format with its padding: GCC, gfortran, clang and flang
QUADRUPLE = re.compile(r"(?i)float128|kind=16|\*16|\*32")
# Digits that tell two values of a format apart, as many as GDB shows: by bits of the significand
HALF, BRAIN, SINGLE, DOUBLE, EXTENDED, QUAD = 5, 4, 9, 17, 21, 36


def decode_base(bare: Base, data: bytes, language: str) -> str:
    """A number, a character or a truth value."""
    if bare.encoding in ("float", "imaginary_float"):
        return decode_float(data, bare.name)
    if bare.encoding == "complex_float":
        half = len(data) // 2
        real, imaginary = decode_float(data[:half], bare.name), decode_float(data[half:], bare.name)
        return f"({real},{imaginary})" if language == "Fortran" else f"{real} + {imaginary}i"
    if bare.encoding == "decimal_float":
        return decode_decimal(data)
    if bare.encoding.startswith("encoding"):
        return raw(data)
    value = int.from_bytes(data, "little", signed=bare.encoding in ("signed", "signed_char"))
    if bare.encoding == "boolean":
        return decode_boolean(value, language)
    if bare.encoding in ("signed_char", "unsigned_char", "UTF") and language != "Fortran":
        prefix = {2: "u", 4: "U"}.get(len(data), "") if bare.encoding == "UTF" else ""
        return f"{value} {prefix}{character(value & 0xFF if len(data) == 1 else value)}"
    return str(value)


def decode_boolean(value: int, language: str) -> str:
    """Return a boolean in the language's words."""
    if value not in (0, 1):
        return str(value)
    names = (".FALSE.", ".TRUE.") if language == "Fortran" else ("false", "true")
    return names[value]


def raw(data: bytes) -> str:
    """Bytes of no known type: a number in hex where they are as long as one, else byte by byte."""
    if len(data) in (1, 2, 4, 8):
        return hex(int.from_bytes(data, "little"))
    more = "..." if len(data) > MOST_RAW else ""
    return f"<{len(data)} bytes: {data[:MOST_RAW].hex(' ')}{more}>"


def decode_float(data: bytes, name: str) -> str:
    """With as many digits as tell two values of this format apart, like GDB; the type's name tells some apart."""
    if len(data) == 2 and "bf16" in name.lower():
        return plain_float(struct.unpack("<f", b"\0\0" + data)[0], BRAIN) or no_number(data, 7)
    if len(data) == 2:
        return plain_float(struct.unpack("<e", data)[0], HALF) or no_number(data, 10)
    if len(data) == 4:
        return plain_float(struct.unpack("<f", data)[0], SINGLE) or no_number(data, 23)
    if len(data) == 8:
        return plain_float(struct.unpack("<d", data)[0], DOUBLE) or no_number(data, 52)
    if len(data) == 16 and QUADRUPLE.search(name):
        return decode_quadruple(data)
    if len(data) in (12, 16):
        return decode_extended(data)
    return raw(data)


def plain_float(value: float, digits: int) -> str:
    """ "" for what is not a number."""
    return f"{value:.{digits}g}" if value == value else ""


def no_number(data: bytes, bits: int) -> str:
    """With the sign and the so many bits in which one such value differs from another."""
    word = int.from_bytes(data, "little")
    return f"{'-' if data[-1] & 0x80 else ''}nan({word & (1 << bits) - 1:#x})"


def decode_extended(data: bytes) -> str:
    """x87's 80-bit format: 64 bits with an explicit integer bit, 15 of exponent, a sign."""
    significand, head = struct.unpack_from("<QH", data)
    sign, exponent = "-" if head & 0x8000 else "", head & 0x7FFF
    if exponent == 0x7FFF:
        return f"{sign}inf" if significand << 1 & 0xFFFFFFFFFFFFFFFF == 0 else no_number(data[:10], 64)
    return sign + scaled(significand, max(exponent, 1) - 16383 - 63, EXTENDED)


def decode_quadruple(data: bytes) -> str:
    """IEEE 754's binary128: 112 bits of the fraction, 15 of exponent, a sign."""
    word = int.from_bytes(data, "little")
    sign, exponent, fraction = "-" if word >> 127 else "", word >> 112 & 0x7FFF, word & (1 << 112) - 1
    if exponent == 0x7FFF:
        return no_number(data, 112) if fraction else f"{sign}inf"
    significand = fraction | (1 << 112 if exponent else 0)
    return sign + scaled(significand, max(exponent, 1) - 16383 - 112, QUAD)


def scaled(significand: int, power_of_two: int, shown: int) -> str:
    """The number with so many digits, as C's %g writes it."""
    wide = Context(prec=60)
    value = wide.multiply(Decimal(significand), wide.power(Decimal(2), Decimal(power_of_two)))
    digits, power = f"{value:.{shown - 1}e}".split("e") if value else ("0", "0")
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    if -5 < int(power) < shown:
        return f"{Decimal(digits + 'e' + power):f}"
    return f"{digits}e{power[0]}{int(power[1:]):02d}"


# By size in bytes: bits of the exponent, its bias, digits (IEEE 754-2008, table 3.6)
DECIMALS = {4: (8, 101, 7), 8: (10, 398, 16), 16: (14, 6176, 34)}


def decode_decimal(data: bytes) -> str:
    """A decimal number in the binary encoding, which the psABI of x86-64 has (IEEE 754-2008, 3.5.2)."""
    if len(data) not in DECIMALS:
        return raw(data)
    bits, bias, digits = DECIMALS[len(data)]
    word, width = int.from_bytes(data, "little"), 8 * len(data)
    sign, combination = word >> (width - 1), word >> (width - 6) & 0b11111
    if combination >= 0b11110:
        return no_number(data, width - 6) if combination & 1 else f"{'-' if sign else ''}inf"
    is_large = combination >= 0b11000  # the coefficient's first three bits are 100
    low = width - 1 - bits - (2 if is_large else 0)
    coefficient = word & (1 << low) - 1 | (0b100 << low if is_large else 0)
    exponent = word >> low & (1 << bits) - 1
    if coefficient >= 10**digits:
        coefficient = 0  # as the standard has it
    return str(Decimal((sign, tuple(map(int, str(coefficient))), exponent - bias)))


def decode_enum(bare: Enum, data: bytes, language: str) -> str:
    """Return an enumerator's name, or the number."""
    value = int.from_bytes(data[: bare.size], "little", signed=bare.signed)
    for enumerator in bare.enumerators:
        if enumerator.value == value:
            return f"{bare.name}::{enumerator.name}" if language == "C++" and bare.name else enumerator.name
    flags = [
        enumerator
        for enumerator in bare.enumerators
        if enumerator.value > 0 and enumerator.value & value == enumerator.value
    ]
    if (
        value
        and flags
        and all(
            enumerator.value & (enumerator.value - 1) == 0 for enumerator in bare.enumerators if enumerator.value > 0
        )
    ):
        rest = value & ~sum(flag.value for flag in flags)
        names = [flag.name for flag in flags] + ([f"unknown: {rest:#x}"] if rest else [])
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
    """Return a character as C writes it in a literal."""
    if code in _ESCAPES:
        return _ESCAPES[code]
    if 32 <= code < 127:
        return f"\\{quote}" if chr(code) == quote else chr(code)
    return f"\\{code:03o}" if code < 256 else f"\\u{code:04x}"


def quoted(data: bytes, quote: str) -> str:
    """Return bytes as a literal."""
    return quote + "".join(escaped(byte, quote) for byte in data) + quote
