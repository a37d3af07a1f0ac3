"""The guards on the client: was what was measured the server's, or the load client's own?

The client is judged by how late it was, never by the CPU of the machine: server and client may share one, and
a server that takes all of it slows itself alone as long as the client is served in time.
"""

from __future__ import annotations

from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.wording import counted, limit
from layers.layer3_sweep.model import Latency, SweepPass, Timing, WindowKind

LAG_LIMIT_MS = 3.0
"""Loop lag p99 up to here went with added delays below 0.2 ms at the median in all measured clients; from 5
ms on the added p99 passed 4 ms (load generators side by side, 1 to 256 streams of 100 events/s; perfkit's
own share of that: benchmarks/load_client.py)."""
LAG_OVER_FLOOR_MS = 2.0
"""Above the lag of an idle client on the same machine, where that was calibrated."""
LAG_SHARE = 0.05
"""Of the shortest median latency that is told: what a lag of less changes is inside the spread of any
sweep."""
GAP_SHARE = 0.10
"""The same for gaps between events, of which each bears two stamps."""
IN_FLIGHT_SHARE = 0.97
"""perfkit's choice: the closest clients to their number held 0.99 of it, those that were the limit 0.55 to
0.9."""
CPU_SHARE = 0.70
"""Of one core, the load process: above it Python event loops were late within the second."""
MEDIAN = 0.5


def median_ms(latency: Latency | None) -> float | None:
    """None where it was not measured, or n does not allow it."""
    found = (q.value_ms for q in latency.quantiles if q.quantile == MEDIAN) if latency else ()
    return next(iter(found), None)


def allowed_lag_ms(swept: SweepPass) -> float:
    """How late the client may be: what is small beside the shortest of the latencies that it measured."""
    medians = [median_ms(swept.timings.get(t)) for t in (Timing.TTFT, Timing.FIRST_AUDIO, Timing.E2E)]
    shortest = min((m for m in medians if m is not None), default=0.0)
    floor = swept.client.floor_ms if swept.client and swept.client.floor_ms is not None else 0.0
    return max(LAG_LIMIT_MS, floor + LAG_OVER_FLOOR_MS, LAG_SHARE * shortest)


def _client_late(swept: SweepPass) -> Outcome | None:
    if swept.client is None:
        return None
    allowed, client = allowed_lag_ms(swept), swept.client
    # An open loop whose arrivals wait for a slot is late as well, and that is what its send lag says.
    late = max(client.loop_lag_p99_ms, client.send_lag_p99_ms)
    text = (
        f"loop lag p99 {client.loop_lag_p99_ms:.2f} ms, send lag p99 {client.send_lag_p99_ms:.2f} ms; "
        f"up to {allowed:.2f} ms is small beside what was measured"
    )
    if client.loop_lag_p90_ms is None or max(client.loop_lag_p90_ms, client.send_lag_p99_ms) > allowed:
        return Outcome(late > allowed, text)
    text += f"; its p90 is {client.loop_lag_p90_ms:.2f} ms, so that only quantiles beyond p90 bear it"
    return Outcome(late > allowed, text, Effect.NOTE)


def _in_flight_short(swept: SweepPass) -> Outcome | None:
    asked = swept.load.concurrency
    if asked is None or swept.in_flight is None or swept.client is None:
        return None
    if swept.counts.told and not swept.counts.ok:
        return None  # requests that fail at once leave slots empty: that nothing was served says more (PK305)
    share = swept.in_flight / asked
    text = f"{swept.in_flight:.2f} of {asked} in flight ({100 * share:.1f} %, {swept.window.kind} window)"
    steady = swept.window.kind is WindowKind.STEADY
    return Outcome(share < IN_FLIGHT_SHARE, text, None if steady else Effect.DIRECTIONAL)


def _gaps_late(swept: SweepPass) -> Outcome | None:
    gap = median_ms(swept.timings.get(Timing.ITL))
    if swept.client is None or gap is None:
        return None
    lag, allowed = swept.client.loop_lag_p99_ms, max(LAG_LIMIT_MS, GAP_SHARE * gap)
    return Outcome(lag > allowed, f"loop lag p99 {lag:.2f} ms beside gaps of {gap:.2f} ms (median)")


def _retried(swept: SweepPass) -> Outcome | None:
    if swept.counts.attempts is None:
        return None
    more = swept.counts.attempts - swept.counts.asked
    text = f"{counted(swept.counts.attempts, 'attempt')} for {counted(swept.counts.asked, 'request')}"
    return Outcome(more > 0, text)


def _cpu(swept: SweepPass) -> Outcome | None:
    if swept.client is None:
        return None
    share = swept.client.cpu_share
    events = f"{swept.client.events_per_s:,.0f} events/s in {counted(swept.client.processes, 'process')}"
    return Outcome(share > CPU_SHARE, f"{100 * share:.0f} % of a core, {events}")


def _nothing_served(swept: SweepPass) -> Outcome | None:
    counts = swept.counts
    if not counts.told:
        return None
    ended = ", ".join(f"{n} {word}" for word, n in counts.by_outcome.items()) or "no request"
    return Outcome(counts.ok == 0, f"{counts.ok} of {counts.asked} served: {ended}")


CLIENT_LIMITED = Guard(
    code="PK300",
    name="client-limited",
    layer="layer3",
    effect=Effect.VOID,
    sees="Latency that grows with load and throughput that stops growing, as on a server that is full.",
    cause="The load client was late: its event loop or its slots were held up, and what it measured is "
    "partly its own queue. Public tools on two cores read a TTFT of 52 and 64 ms where 10 were true.",
    detection=f"Loop lag p99 or send lag p99 above the largest of {LAG_LIMIT_MS:g} ms, the lag of an idle "
    f"client + {LAG_OVER_FLOOR_MS:g} ms, and {limit(LAG_SHARE)} of the point's shortest median latency. A "
    "note where that is loop lag alone and its p90 is within: then throughput and medians stand, and p95 and "
    "p99 may be the client's.",
    remedy="A machine of its own for the client, or the right to run ahead of others on this one (root, or "
    "RLIMIT_RTPRIO of 1), more load processes, or a lower load. In an open loop: more requests allowed in "
    "flight.",
    source="perfkit: benchmarks/load_client.py, clients against a server of known times; "
    "llm-d-benchmark#261.",
    check=_client_late,
)

IN_FLIGHT_SHORT = Guard(
    code="PK301",
    name="in-flight-shortfall",
    layer="layer3",
    effect=Effect.VOID,
    sees="A point that is called 64 and was not.",
    cause="Slots stood empty: the client was slow to send, connections were refused or capped, or the "
    "server could not be reached for a time.",
    detection=f"Mean requests in flight inside the window below {limit(IN_FLIGHT_SHARE)} of what was asked. "
    "Directional where the window is not steady: it holds ramp and drain.",
    remedy="Look at the errors of the point first; then as for client-limited.",
    source="guidellm#487, marin#4357, sglang#1477: caps of 100 and of 1 that inverted verdicts.",
    check=_in_flight_short,
)

GAPS_LATE = Guard(
    code="PK302",
    name="gaps-late",
    layer="layer3",
    effect=Effect.NOTE,
    sees="Gaps between events that are uneven at high load.",
    cause="The client's loop was late by a share of the gap that matters; long gaps may be its own. "
    "Latencies of whole requests are not touched by it.",
    detection=f"Loop lag p99 above {LAG_LIMIT_MS:g} ms and {limit(GAP_SHARE)} of the median gap.",
    remedy="Read TPOT, which rests on two stamps a request, instead of the gaps.",
    source="perfkit: benchmarks/load_client.py, clients side by side.",
    check=_gaps_late,
)

RETRIED = Guard(
    code="PK303",
    name="retried-requests",
    layer="layer3",
    effect=Effect.NOTE,
    sees="More attempts than requests.",
    cause="Requests that were shed were retried, as was asked for, or the server had closed keep-alive "
    "connections when they were used. Latency counts from the first intended start, so waits are in it.",
    detection="Attempts above requests.",
    remedy="Compare points at equal numbers of attempts, or sweep without retries.",
    source="perfkit: retries are load that nobody asked for.",
    check=_retried,
)

CLIENT_CPU = Guard(
    code="PK304",
    name="client-cpu",
    layer="layer3",
    effect=Effect.NOTE,
    sees="A load process that is near the end of its core.",
    cause="One process serves all its streams; the next higher load may be too much for it. This alone says "
    "nothing against the point: lag does.",
    detection=f"More than {limit(CPU_SHARE)} of one core, in the most strained process.",
    remedy="More load processes before the load is raised.",
    source="perfkit: benchmarks/load_client.py, clients side by side.",
    check=_cpu,
)

NOTHING_SERVED = Guard(
    code="PK305",
    name="nothing-served",
    layer="layer3",
    effect=Effect.VOID,
    sees="A point with a number of requests and no latency.",
    cause="Not one request was served: the server refuses, is broken, or was asked for what it lacks.",
    detection="No request with a whole answer that holds output.",
    remedy="Read the errors of the point; send one request by hand.",
    source="sglang#6525: 300 requests without one token were reported as completed with a TTFT of 0.",
    check=_nothing_served,
)

CLIENT_GUARDS: tuple[Guard[SweepPass], ...] = (
    CLIENT_LIMITED,
    IN_FLIGHT_SHORT,
    GAPS_LATE,
    RETRIED,
    CLIENT_CPU,
    NOTHING_SERVED,
)
