"""`rank print`: an expression in many ranks. Its arguments' grammar serves `rank diff` too.

    rank print EXPR            in all ranks
    rank print EXPR SET        rank print counter 0-3
    rank print EXPR N N ...    rank print counter 1 5
    rank print SET EXPR        rank print 0-3 counter
    rank print --nominal ...   in each rank's own copy, also where its code uses another instance

An expression has no operand beside a number, so a set before or after an expression is found: a set at the end
must follow an operand; a set at the start must not be followed by a binary operator. An operator that touches what
follows it and not what precedes it is unary: `3 *p` is p's target in rank 3, `3 * p` a product. `--` settles it:
`rank print 3 -- *p`, `rank print -- 3 *p`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Union

from pieglobalsfind.debugger.declare import Block, Debugger, ExpressionValue, TextBlock
from pieglobalsfind.errors import RanklensError, TargetEndedError, UsageError
from pieglobalsfind.model import Absent
from pieglobalsfind.ranks import rankset
from pieglobalsfind.ranks.translate import IN_USE
from pieglobalsfind.ranks.variable_address import nominal_place
from pieglobalsfind.session.process_view import ProcessView

_NOMINAL = re.compile(r"--nominal(?:\s+|$)")
_FORM = re.compile(r"/\w+(?=\s|$)")
_DASHES = re.compile(r"(?:^|\s)--(?:\s|$)")
_ENDS_AS_OPERAND = re.compile(r"[\w)\]}'\"$@]$")
_ENDS_AS_OPERATOR = re.compile(r"\b(and|or|not|xor|bitand|bitor|compl|sizeof|alignof|new|mod|div|rem|in)$")
_STARTS_AS_OPERAND = re.compile(r"[\w($'\"@{\[~]|::|!(?!=)|[-+*&](?=[^\s=])")

_IS_MEANT_AS_SET = re.compile(r"\d[\d,-]*$")


@dataclass(frozen=True)
class PrintRequest:
    """What is asked: `form` is a format such as "/x", or ""; `nominal`: as each rank's own copy has it."""

    ranks: rankset.RankSet
    expression: str
    form: str
    nominal: bool = False


def parse(text: str, command: str = "rank print") -> PrintRequest:
    """The grammar above; raises `UsageError` if there is no expression."""
    nominal, text = without_nominal(text)
    match = _FORM.match(text)
    form = match.group() if match else ""
    chosen, expression = _split(text[len(form) :].strip())
    if not expression:
        raise UsageError("no expression to print is given", f"{command} EXPR [SET], as in: {command} counter 0-3")
    return PrintRequest(chosen, expression, form, nominal)


def without_nominal(text: str) -> tuple[bool, str]:
    """Whether a command's words begin with --nominal, and the others."""
    text = text.strip()
    match = _NOMINAL.match(text)
    return match is not None, text[match.end() :] if match else text


def _split(text: str) -> tuple[rankset.RankSet, str]:
    dashes = _DASHES.search(text)
    if dashes:
        before = text[: dashes.start()].strip()
        return (rankset.parse(before) if before else rankset.ALL), text[dashes.end() :].strip()
    first, _, rest = text.partition(" ")
    chosen = rankset.recognize(first)
    if chosen is not None and _STARTS_AS_OPERAND.match(rest.strip()) and not _is_all_sets(rest):
        return chosen, rest.strip()
    return _split_end(text)


def _is_all_sets(text: str) -> bool:
    return all(rankset.recognize(word) is not None for word in text.split())


def _split_end(text: str) -> tuple[rankset.RankSet, str]:
    """Take as many sets from the end as leave an expression that ends in an operand."""
    chosen: rankset.RankSet = ()
    while True:
        rest, _, last = text.rpartition(" ")
        is_after_operand = is_operand(rest.rstrip())
        if is_after_operand and _IS_MEANT_AS_SET.match(last):
            rankset.parse(last)  # raises, once for all ranks, where it is cut short
        chosen_last = rankset.recognize(last) if is_after_operand else None
        if chosen_last is None:
            return chosen or rankset.ALL, text
        chosen, text = chosen_last + chosen, rest.rstrip()


def is_operand(text: str) -> bool:
    """Whether an expression may end so, and a set follow."""
    return bool(_ENDS_AS_OPERAND.search(text)) and not _ENDS_AS_OPERATOR.search(text)


def run(debugger: Debugger, text: str) -> Iterator[Block]:
    """Values as they are read; what can't be had follows once for all ranks of which the same is to be said."""
    failures: dict[str, list[int]] = {}
    for number, answer in answers(debugger, parse(text)):
        if isinstance(answer, Absent):
            failures.setdefault(str(answer), []).append(number)
        else:
            yield TextBlock(f"{number}: {answer}")
    for why, numbers in failures.items():
        yield TextBlock(f"{rankset.compact(numbers)}: {why}")


def answers(debugger: Debugger, request: PrintRequest) -> Iterator[tuple[int, Union[str, Absent]]]:
    """Each rank's number and its value, labelled if it is not the rank's own, or why there is none."""
    job = debugger.job()
    numbers = job.select(request.ranks, debugger.location)
    by_rank = debugger.values(numbers, request.expression, request.form)
    for number in debugger.counted(numbers):
        value = by_rank[number] if number in by_rank else evaluated(debugger, number, request)
        if request.nominal and not isinstance(value, Absent):
            yield number, _nominal(debugger, job.of(number), number, request, value)
        else:
            yield number, _labelled(job.of(number), number, value)


def evaluated(debugger: Debugger, number: int, request: PrintRequest) -> Union[ExpressionValue, Absent]:
    """Return an expression's value, or why it has none."""
    try:
        return debugger.evaluate(number, request.expression, request.form)
    except TargetEndedError:
        raise
    except RanklensError as error:
        return Absent(str(error))


def _nominal(
    debugger: Debugger, moment: ProcessView, number: int, request: PrintRequest, used: ExpressionValue
) -> Union[str, Absent]:
    """The value in the rank's own copy, labelled if the rank's code uses another instance."""
    if used.address is None:
        return Absent("it has no address, so it has no nominal place: ask for a variable, a member or an element")
    place = nominal_place(moment.rank(number), moment.table.objects, used.address)
    if place is None:
        return _labelled(moment, number, used)
    value = debugger.value_at(number, request.expression, place, request.form)
    return value if isinstance(value, Absent) else f"{value.text} (nominal: its code uses {used.address:#x})"


def _labelled(moment: ProcessView, number: int, value: Union[ExpressionValue, Absent]) -> Union[str, Absent]:
    if isinstance(value, Absent):
        return value
    owner = moment.translator.owner(value.address) if value.address is not None else None
    kind = owner.kind if owner is not None else ""
    if owner is not None and owner.reason == IN_USE:
        return f"{value.text} (the original's: privatization failed)"
    if kind == "original":
        return f"{value.text} (in the unprivatized original, not this rank's)"
    if kind == "shared" and not moment.rank(number).pages_of:
        return f"{value.text} (one for all ranks)"
    return value.text
