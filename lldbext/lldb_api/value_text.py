"""Writes LLDB's values in GDB's format: `{first = 1, second = 2}`, `65 'A'`, `(int *) 0x2000`.

Takes an `SBValue`; gives one line. Both debuggers then answer `rank print` alike. It never evaluates anything.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Optional

import lldb

from pieglobalsfind.errors import UsageError

MOST_ELEMENTS = 200
MOST_DEPTH = 20
REPEATS = 10  # equal elements from which they are counted
CHARACTERS = (lldb.eBasicTypeChar, lldb.eBasicTypeSignedChar, lldb.eBasicTypeUnsignedChar)
INTEGERS = (
    *(lldb.eBasicTypeShort, lldb.eBasicTypeUnsignedShort, lldb.eBasicTypeInt, lldb.eBasicTypeUnsignedInt),
    *(lldb.eBasicTypeLong, lldb.eBasicTypeUnsignedLong, lldb.eBasicTypeLongLong, lldb.eBasicTypeUnsignedLongLong),
)
FLOATS = {lldb.eBasicTypeFloat: 9, lldb.eBasicTypeDouble: 17, lldb.eBasicTypeLongDouble: 18}  # digits that tell all
FORMS = {"x": "0x{:x}", "o": "0{:o}", "t": "{:b}", "a": "0x{:x}", "z": "0x{:0{width}x}"}
TAGS = {lldb.eTypeClassStruct: "struct", lldb.eTypeClassUnion: "union", lldb.eTypeClassEnumeration: "enum"}
C_LANGUAGES = (lldb.eLanguageTypeC89, lldb.eLanguageTypeC, lldb.eLanguageTypeC99, lldb.eLanguageTypeC11)
ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 27: "\\033", 92: "\\\\"}


def text(value: Any, form: str = "", nested: bool = False, depth: int = 0) -> str:
    """A value; `form` is a format such as "/x" for the scalars in it. Raises `UsageError` for an unknown format."""
    if depth > MOST_DEPTH:
        return "{...}"
    if value.GetError().Fail():
        return f"<{value.GetError().GetCString()}>"
    kind = value.GetType().GetCanonicalType()
    if kind.IsReferenceType():
        return reference(value, form, nested, depth)
    if kind.GetTypeClass() == lldb.eTypeClassArray:
        return array(value, form, depth)
    if kind.IsFunctionType():
        return f"{{{kind.GetName()}}} {symbolic(value.GetTarget(), value.GetLoadAddress())}"
    if kind.IsPointerType():
        return pointer(value, form, nested)
    if kind.GetTypeClass() in (lldb.eTypeClassStruct, lldb.eTypeClassClass, lldb.eTypeClassUnion):
        return members(value, form, depth)
    return scalar(value, kind, form)


def is_plain(value: Any) -> bool:
    """Whether a value's text is LLDB's own, with nothing about it to be found out first."""
    return value.GetType().GetCanonicalType().GetUnqualifiedType().GetBasicType() in INTEGERS


def reference(value: Any, form: str, nested: bool, depth: int) -> str:
    """Return a reference as GDB prints it."""
    target = value.Dereference()
    shown = text(target, form, nested, depth + 1)
    return shown if nested else f"({type_name(value)}) @{target.GetLoadAddress():#x}: {shown}"


def array(value: Any, form: str, depth: int) -> str:
    """Return an array as GDB prints it."""
    count = value.GetNumChildren()
    if not form and _element_is_character(value):
        return quoted(bytes(value.GetChildAtIndex(index).GetValueAsUnsigned() & 255 for index in range(count)), count)
    shown = [text(value.GetChildAtIndex(index), form, True, depth + 1) for index in range(min(count, MOST_ELEMENTS))]
    return "{" + ", ".join(counted(shown)) + ("..." if count > MOST_ELEMENTS else "") + "}"


def _element_is_character(value: Any) -> bool:
    kind = value.GetType().GetCanonicalType().GetArrayElementType()
    return kind.GetCanonicalType().GetUnqualifiedType().GetBasicType() in CHARACTERS


def counted(shown: list[str]) -> Iterator[str]:
    """Equal neighbours together: `0 <repeats 15 times>`."""
    for element, equal in itertools.groupby(shown):
        count = len(list(equal))
        if count >= REPEATS:
            yield f"{element} <repeats {count} times>"
        else:
            yield from itertools.repeat(element, count)


def quoted(content: bytes, size: Optional[int] = None) -> str:
    """A string in C's notation; of an array only as far as there is something in it."""
    shown = content.rstrip(b"\0") if size is not None else content
    body = "".join(escaped(character) for character in shown[:MOST_ELEMENTS])
    return f'"{body}"' + ("..." if len(shown) > MOST_ELEMENTS else "")


def escaped(character: int, quote: str = '"') -> str:
    """Return a character as C writes it in a literal."""
    if character in ESCAPES:
        return ESCAPES[character]
    if chr(character) == quote:
        return "\\" + quote
    return chr(character) if 32 <= character < 127 else f"\\{character:03o}"


def pointer(value: Any, form: str, nested: bool) -> str:
    """Return a pointer as GDB prints it."""
    address = value.GetValueAsUnsigned()
    if form:
        return formatted(address, 8, form)
    to = value.GetType().GetCanonicalType().GetPointeeType().GetUnqualifiedType()
    shown = symbolic(value.GetTarget(), address)
    if to.GetBasicType() in CHARACTERS:
        error = lldb.SBError()
        content = value.GetProcess().ReadCStringFromMemory(address, MOST_ELEMENTS + 2, error) if address else None
        return f"{shown} {quoted(content.encode('utf-8', 'surrogateescape'))}" if error.Success() and content else shown
    return shown if nested else f"({type_name(value)}) {shown}"


def type_name(value: Any) -> str:
    """A type's name; of a C structure with its tag, as GDB says it and LLDB does not."""
    innermost = value.GetType()
    while innermost.IsPointerType() or innermost.GetTypeClass() == lldb.eTypeClassArray:
        innermost = innermost.GetPointeeType() if innermost.IsPointerType() else innermost.GetArrayElementType()
    tag = TAGS.get(innermost.GetTypeClass())
    name, bare = str(value.GetTypeName()), str(innermost.GetUnqualifiedType().GetName() or "")
    if tag and bare and is_of_c(value):
        return name.replace(bare, f"{tag} {bare}", 1)
    return name


def is_of_c(value: Any) -> bool:
    """Whether the frame that a value was found in is of a C program."""
    return value.GetFrame().GetCompileUnit().GetLanguage() in C_LANGUAGES


def symbolic(target: Any, address: int) -> str:
    """An address with the symbol that lies there: `0x2000 <counter+4>`."""
    place = target.ResolveLoadAddress(address)
    symbol = place.GetSymbol()
    if not address or not symbol.IsValid() or not symbol.GetName():
        return f"{address:#x}"
    distance = address - symbol.GetStartAddress().GetLoadAddress(target)
    return f"{address:#x} <{symbol.GetName()}" + (f"+{distance}>" if distance else ">")


def members(value: Any, form: str, depth: int) -> str:
    """A structure; one that LLDB knows better (strings, containers) in LLDB's words."""
    summary = value.GetSummary()
    if summary and (not value.GetNumChildren() or summary.startswith('"')):
        return str(summary)
    parts = []
    for index in range(min(value.GetNumChildren(), MOST_ELEMENTS)):
        child = value.GetChildAtIndex(index)
        shown = text(child, form, True, depth + 1)
        name = child.GetName() or ""
        is_base = index < value.GetType().GetNumberOfDirectBaseClasses() and not value.IsSynthetic()
        parts.append(f"<{name}> = {shown}" if is_base else shown if name.startswith("[") else f"{name} = {shown}")
    return (f"{summary} " if summary else "") + "{" + ", ".join(parts) + "}"


def scalar(value: Any, kind: Any, form: str) -> str:
    """Return a number or character as GDB prints it."""
    basic = kind.GetUnqualifiedType().GetBasicType()
    if form and basic not in FLOATS:
        return formatted(value.GetValueAsUnsigned(), value.GetByteSize(), form)
    if basic in FLOATS:
        return floating(value, basic)
    if basic in CHARACTERS:
        signed = basic != lldb.eBasicTypeUnsignedChar
        number = value.GetValueAsSigned() if signed else value.GetValueAsUnsigned()
        return f"{number} '{escaped(number & 255, chr(39))}'"
    if basic == lldb.eBasicTypeBool and is_of_c(value) and value.GetLoadAddress() == lldb.LLDB_INVALID_ADDRESS:
        return str(value.GetValueAsUnsigned())  # LLDB compares as C++ does
    return str(value.GetValue())


def floating(value: Any, basic: int) -> str:
    """Return a floating-point number as GDB prints it."""
    error = lldb.SBError()
    data = value.GetData()
    if basic == lldb.eBasicTypeLongDouble:
        return str(value.GetValue())
    number = data.GetFloat(error, 0) if basic == lldb.eBasicTypeFloat else data.GetDouble(error, 0)
    return f"{number:.{FLOATS[basic]}g}" if error.Success() else str(value.GetValue())


def formatted(number: int, size: int, form: str) -> str:
    """A number by one of GDB's format letters."""
    letter = form.lstrip("/").lstrip("0123456789")[:1]
    signed = number - (1 << 8 * size) if number >> (8 * size - 1) else number
    if letter == "d":
        return str(signed)
    if letter == "u":
        return str(number)
    if letter == "c":
        return f"{signed} '{escaped(number & 255, chr(39))}'"
    if letter not in FORMS:
        raise UsageError(f"{form!r} is not a format", "formats are /x /d /u /o /t /a /c /z")
    return FORMS[letter].format(number, width=2 * size) if number or letter in "xaz" else "0"
