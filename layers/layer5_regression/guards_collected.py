"""The guards on how arms were collected, and on whether that exercised what was changed.

They look at what perfkit recorded beside the outputs; where files of somebody else's are compared, they do
not apply.
"""

from __future__ import annotations

from collections.abc import Mapping

from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.wording import counted, first_few, limit, pct
from layers.layer5_regression.grid import lacking
from layers.layer5_regression.guards import LAYER
from layers.layer5_regression.model import Analysis, Arm, Proof, Recorded
from layers.layer5_regression.proofs import growth_of
from layers.layer5_regression.thresholds import of_a_pass

CACHED_LIMIT = 0.95
"""Of look-ups in cells whose caches were to be empty: then next to nothing was computed. perfkit's choice."""
PLACES = ("port", "host", "url", "address", "pid", "path", "file", "dir", "folder", "log")
"""Last words of names of settings that say where a server is, not what it does."""


def data_reused(analysis: Analysis) -> Outcome | None:
    data = analysis.options.data
    if data is None:
        return None
    said = f"{data.reused:,} of {counted(data.items, 'item')} were sent by sweeps or A/Bs here"
    return Outcome(data.reused > 0, f"{said} ({data.earlier_items:,} known)")


def short_items(analysis: Analysis) -> Outcome | None:
    data = analysis.options.data
    if data is None or not data.earlier_longest:
        return None
    said = (
        f"the longest has {data.longest:,.4g} {data.unit}, that of sweeps or A/Bs {data.earlier_longest:,.4g}"
    )
    return Outcome(data.longest <= data.earlier_longest, said, of_a_pass(analysis))


def recorded_arms(analysis: Analysis) -> list[tuple[Arm, Recorded]]:
    """Those that perfkit collected."""
    return [(arm, arm.recorded) for arm in analysis.arms if arm.recorded is not None]


def path_not_exercised(analysis: Analysis) -> Outcome | None:
    arms = recorded_arms(analysis)
    if len(arms) < len(analysis.arms):
        return None
    proofs = [(arm, recorded, proof) for arm, recorded in arms for proof in recorded.proofs]
    if not proofs:
        return _no_proof(analysis, any(recorded.declared for _, recorded in arms))
    told = [
        (_proof_text(arm, recorded, proof), growth_of(proof.counter, recorded.counters))
        for arm, recorded, proof in proofs
    ]
    still = [text for text, by in told if not by]
    return Outcome(bool(still), first_few(still or [text for text, _ in told]))


def _proof_text(arm: Arm, recorded: Recorded, proof: Proof) -> str:
    by = growth_of(proof.counter, recorded.counters)
    name = proof.counter if proof.setting == proof.counter else f"{proof.setting} ({proof.counter})"
    return f"{arm.name}: {name} grew by {by:,.6g}"


def _no_proof(analysis: Analysis, declared: bool) -> Outcome:
    effect = of_a_pass(analysis) or Effect.DIRECTIONAL if declared else Effect.NOTE
    return Outcome(True, "no counter is known that shows that the changed path ran", effect)


def cache_answered(analysis: Analysis) -> Outcome | None:
    shares = {
        arm.name: (recorded.hits or 0.0) / recorded.looked_up
        for arm, recorded in recorded_arms(analysis)
        if recorded.looked_up
    }
    if not shares:
        return None
    told = ", ".join(f"{name} {pct(share)}" for name, share in shares.items())
    return Outcome(max(shares.values()) >= CACHED_LIMIT, f"hits of look-ups in cold cells: {told}")


def differ_otherwise(analysis: Analysis) -> Outcome | None:
    a, b = analysis.a.recorded, analysis.b.recorded
    if a is None or b is None or not a.settings or not b.settings:
        return None
    declared = {*a.declared, *b.declared}
    again = analysis.aa.recorded if analysis.aa is not None else None
    unsteady = _differing(a.settings, again.settings) if again is not None and again.settings else set()
    found = sorted(_differing(a.settings, b.settings) - declared - unsteady)
    told = [f"{name}: {a.settings.get(name)} / {b.settings.get(name)}" for name in found]
    said = (
        first_few(told) if told else f"{counted(len(a.settings), 'setting')}, none but those declared differs"
    )
    return Outcome(bool(told), said, None if declared else Effect.NOTE)


def _differing(one: Mapping[str, object], other: Mapping[str, object]) -> set[str]:
    """Names of settings that are not the same, but for those that say where a server is."""
    names = {*one, *other}
    return {name for name in names if one.get(name) != other.get(name) and not _is_place(name)}


def _is_place(name: str) -> bool:
    return name.rpartition("_")[2].rpartition("-")[2].rpartition(".")[2].lower() in PLACES


def grid_incomplete(analysis: Analysis) -> Outcome | None:
    recorded = analysis.b.recorded
    if recorded is None:
        return None
    told = lacking(recorded.cells)
    said = f"not asked: {first_few(told, 4)}" if told else f"{counted(len(recorded.cells), 'cell')}"
    return Outcome(bool(told), said)


def not_flushed(analysis: Analysis) -> Outcome | None:
    arms = recorded_arms(analysis)
    if not arms:
        return None
    n = sum(recorded.not_flushed for _, recorded in arms)
    return Outcome(n > 0, f"{counted(n, 'cell')} called cold whose caches the server did not empty")


def encoder_decoder(analysis: Analysis) -> Outcome | None:
    """The conservative rule: alone and together, with an empty cache, by its bytes."""
    evidence = analysis.options.encoder_decoder
    if not evidence:
        return None
    recorded = analysis.b.recorded
    cells = recorded.cells if recorded is not None else ()
    missing = [what for what in lacking(cells) if what in CONSERVATIVE]
    missing += ["a comparison by bytes in every cell"] if analysis.tolerant else []
    said = f"the model is one ({first_few(evidence, 2)})"
    told = f"{said}; missing: {first_few(missing, 4)}" if missing else f"{said}; all asked"
    return Outcome(bool(missing), told, of_a_pass(analysis))


CONSERVATIVE = frozenset({"concurrency 1", "concurrency above 1", "a cold cache"})
"""What a model with an encoder must have been asked: each request's own encoding is mixed up in batches and
in caches of encodings alone."""

REUSED = Guard(
    code="PK566",
    name="data-set-used-before",
    layer=LAYER,
    effect=Effect.VOID,
    sees="A pass on familiar items.",
    cause="The change was tuned on these items, and caches have seen them: what goes wrong elsewhere cannot "
    "show.",
    detection="Items with the same content (text, messages, fields, sound) as some that a sweep or A/B of "
    "this investigation sent.",
    remedy="Another data set: longer, and of another structure; or another seed.",
    source="SGLang-Omni methodology: the regression set is long, and another than that of the sweep.",
    check=data_reused,
)

PATH = Guard(
    code="PK567",
    name="changed-path-not-run",
    layer=LAYER,
    effect=Effect.VOID,
    sees="Identical outputs.",
    cause="The switch was set and never engaged: a batch too small for it, a fallback, another switch that "
    "refuses it. Both arms ran the same code.",
    detection="The counter that the switched path moves did not move in its arm; directional where no such "
    "counter is known, a note between two servers without declared settings.",
    remedy="Raise concurrency, set what the switch needs, or name its counter with --counter.",
    source="sglang-omni#1608: lookahead needs a batch of 2, so parity at 1 at a time compared sync with "
    "sync.",
    check=path_not_exercised,
)

CACHED = Guard(
    code="PK568",
    name="cache-answered-everything",
    layer=LAYER,
    effect=Effect.VOID,
    sees="Identical outputs, quickly.",
    cause="The answers, or what they are made of, came out of a cache that was to be empty.",
    detection=f"Hits are {limit(CACHED_LIMIT)} or more of the look-ups in cells with a cold cache.",
    remedy="A way to empty the cache, a fresh start, or items that no cache has seen.",
    source="sglang PR#36401, the other way round: a green test of a cache that was never hit.",
    check=cache_answered,
)

OTHERWISE = Guard(
    code="PK569",
    name="servers-differ-otherwise",
    layer=LAYER,
    effect=Effect.VOID,
    sees="A difference, or none, of a change.",
    cause="Two things were changed: another default, another build, another machine.",
    detection="Settings that the servers resolved themselves differ beside those declared, and beside "
    "those in which two starts of A differ; a note where nothing was declared (two servers).",
    remedy="Start both with the same settings but one.",
    source="perfkit's A/B rule: arms differ in exactly one declared variable.",
    check=differ_otherwise,
)

SHORT = Guard(
    code="PK570",
    name="short-items-only",
    layer=LAYER,
    effect=Effect.DIRECTIONAL,
    sees="A pass.",
    cause="Chunked prefill, long attention, caches that wrap and graphs beyond their bucket are met by long "
    "input alone.",
    detection="No item is longer than the longest that sweeps or A/Bs of this investigation sent.",
    remedy="--data with longer items, as long as the server takes.",
    source="SGLang-Omni methodology: required on a long or structurally different set, even if short data "
    "pass.",
    check=short_items,
)

GRID = Guard(
    code="PK571",
    name="grid-incomplete",
    layer=LAYER,
    effect=Effect.NOTE,
    sees="A pass of one way of asking.",
    cause="A fault of caches, of padded graphs or of batches shows in one cell and in no other.",
    detection="The cells lack concurrency 1 or more, both sides of a bucket, a cold or a warm cache, "
    "streamed answers or whole ones.",
    remedy="Leave --concurrency, --stream and --no-stream out: the usual grid has all.",
    source="sglang#34683 (warm cache alone), #22819 (block boundary), vllm-omni#4318 (concurrency).",
    check=grid_incomplete,
)

COLD_CACHE = Guard(
    code="PK572",
    name="cold-cache-not-shown",
    layer=LAYER,
    effect=Effect.NOTE,
    sees="Cells that are called cold.",
    cause="The server has no way to empty its caches, or its caches are off, or it refused while it was "
    "busy.",
    detection="A cell with a cold cache before which the server did not empty it.",
    remedy="Where it has caches: start it anew for each cell, or send items that no cache has seen.",
    source="perfkit's collection asks the server's adapter, which says whether it did.",
    check=not_flushed,
)

ENCODER_DECODER = Guard(
    code="PK573",
    name="encoder-decoder-rule",
    layer=LAYER,
    effect=Effect.DIRECTIONAL,
    sees="A pass of a model with an encoder.",
    cause="Cross attention reads what the encoder left for this request: rows that are mixed up, padded "
    "frames, slots that are used again give fluent, wrong answers.",
    detection="The model's config says that it has an encoder and a decoder (--model-config), and it was not "
    "asked alone and together with a cold cache, or not judged by bytes.",
    remedy="The usual grid with a second run of A; then a pass holds for it too.",
    source="SGLang-Omni methodology: prefer structural checks over lists of back ends.",
    check=encoder_decoder,
)

COLLECTED_GUARDS: tuple[Guard[Analysis], ...] = (
    *(REUSED, PATH, CACHED, OTHERWISE, SHORT, GRID, COLD_CACHE, ENCODER_DECODER),
)
