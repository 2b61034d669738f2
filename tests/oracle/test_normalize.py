"""What the comparison may not see, and that it sees everything else."""

from __future__ import annotations

from tests.support.oracle.normalize import normalize

SOURCES = ("hold.c", "cells.c")


def same(one: str, other: str) -> bool:
    return normalize(one, SOURCES) == normalize(other, SOURCES)


def test_addresses_are_alike_and_their_symbols_are_not() -> None:
    assert same("$1 = (int *) 0x555555558010 <counter>\n", "$7 = (int *) 0x10000004010 <counter>\n")
    assert not same("$1 = (int *) 0x555555558010 <counter>\n", "$1 = (int *) 0x555555558010 <counter+4>\n")


def test_small_hexadecimal_numbers_are_data() -> None:
    assert not same("$1 = 0x3ef\n", "$1 = 0x7d7\n")
    assert not same("$1 = (int *) 0x0\n", "$1 = (int *) 0x555555558010\n")


def test_values_and_arguments_count() -> None:
    assert not same("$1 = {1, 2}\n", "$1 = {1, 3}\n")
    assert not same("#1  0x555555555555 in f (n=1) at cells.c:5\n", "#1  0x555555555555 in f (n=2) at cells.c:5\n")
    assert not same("#1  0x555555555555 in f (n=1) at cells.c:5\n", "#1  0x555555555555 in f (n=1) at cells.c:6\n")


def test_arguments_from_dead_memory_are_alike_and_right_ones_count() -> None:
    assert same("me = 0\nranks = 0\n", "me = 8192\nranks = -240\n")
    assert same("#1  f (me=0, ranks=0) at cells.c:5\n", "#1  f (me=8192, ranks=-240) at cells.c:5\n")
    assert not same("me = 0\nranks = 4\n", "me = 1\nranks = 4\n")
    assert not same("me = 0\nranks = 4\n", "me = 0\nranks = 0\n")
    assert not same("me = <optimized out>\nranks = <optimized out>\n", "me = 0\nranks = 0\n")


def test_the_runtime_below_and_above_is_left_out() -> None:
    native = "#0  0x7ffff575e650 in PMPI_Recv () from libmpich.so\n#1  0x555555555555 in main () at cells.c:5\n"
    virtual = (
        "#1  0x7ffff575e650 in rank_block () at scheduler.c:9\n#2  0x555555555555 in main () at cells.c:5\n"
        "#3  0x7ffff575e650 in rank_entry () at scheduler.c:90\n"
    )
    assert same(native, virtual)


def test_frames_between_the_users_own_stay() -> None:
    through = (
        "#0  0x555555555555 in f () at cells.c:5\n#1  0x7ffff575e650 in qsort () at msort.c:9\n"
        "#2  0x555555555555 in main () at cells.c:7\n"
    )
    direct = "#0  0x555555555555 in f () at cells.c:5\n#1  0x555555555555 in main () at cells.c:7\n"
    assert not same(through, direct)


def test_locals_of_a_frame_stay() -> None:
    assert not same(
        "#1  0x555555555555 in main () at cells.c:5\n        n = 1\n",
        "#1  0x555555555555 in main () at cells.c:5\n        n = 2\n",
    )


def test_the_object_file_is_left_out_and_its_section_is_not() -> None:
    assert same("counter in section .data\n", "counter in section .data of /tmp/view/cells\n")
    assert not same("counter in section .data\n", "counter in section .bss\n")
