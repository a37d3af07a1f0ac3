"""Ids of tokens, where a server gives them: read off every kind of answer, kept, and where outputs part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from layers.collectors.load.endpoints.endpoint import Answer, ids_of
from layers.layer5_regression.compare import compare
from layers.layer5_regression.model import What
from parsers.output_model import Kind, Output, text_payload
from parsers.recorded_outputs import ids_payload
from tests.load_servers import Asked, Script, answer
from tests.sweep_runs import loaded
from tests.test_load_endpoints import FINISH, SSE, cut, delta, endpoint, events
from tests.test_regress_collection import GRID, asked, data, prompt_of

__all__ = ["data"]


def chat_chunk(ids: Any) -> dict[str, Any]:
    made = delta(content="a")
    made["choices"][0]["token_ids"] = ids
    return made


def test_ids_of_a_stream_are_put_together_chunk_by_chunk() -> None:
    body = events(chat_chunk([5, 6]), chat_chunk([7]), FINISH, "[DONE]")
    assert endpoint("chat").read(Answer(200, SSE, cut(body, []))).token_ids == (5, 6, 7)


def test_ids_of_a_whole_answer() -> None:
    body = json.dumps({"choices": [{"text": "ab", "token_ids": [3, 4], "finish_reason": "stop"}]}).encode()
    assert endpoint("completions", stream=False).read(Answer(200, {}, cut(body, []))).token_ids == (3, 4)
    body = json.dumps({"text": "ab", "output_ids": [3, 4]}).encode()
    assert endpoint("sglang-generate", stream=False).read(Answer(200, {}, cut(body, []))).token_ids == (3, 4)


@pytest.mark.parametrize("ids", [([1], [1, 2], [1, 2, 3]), ([1], [2], [3])])
def test_generate_streams_all_ids_so_far_or_the_new_ones(ids: tuple[list[int], ...]) -> None:
    parts = [{"text": "x" * n, "output_ids": one} for n, one in enumerate(ids, 1)]
    reading = endpoint("sglang-generate").read(Answer(200, SSE, cut(events(*parts, "[DONE]"), [])))
    assert reading.token_ids == (1, 2, 3)


@pytest.mark.parametrize("value", [None, "1, 2", [1, "2"], [1.5], [True], {"a": 1}, 7])
def test_what_is_no_list_of_whole_numbers_is_no_ids(value: object) -> None:
    assert ids_of(value) == ()


def output(text: str, ids: list[int] | None) -> Output:
    told = [] if ids is None else [ids_payload(Kind.TOKENS, ids)]
    return Output("i", payloads=(text_payload(text), *told), finish_reason="stop")


def test_outputs_part_at_a_token_though_their_text_parts_elsewhere_or_not_at_all() -> None:
    found = compare(output("abcd", [1, 2, 9]), output("abXd", [1, 5, 9]))
    assert found is not None and (found.what, found.unit, found.at) == (What.CONTENT, "token", 1)
    same_text = compare(output("ab", [1, 2]), output("ab", [12]))
    assert same_text is not None and same_text.unit == "token"
    assert compare(output("ab", [1, 2]), output("ab", [1, 2])) is None


def test_ids_that_one_arm_alone_gives_are_no_difference_of_a_text() -> None:
    assert compare(output("ab", [1, 2]), output("ab", None)) is None
    found = compare(output("ab", [1, 2]), output("aX", None))
    assert found is not None and (found.unit, found.at) == ("character", 1)


def test_a_collection_keeps_the_ids_and_tells_the_first_token_that_differs(
    tmp_path: Path, data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def with_ids(last: int, one: Asked) -> Script:
        choice = {
            "message": {"content": f"You said: {prompt_of(one)}"},
            "finish_reason": "stop",
            "token_ids": [11, 12, 13, last],
        }
        return [answer(json.dumps({"choices": [choice], "usage": {"completion_tokens": 4}}).encode())]

    with loaded(lambda one: with_ids(14, one)) as a, loaded(lambda one: with_ids(15, one)) as b:
        made = asked(capsys, tmp_path / "i", a.port, b.port, "--data", data, *GRID)
    assert made["verdict"]["word"] == "different"
    where = made["first_divergence"]
    assert (where["unit"], where["at"], where["what"]) == ("token", 3, "content")
