"""One module per decoder.

Each has `seeds()`, inputs from which the fuzzer starts, and `check(data)`, which decodes one input. `check` raises
`AssertionError` for a wrong answer; any other exception is a finding, too. It catches the errors that users see.
"""
