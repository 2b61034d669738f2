"""The framing: packets of any bytes come out of any pieces as they went in, and nothing else does."""

from __future__ import annotations

import random

import pytest

from inspector.serve import framing
from inspector.serve.framing import Damaged, Interrupt, Packet, ProtocolError, SendAgain, Splitter

SEED = 20250625


def sent(content: bytes) -> bytes:
    return b"$%s#%02x" % (content, sum(content) % 256)


def test_pieces_of_any_size_give_the_same_packets() -> None:
    chance = random.Random(SEED)
    contents = [framing.escaped(chance.randbytes(chance.randrange(40))) for _ in range(200)]
    stream = b"+".join(map(sent, contents))
    splitter, found, at = Splitter(), [], 0
    while at < len(stream):
        size = chance.randrange(1, 30)
        found += list(splitter.feed(stream[at : at + size]))
        at += size
    assert found == [Packet(content) for content in contents]


def test_escapes_are_undone() -> None:
    data = bytes(range(256)) * 2
    written = framing.escaped(data)
    assert not set(b"#$*") & set(written) and framing.unescaped(written) == data


def test_what_stands_between_packets() -> None:
    events = list(Splitter().feed(b"junk\x03+-" + sent(b"g") + b"$g#00" + b"\x03"))
    assert events == [Interrupt(), SendAgain(), Packet(b"g"), Damaged(), Interrupt()]


def test_a_packet_without_an_end_is_refused() -> None:
    splitter = Splitter()
    with pytest.raises(ProtocolError):
        for _ in range(framing.LARGEST // 1000 + 2):
            list(splitter.feed(b"$" + b"m" * 1000 if _ == 0 else b"m" * 1000))


@pytest.mark.parametrize("text", [b"", b"-1", b"0x10", b"1 ", b"g", b"1" * 17, b"\xff", b"1_0"])
def test_what_is_no_number(text: bytes) -> None:
    with pytest.raises(ValueError):
        framing.hexadecimal(text)
