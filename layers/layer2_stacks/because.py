"""The verdict in a sentence with its numbers, and where it leads."""

from __future__ import annotations

from layers.collectors.stacks.recording import Mode
from layers.evidence.wording import limit, pct
from layers.layer2_stacks.model import Row, ScopeAnalysis, Share, WaitKind
from layers.layer2_stacks.reading import Reading, RowKey
from layers.layer2_stacks.wording import called_from, counts, interval, line, place
from layers.layer2_stacks.words import BLOCKED_LIMIT, BUSY_LIMIT, STANDS_OUT, Word, mostly_waits, word_of

AFTER_WAIT = {
    WaitKind.QUEUE: "find who fills this queue: perfkit stages says which stage holds the work",
    WaitKind.SELECT: "look at whom it waits for: record that process under the same load",
    WaitKind.LOCK: "find who holds the lock: the other threads' lines (--thread), or their stage",
    WaitKind.CONDITION: "find who is to notify it: that thread or stage (perfkit stages) has the time",
    WaitKind.INTERPRETER: "record with --gil: which line holds the interpreter's lock meanwhile",
    WaitKind.DEVICE: "Layer 1 says whether the device works meanwhile; then what this wait holds up",
    WaitKind.SLEEP: "a sleep in a loop is a floor of every latency: wait for an event instead",
    WaitKind.SPIN: "find what it polls for: that process or thread is where the time goes",
    WaitKind.PROCESS: "it only waits for its children: record them",
}
IDLE_TOO = "record with --idle as well: it says in what it is blocked"
ACTIVE_TOO = "add captures without --idle, with their logs: they tell work from calls that block"
LOG_TOO = "give py-spy's words (--log): rate and duration say how much of the time this is"
MODE_TOO = "say --mode idle, active or gil"
UNDER_LOAD = "record under load first: perfkit layer2 --server URL --load N"
MORE_CAPTURES = "more captures of the same load make the interval narrower"


def because(reading: Reading) -> str:
    """Why the thread is called what it is."""
    word, name = word_of(reading), reading.scope.name
    if word is Word.BLOCKED:
        said = _waits(reading) if mostly_waits(reading) else _off_cpu(reading)
    elif word is Word.BURNING:
        said = f"{_runs(reading)}, limit {limit(BUSY_LIMIT)}; {_first_running(reading)}"
    elif word is Word.NOTHING:
        said = f"has no line or function that can hold {limit(STANDS_OUT)}; first {_first(reading)}"
    else:
        said = _open(reading)
    return f"{name} {said} ({counts(reading.main)})"


def _waits(reading: Reading) -> str:
    main, row = reading.main, _first_waiting(reading)
    kind = main.waits[0]
    at = f", first at {line(row)}{called_from(row)}" if row is not None else ""
    share = pct(kind.hits / main.total_ticks)
    return f"waits for {interval(main.waiting)}, limit {limit(BLOCKED_LIMIT)}; {kind.name} {share}{at}"


def _off_cpu(reading: Reading) -> str:
    runs = f"{_runs(reading)}, limit {limit(BUSY_LIMIT)}"
    if reading.idle is not None:
        return f"is most at {_first(reading)}{_waiting_there(reading)}; it {runs}"
    return f"{runs}; where it is the rest, no capture without --idle tells"


def _waiting_there(reading: Reading) -> str:
    row = reading.main.lines[0]
    return f", waiting for {row.wait}{called_from(row)}" if row.wait is not None else ""


def _runs(reading: Reading) -> str:
    if reading.on_cpu is not None:
        return f"works on a CPU for {interval(reading.on_cpu)} of its time"
    assert reading.holds_lock is not None
    return f"holds the interpreter's lock for {interval(reading.holds_lock)} of its time"


def _first_running(reading: Reading) -> str:
    key, share = first_running(reading)
    return f"{interval(share)} at {place(*key)}"


def first_running(reading: Reading) -> tuple[RowKey, Share]:
    """The line, or the function where lines are too small, that holds most of the running time."""
    line_key = max(reading.lines, key=lambda key: reading.lines[key].value)
    function_key = max(reading.functions, key=lambda key: reading.functions[key].value)
    if reading.lines[line_key].low >= STANDS_OUT:
        return line_key, reading.lines[line_key]
    return function_key, reading.functions[function_key]


def _first(reading: Reading) -> str:
    row = reading.main.lines[0] if reading.main.lines else None
    return f"{line(row)} {interval(row.share)}" if row is not None else "no frame"


def _open(reading: Reading) -> str:
    """Why there is no word."""
    if reading.mode is Mode.UNKNOWN:
        return f"has ticks of which nobody says what they are; first {_first(reading)}"
    if reading.idle is not None and reading.on_cpu is None:
        held = f"; it {_runs(reading)}" if reading.holds_lock is not None else ""
        return f"{_open_at_all_looks(reading, reading.idle)}{held}"
    timed = reading.on_cpu or reading.holds_lock
    if timed is not None:
        return f"{_runs(reading)}, {_why_open(timed)}; first {_first(reading)}"
    return f"is most at {_first(reading)}; how much of its time these looks are, no log tells"


def _open_at_all_looks(reading: Reading, idle: ScopeAnalysis) -> str:
    if idle.waiting.high >= BLOCKED_LIMIT:
        return f"waits for {interval(idle.waiting)}, on both sides of {limit(BLOCKED_LIMIT)}"
    return f"is most at {_first(reading)}; whether it works or blocks there, --idle alone does not tell"


def _why_open(timed: Share) -> str:
    if timed.high < BUSY_LIMIT:
        return "and where it is the rest, --gil does not tell"
    if timed.low >= BUSY_LIMIT:
        return f"and no line is clear of {limit(STANDS_OUT)}"
    return f"on both sides of {limit(BUSY_LIMIT)}"


def _first_waiting(reading: Reading) -> Row | None:
    return next((row for row in reading.main.lines if row.wait is not None), None)


def next_step(reading: Reading) -> str:
    """Where the verdict leads."""
    word = word_of(reading)
    if word is Word.BLOCKED:
        return _after_blocked(reading)
    if word is Word.BURNING:
        key, _ = first_running(reading)
        return f"take {place(*key)} off this thread or make it cheaper, then --compare with these captures"
    if word is Word.NOTHING:
        return "no line to change: more work per step (batch), or less of it; a sweep says what load does"
    return _what_it_takes(reading)


def _after_blocked(reading: Reading) -> str:
    if reading.idle is None:
        return IDLE_TOO
    if mostly_waits(reading):
        return AFTER_WAIT[WaitKind(reading.main.waits[0].name)]
    first = reading.main.lines[0]
    if first.wait is not None:
        return AFTER_WAIT[first.wait]
    return f"see what {line(first)} calls in C (--native): it holds the thread off its CPU"


def _what_it_takes(reading: Reading) -> str:
    if reading.mode is Mode.UNKNOWN:
        return MODE_TOO
    timed = reading.on_cpu or reading.holds_lock
    if timed is not None and timed.high >= BUSY_LIMIT:
        return MORE_CAPTURES
    if reading.idle is not None:
        return ACTIVE_TOO
    return LOG_TOO if timed is None else IDLE_TOO
