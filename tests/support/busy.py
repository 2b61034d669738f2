"""Programs whose ranks never wait long, and what their stacks and globals must be at every moment.

`SOURCE` takes a way as its first word: `exchange` (ranks send to one another without pause), `compute` (no rank waits),
or `recurse` (deep and shallow stacks in turns). It prints one line at its end, which does not depend on who looks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SOURCE = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
volatile unsigned long before, after;
int number = -1;
static int size;
static long turns;
static unsigned long sum;
__attribute__((noinline)) static void step(void) {
  before++;
  after++;
}
__attribute__((noinline)) static void exchange(void) {
  unsigned long got = 0, mine = sum + number;
  step();
  MPI_Sendrecv(&mine, 1, MPI_UNSIGNED_LONG, (number + 1) % size, 7, &got, 1, MPI_UNSIGNED_LONG,
               (number + size - 1) % size, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  sum += got % 1000;
}
__attribute__((noinline)) static void compute(void) {
  for (int at = 0; at < 1000; at++) {
    step();
    if (MPI_Wtime() >= 0) sum += at % 7; /* in the kernel's own code */
  }
}
__attribute__((noinline)) static int descend(int depth) {
  volatile char room[64];
  room[0] = (char)depth;
  if (depth == 0) exchange();
  else descend(depth - 1);
  return room[0];
}
__attribute__((noinline)) static void solve(const char *way) {
  for (long turn = 0; turn < turns; turn++) {
    if (way[0] == 'e') exchange();
    else if (way[0] == 'c') compute();
    else descend(turn % 2 ? 5 : 300);
  }
}
int main(int count, char **words) {
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  turns = atol(words[2]);
  MPI_Barrier(MPI_COMM_WORLD);
  puts("begins");
  fflush(stdout);
  solve(words[1]);
  unsigned long all = 0;
  MPI_Reduce(&sum, &all, 1, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (number == 0) printf("sum %lu before %lu\n", all, before);
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
"""
# By function of the program: those of it that it calls; other code may be below any.
CALLS: Mapping[str, Sequence[str]] = {
    "main": ("solve",),
    "solve": ("exchange", "compute", "descend"),
    "compute": ("step",),
    "descend": ("descend", "exchange"),
    "exchange": ("step",),
    "step": (),
}
WAYS = ("exchange", "compute", "recurse")


def why_impossible(functions: Sequence[str], way: str, calls: Mapping[str, Sequence[str]] = CALLS) -> str:
    """Why a stack, outermost call first, can't be one of the program with these calls; "" if it can."""
    if "main" not in functions:
        return f"it does not come from main: {functions}"
    last = len(functions) - 1 - functions[::-1].index("main")  # unoptimized, AMPI's loader has one that calls it
    own = list(functions[last:])
    while own and own[-1] not in calls:  # the runtime's, below
        own.pop()
    for caller, callee in zip(own, own[1:]):
        if callee not in calls.get(caller, ()):
            return f"{caller} does not call {callee}: {functions}"
    depth = own.count("descend")
    if way == "recurse" and "exchange" in own and depth not in (6, 301):
        return f"it is {depth} deep: {functions}"
    return ""
