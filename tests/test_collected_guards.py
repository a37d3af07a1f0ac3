"""Guards on how arms were collected: each fires on its trap and not on the nearest input without it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from layers.evidence.guard import Effect
from layers.evidence.result import Result
from layers.layer5_regression.encoder_decoder import evidence_of, read_config
from layers.layer5_regression.grid import grid
from layers.layer5_regression.guards_collected import COLLECTED_GUARDS
from layers.layer5_regression.model import DataFacts, Options, Recorded
from layers.layer5_regression.proofs import grown, growth_of, proofs_of
from parsers.errors import UnreadableInput
from tests.output_builders import DEFAULT, compared, guard, texts

CELLS = grid((1, 4, 5), (False, True), starts=True)
COUNTER = "engine_lookahead_steps_total"


def recorded(setting: str = "off", **more: object) -> Recorded:
    """An arm with this setting, whose path ran."""
    declared = {"lookahead": setting}
    known = Recorded(
        planned=40,
        cells=CELLS,
        declared=declared,
        settings={"lookahead": setting, "size": "small", "http_port": 1},
        counters={proofs_of(declared)[0].counter: 7.0},
        proofs=proofs_of(declared),
        hits=1.0,
        looked_up=100.0,
    )
    return replace(known, **more)  # type: ignore[arg-type]


def result(options: Options = DEFAULT, /, **arms: Recorded) -> Result:
    known = {"A": recorded(), "B": recorded("on"), "A'": recorded()} | {
        {"a": "A", "b": "B", "aa": "A'"}[name]: one for name, one in arms.items()
    }
    return compared(texts(), texts(), texts(), options, known)


def test_a_sound_collection_fires_nothing() -> None:
    data = DataFacts(items=40, earlier_items=9, longest=90, earlier_longest=30, unit="characters")
    made = result(Options(data=data, encoder_decoder=("is_encoder_decoder is true",)))
    assert [g.code for g in made.guards if g.fired] == [] and made.verdict.word == "identical"
    assert {g.code for g in made.guards} >= {g.code for g in COLLECTED_GUARDS}


def test_pk566_items_that_were_sent_before() -> None:
    made = result(Options(data=DataFacts(items=40, earlier_items=9, reused=2)))
    assert guard(made, "PK566").effect is Effect.VOID and made.verdict.word == "invalid"
    assert not guard(result(Options(data=DataFacts(items=40, earlier_items=9))), "PK566").fired


def test_pk567_a_switch_that_never_engaged() -> None:
    """At 1 at a time lookahead is below its least batch: parity would compare sync with sync."""
    made = result(b=recorded("on", counters={"engine_sync_steps_total": 500.0}))
    assert made.verdict.word == "invalid" and guard(made, "PK567").effect is Effect.VOID
    assert f"B: lookahead=on ({COUNTER}) grew by 0" in guard(made, "PK567").message
    assert not guard(result(), "PK567").fired
    unknown = {one: recorded(proofs=(), declared={"seed": "1"}) for one in ("a", "b", "aa")}
    assert guard(result(DEFAULT, **unknown), "PK567").effect is Effect.DIRECTIONAL
    plain = {one: recorded(proofs=(), declared={}) for one in ("a", "b", "aa")}
    assert guard(result(DEFAULT, **plain), "PK567").effect is Effect.NOTE
    assert not [g for g in compared(texts(), texts()).guards if g.code == "PK567"]


def test_pk568_a_cache_that_answered_everything() -> None:
    assert result(b=recorded("on", hits=95.0)).verdict.word == "invalid"
    assert not guard(result(b=recorded("on", hits=94.0)), "PK568").fired


def test_pk569_two_things_were_changed() -> None:
    settings = {"lookahead": "on", "size": "tiny", "http_port": 2}
    made = result(b=recorded("on", settings=settings))
    assert made.verdict.word == "invalid" and guard(made, "PK569").message == "size: small / tiny"
    assert not guard(result(), "PK569").fired
    unsteady = {"lookahead": "off", "size": "tiny", "http_port": 3}
    assert not guard(
        result(b=recorded("on", settings=settings), aa=recorded(settings=unsteady)), "PK569"
    ).fired
    servers = {one: recorded(declared={}) for one in ("a", "aa")}
    assert (
        guard(result(DEFAULT, b=recorded(declared={}, settings=settings), **servers), "PK569").effect
        is Effect.NOTE
    )


def test_pk570_no_item_longer_than_before() -> None:
    def facts(longest: float) -> Options:
        return Options(data=DataFacts(40, 9, 0, longest, 30, "characters"))

    assert result(facts(30)).verdict.headline == "IDENTICAL?" and guard(result(facts(30)), "PK570").fired
    assert not guard(result(facts(31)), "PK570").fired


def test_pk571_a_grid_with_holes() -> None:
    made = result(b=recorded("on", cells=grid((1, 4), (False,), starts=True)))
    message = guard(made, "PK571").message
    assert guard(made, "PK571").fired and "streamed answers" in message and "k + 1" in message
    assert not guard(result(), "PK571").fired


def test_pk572_cells_called_cold_that_may_not_be() -> None:
    assert "3 cells" in guard(result(b=recorded("on", not_flushed=3)), "PK572").message
    assert not guard(result(), "PK572").fired


def test_pk573_a_model_with_an_encoder_is_asked_more() -> None:
    encoder = Options(encoder_decoder=("is_encoder_decoder is true",))
    alone = result(encoder, b=recorded("on", cells=grid((1,), (False,), starts=False)))
    assert "missing: concurrency above 1" in guard(alone, "PK573").message
    assert alone.verdict.headline == "IDENTICAL?"
    by_accuracy = compared(texts(), texts(), None, encoder, {"A": recorded(), "B": recorded("on")})
    assert "by bytes in every cell" in guard(by_accuracy, "PK573").message
    assert not guard(result(encoder), "PK573").fired
    assert not [g for g in result().guards if g.code == "PK573"]


@pytest.mark.parametrize(
    ("config", "evidence"),
    [
        ({"is_encoder_decoder": True, "model_type": "made-up"}, "is_encoder_decoder is true"),
        ({"encoder_layers": 32, "decoder_layers": 4}, "encoder_layers and decoder_layers"),
        ({"num_layers": 12, "num_decoder_layers": 12}, "num_layers and num_decoder_layers"),
        ({"text": {"model": {"add_cross_attention": True}}}, "text.model.add_cross_attention is true"),
        ({"encoder": {"hidden": 1}, "decoder": {"hidden": 1}}, "configs of an encoder and a decoder"),
        ({"decoder_start_token_id": 2}, "decoder_start_token_id"),
        ({"num_hidden_layers": 32, "is_encoder_decoder": False}, None),
        ({"audio_config": {"encoder_layers": 32}, "text_config": {"num_hidden_layers": 28}}, None),
        ({"is_encoder_decoder": False, "decoder_start_token_id": 2}, None),
        ({"architectures": ["WhisperForConditionalGeneration"]}, None),
    ],
)
def test_an_encoder_decoder_is_known_by_structure_and_by_no_name(
    config: dict[str, object], evidence: str | None
) -> None:
    assert evidence_of(config) == ((evidence,) if evidence else ())


def test_a_config_is_a_file_or_the_folder_of_a_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"is_encoder_decoder": True}), encoding="utf-8")
    assert read_config(tmp_path) == read_config(tmp_path / "config.json") == {"is_encoder_decoder": True}
    with pytest.raises(UnreadableInput, match="no config of a model"):
        (tmp_path / "bad.json").write_text("[1]", encoding="utf-8")
        read_config(tmp_path / "bad.json")
    with pytest.raises(UnreadableInput, match="give a model's config"):
        read_config(tmp_path / "nowhere.json")


def test_counters_are_found_with_and_without_their_labels() -> None:
    page = grown({'x_total{a="1"}': 1.0}, {'x_total{a="1"}': 3.0, 'x_total{a="2"}': 4.0, "y": 1.0})
    assert growth_of("x_total", page) == 6 and growth_of('x_total{a="2"}', page) == 4
    assert growth_of("z", page) == 0 and grown({"y": 2.0}, {"y": 2.0}) == {}
    assert [p.counter for p in proofs_of({"cuda_graph": "True", "seed": "1"}, ["mine"])] == [
        "engine_graph_replays_total",
        "mine",
    ]
