"""JSON that is nested a thousand deep is no item, no config, no answer; never a fault of perfkit."""

from __future__ import annotations

from pathlib import Path

import pytest

from layers.collectors.load.endpoints.endpoint import Answer, Piece
from layers.collectors.load.endpoints.registry import endpoint_for
from layers.collectors.load.plan import EndpointChoice
from layers.collectors.load.records import Outcome
from layers.layer3_sweep.data_sets.registry import data_set
from layers.layer5_regression.encoder_decoder import read_config
from parsers.errors import UnreadableInput
from perfkit.cli.sweep_options import fields

DEEP = '{"x": ' + "[" * 20_000 + "]" * 20_000 + "}"


def test_a_data_set(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text(f'{{"text": "one"}}\n{DEEP}\n')
    with pytest.raises(UnreadableInput, match="line 2"):
        data_set(str(path), tmp_path, 1)
    shared = tmp_path / "shared.json"
    shared.write_text(f"[{DEEP}]")
    with pytest.raises(UnreadableInput):
        data_set(f"sharegpt:{shared}", tmp_path, 1)


def test_a_model_s_config(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(DEEP)
    with pytest.raises(UnreadableInput, match="no config of a model"):
        read_config(path)


def test_a_field_of_a_request_is_text_then() -> None:
    assert fields([f"x={DEEP}"]) == {"x": DEEP}


@pytest.mark.parametrize("endpoint", ["chat", "completions", "sglang-generate", "transcriptions", "speech"])
@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer(endpoint: str, streamed: bool) -> None:
    body = f"data: {DEEP}\n\n" if streamed else DEEP
    kind = "text/event-stream" if streamed else "application/json"
    answer = Answer(200, {"content-type": kind}, (Piece(1, body.encode()),))
    found = endpoint_for(EndpointChoice(endpoint, "m", "", streamed, {})).read(answer)
    assert found.outcome is not Outcome.OK or not found.text
