"""Whatever a client sends, the server answers the next good packet, writes nothing, and lets the job go on."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from tests.support.gdb.places import RANKS, Places
from tests.support.rsp import BASE, FEATURES, Client, Gone, connected, is_stopped, listening
from tests.support.waiting import wait_until

SEEDS = range(4)
PACKETS = 300  # of each seed
ALPHABET = b"$#+-\x03}*:;,gmMxXvqQ0123456789abcdef\0\xff"
GOOD = (
    FEATURES, "?", "!", "qC", "g", "p10", "p7", "m{address},4", "m{address},ffffffff", "x{address},10", "qfThreadInfo",
    "qsThreadInfo", "vAttach;{pid}", "D;{pid}", "D", "Hgp{pid}.{pid}", "Hc-1", "Tp{pid}.{pid}", "vCont?", "s",
    "qXfer:osdata:read:processes:0,400", "qXfer:threads:read::0,400", "qXfer:libraries-svr4:read::0,400",
    "qXfer:auxv:read::0,400", "qXfer:exec-file:read:{pid}:0,400", "qXfer:features:read:target.xml:0,400",
    "qGetTLSAddr:p{pid}.{pid},0,{address}", "M{address},4:00000000", "X{address},2:ab", "Z0,{address},1",
    "z0,{address},1", "Z2,{address},4", "Z4,{address},8", "z2,{address},4", "vCont;r{address},{address}:p{pid}.{pid}",
    "qMemoryRegionInfo:{address}", "jThreadsInfo", "qHostInfo", "qProcessInfo", "qfProcessInfo:pid:{decimal};",
    "qsProcessInfo", "qProcessInfoPID:{decimal}", "qLaunchGDBServer;host:h;", "qShlibInfoAddr",
    "QThreadSuffixSupported",
    "qThreadStopInfo{pid}", "qThreadExtraInfo,p{pid}.{pid}", "vFile:open:{text},0,0", "vFile:pread:3,100,0",
    "vFile:fstat:3", "vFile:close:3", "vFile:setfs:0", "vKill;{pid}", "P10=00", "G00", "vCont;s:p{pid}.{pid}",
)  # fmt: skip


def a_packet(chance: random.Random, places: Places) -> bytes:
    """A good one, or one that was cut, doubled, or changed in a few bytes."""
    address = chance.choice([0, 1, 1 << 63, (1 << 64) - 1, *(owned.address for owned in places.owned.values())])
    rank = chance.choice([*range(RANKS), RANKS, 1 << 20, -1])
    words = {
        "address": f"{address:x}", "pid": f"{BASE + rank:x}", "decimal": str(BASE + rank),
        "text": b"/etc/passwd".hex(),
    }  # fmt: skip
    content = bytearray(chance.choice(GOOD).format_map(words).encode())
    for _ in range(chance.choice([0, 0, 1, 3])):
        at = chance.randrange(len(content) + 1)
        change = chance.randrange(4)
        if change == 0:
            content[at : at + 1] = bytes((chance.randrange(256),))
        elif change == 1:
            del content[at : at + chance.randrange(8)]
        elif change == 2:
            content[at:at] = chance.choice([b"-1", b":", b",", b";", b"}", b"ffffffffffffffffff", b"\0", b"\xff"])
        else:
            content += content[:at]
    data = bytes(one for one in content if one not in b"#$")
    checksum = b"00" if chance.random() < 0.02 else b"%02x" % (sum(data) & 0xFF)
    return b"$%s#%s" % (data, checksum)


def has_answered(client: Client, data: bytes) -> bool:
    """Whether the server still talks to the client after a packet, by a good one that follows."""
    try:
        client.write(data)
        client.send("qAttached")
        while client.reply() != "1":
            pass
    except Gone:
        return False
    return True


@pytest.mark.parametrize("options", [(), ("--control",)], ids=["reading", "controlling"])
@pytest.mark.parametrize("seed", SEEDS)
def test_packets(seed: int, options: tuple[str, ...], places: Places) -> None:
    """The seed names the run; without `c`, which ends a conversation until Ctrl-C."""
    chance = random.Random(seed)
    values = {name: owned.value for name, owned in places.owned.items()}
    with listening(places.pid, "--port", 0, *options) as (address, process):
        client = connected(address)
        for _ in range(PACKETS):
            data = a_packet(chance, places)
            if data[1:2] in (b"c", b"C", b"k") or data.startswith(b"$vCont;c"):
                continue
            if not has_answered(client, data):
                assert process.poll() is None, (seed, data)
                client.close()
                client = connected(address)
        client.close()
        last = connected(address)
        last.start()
        for rank in range(RANKS):
            last.attach(rank)
            owned = places.owned[rank, "shared_name"]
            assert last.integer(owned.address) == values[rank, "shared_name"]
        last.close()
    wait_until(lambda: not is_stopped(places.pid), f"process {places.pid} was left stopped")


@pytest.mark.parametrize("seed", SEEDS)
def test_any_bytes(seed: int, places: Places) -> None:
    chance = random.Random(seed)
    with listening(places.pid, "--port", 0) as (address, process):
        for _ in range(20):
            client = connected(address)
            with suppress(Gone):
                for _ in range(20):
                    client.write(bytes(chance.choices(ALPHABET, k=chance.randrange(200))))
            client.close()
            assert process.poll() is None, seed
        last = connected(address)
        last.start()
        assert sorted(last.states()) == list(range(RANKS))
        last.close()
    wait_until(lambda: not is_stopped(places.pid), f"process {places.pid} was left stopped")
