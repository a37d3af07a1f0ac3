"""Endpoints: what is sent for an item, and what an answer says, wherever its pieces are cut."""

from __future__ import annotations

import base64
import io
import itertools
import json
import wave
from collections.abc import Sequence
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.collectors.load.endpoints.endpoint import Answer, Piece
from layers.collectors.load.endpoints.player import underrun_s
from layers.collectors.load.endpoints.registry import ENDPOINTS, endpoint_for
from layers.collectors.load.endpoints.sse import read_events
from layers.collectors.load.endpoints.wav import watermarked
from layers.collectors.load.item import Item, Message
from layers.collectors.load.plan import EndpointChoice
from layers.collectors.load.records import Outcome, Usage
from parsers.errors import UsageError
from parsers.wav import read_wav_head

CUTS = st.lists(st.integers(0, 10_000), max_size=10)
SSE = {"content-type": "text/event-stream; charset=utf-8"}


def cut(data: bytes, cuts: Sequence[int]) -> tuple[Piece, ...]:
    """The data in pieces; the stamp of a piece is the place of its end."""
    places = sorted({0, *(c % (len(data) + 1) for c in cuts), len(data)})
    return tuple(Piece(end, data[start:end]) for start, end in itertools.pairwise(places))


def brute_events(body: bytes) -> list[tuple[int, bytes, bytes]]:
    """The standard's state machine over bytes: (place after the empty line, name, data)."""
    events, name, data, line, place = [], b"", list[bytes](), b"", 0
    body = body.removeprefix(b"\xef\xbb\xbf")
    while place < len(body):
        byte = body[place : place + 1]
        place += 1
        if byte not in (b"\r", b"\n"):
            line += byte
            continue
        if byte == b"\r" and body[place : place + 1] == b"\n":
            place += 1
        if not line:
            if data:
                events.append((place, name, b"\n".join(data)))
            name, data = b"", []
        field, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if field == b"data" and line:
            data.append(value)
        elif field == b"event":
            name = value
        line = b""
    return events


LINES = st.sampled_from([b"data: a", b"data:b", b"data", b": alive", b"event: x", b"id: 3", b"", b"retry: 1"])
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(st.lists(st.tuples(LINES, ENDS), max_size=14), CUTS, st.booleans())
def test_events_are_those_of_the_standard_however_they_are_cut(
    lines: list[tuple[bytes, bytes]], cuts: list[int], last: bool
) -> None:
    body = b"".join(line + end for line, end in lines) + b"data: cut off" * last
    pieces = cut(body, cuts)
    wanted = brute_events(body)
    found = read_events(pieces)
    assert [(event.name, event.data) for event in found.events] == [(name, data) for _, name, data in wanted]
    for event, (place, _, _) in zip(found.events, wanted, strict=True):
        assert event.stamp_ns == min(piece.stamp_ns for piece in pieces if piece.stamp_ns >= place)
    assert (b"cut off" in found.left) is last


def events(*chunks: dict[str, Any] | str) -> bytes:
    texts = (c if isinstance(c, str) else json.dumps(c) for c in chunks)
    return "".join(f"data: {text}\n\n" for text in texts).encode()


def delta(**content: Any) -> dict[str, Any]:
    return {"id": "r1", "choices": [{"index": 0, "delta": content, "finish_reason": None}]}


FINISH = {"id": "r1", "choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}
COUNT = {"id": "r1", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5}}
CHAT = events(
    delta(role="assistant", content=""),
    delta(reasoning_content="hm"),
    delta(content="he"),
    delta(content="llo"),
    delta(tool_calls=[{"index": 0, "function": {"arguments": "{"}}]),
    FINISH,
    COUNT,
    "[DONE]",
)


def endpoint(name: str, **choice: Any) -> Any:
    return endpoint_for(EndpointChoice(name, **choice))


@given(CUTS)
def test_a_chat_stream_counts_chunks_with_output_of_any_kind(cuts: list[int]) -> None:
    reading = endpoint("chat").read(Answer(200, SSE, cut(CHAT, cuts)))
    assert (reading.outcome, reading.text, reading.finish_reason) == (Outcome.OK, "hello", "length")
    assert reading.usage == Usage(9, 5) and reading.server_id == "r1"
    assert len(reading.event_ns) == 4 and reading.event_tokens == ()
    assert list(reading.event_ns) == sorted(reading.event_ns)


def test_running_counts_tell_how_many_tokens_each_chunk_carries() -> None:
    counted = [delta(content=t) | {"usage": {"completion_tokens": n}} for t, n in (("a", 1), ("bcd", 4))]
    reading = endpoint("chat").read(Answer(200, SSE, cut(events(*counted, FINISH, COUNT, "[DONE]"), [])))
    assert reading.event_tokens == (1, 3)


def test_a_whole_answer_has_a_text_and_no_times() -> None:
    body = json.dumps({"choices": [{"message": {"content": "hi"}}], "usage": {"completion_tokens": 1}})
    reading = endpoint("chat").read(
        Answer(200, {"content-type": "application/json"}, cut(body.encode(), [9]))
    )
    assert (reading.outcome, reading.text, reading.event_ns) == (Outcome.OK, "hi", ())


@pytest.mark.parametrize("count", [-1, 10**12, 10**400])
def test_what_cannot_be_a_number_of_tokens_is_not_told(count: int) -> None:
    told = delta(content="hi") | {"usage": {"completion_tokens": count, "prompt_tokens": 3}}
    body = events(told, FINISH, "[DONE]")
    reading = endpoint("chat").read(Answer(200, SSE, cut(body, [])))
    assert reading.usage == Usage(3, None) and reading.outcome is Outcome.OK
    assert all(tokens >= 0 for tokens in reading.event_tokens)


def test_running_counts_that_fall_tell_no_tokens_of_an_event() -> None:
    falling = (1, 4, 2)
    counted = [delta(content="a") | {"usage": {"completion_tokens": n}} for n in falling]
    reading = endpoint("chat").read(Answer(200, SSE, cut(events(*counted, FINISH, COUNT, "[DONE]"), [])))
    assert reading.event_tokens == () and len(reading.event_ns) == 3
    counts = enumerate(falling, 1)
    parts = [{"text": "x" * n, "meta_info": {"completion_tokens": c}} for n, c in counts]
    reading = endpoint("sglang-generate").read(Answer(200, SSE, cut(events(*parts, "[DONE]"), [])))
    assert reading.event_tokens == () and len(reading.event_ns) == 3


def test_completions_stream_text() -> None:
    body = events({"choices": [{"text": "a"}]}, {"choices": [{"text": "b", "finish_reason": "stop"}]})
    reading = endpoint("completions").read(Answer(200, SSE, cut(body, [])))
    assert (reading.outcome, reading.text, len(reading.event_ns)) == (Outcome.OK, "ab", 2)


@pytest.mark.parametrize("texts", [("a", "ab", "abcd"), ("a", "b", "cd")])
def test_generate_streams_whole_or_new_text_with_running_counts(texts: tuple[str, ...]) -> None:
    parts = [
        {"text": text, "meta_info": {"id": "g", "completion_tokens": n, "prompt_tokens": 2}}
        for text, n in zip(texts, (1, 2, 4), strict=True)
    ]
    parts[-1]["meta_info"]["finish_reason"] = {"type": "stop"}  # type: ignore[index]
    reading = endpoint("sglang-generate").read(Answer(200, SSE, cut(events(*parts, "[DONE]"), [])))
    assert (reading.text, reading.event_tokens, reading.finish_reason) == ("abcd", (1, 1, 2), "stop")
    assert reading.usage == Usage(2, 4) and reading.outcome is Outcome.OK


def test_transcripts_stream_in_openai_s_shape_and_in_that_of_a_chat() -> None:
    ours = events(
        {"type": "transcript.text.delta", "delta": "he"}, {"type": "transcript.text.done", "text": "he"}
    )
    for body in (ours, events(delta(content="he"), FINISH, "[DONE]")):
        reading = endpoint("transcriptions").read(Answer(200, SSE, cut(body, [])))
        assert (reading.outcome, reading.text, len(reading.event_ns)) == (Outcome.OK, "he", 1)


def test_a_transcript_may_be_json_or_text() -> None:
    for kind, body in (("application/json", b'{"text":"hello"}'), ("text/plain", b"hello")):
        reading = endpoint("transcriptions").read(Answer(200, {"content-type": kind}, cut(body, [3])))
        assert (reading.outcome, reading.text) == (Outcome.OK, "hello")


def wav(frames: int, rate_hz: int = 16_000) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(rate_hz)
        writer.writeframes(bytes(range(1, 3)) * frames)
    return file.getvalue()


@given(CUTS)
def test_audio_begins_behind_the_header(cuts: list[int]) -> None:
    data = wav(800)
    pieces = cut(data, cuts)
    reading = endpoint("speech").read(Answer(200, {"content-type": "audio/wav"}, pieces))
    assert reading.outcome is Outcome.OK and reading.audio.seconds == 0.05
    assert (reading.audio.sample_rate_hz, reading.audio.sample_bytes) == (16_000, 1600)
    assert list(reading.event_ns) == [piece.stamp_ns for piece in pieces if piece.stamp_ns > 44]


def test_the_same_sound_has_one_checksum_bare_with_a_header_and_as_events() -> None:
    samples = wav(400)[44:]
    coded = [{"type": "speech.audio.delta", "audio": base64.b64encode(samples[i : i + 200]).decode()}
             for i in range(0, 800, 200)]  # fmt: skip
    stream = events(*coded, {"type": "speech.audio.done"})
    answers = [
        Answer(200, {"content-type": "audio/wav"}, cut(wav(400), [])),
        Answer(200, {"content-type": "audio/pcm"}, cut(samples, [99])),
        Answer(200, SSE, cut(stream, [7])),
    ]
    readings = [endpoint("speech", options={"pcm_rate_hz": 16_000}).read(answer) for answer in answers]
    assert {reading.audio.sha256 for reading in readings} == {readings[0].audio.sha256}
    assert [reading.audio.seconds for reading in readings] == [0.025] * 3
    assert {reading.outcome for reading in readings} == {Outcome.OK}


@pytest.mark.parametrize(
    ("kind", "body", "outcome"),
    [
        ("audio/wav", wav(0), Outcome.EMPTY),
        ("audio/wav", wav(9)[:30], Outcome.EMPTY),
        ("application/json", b'{"error":"no voice"}', Outcome.SERVER_ERROR),
        ("text/html; charset=utf-8", b"<html>log in first</html>", Outcome.PROTOCOL),
        ("application/xhtml+xml", b"<html/>", Outcome.PROTOCOL),
        ("text/event-stream", events({"audio": "!"}), Outcome.PROTOCOL),
        ("text/event-stream", events({"audio": "AAAA"}), Outcome.TRUNCATED),
    ],
)
def test_answers_without_their_audio(kind: str, body: bytes, outcome: Outcome) -> None:
    assert endpoint("speech").read(Answer(200, {"content-type": kind}, cut(body, []))).outcome is outcome


def brute_underrun_s(arrivals: list[int], seconds: list[float]) -> float:
    """A player that is asked every step of 10 ms whether it has something to play."""
    still_ns, buffered_ns = 0, 0.0
    step_ns = 10_000_000
    for now_ns in range(arrivals[0], arrivals[-1], step_ns):
        arrived = [round(s * 1e9) for a, s in zip(arrivals, seconds, strict=True) if a <= now_ns]
        if sum(arrived) - buffered_ns >= step_ns:
            buffered_ns += step_ns
        else:
            still_ns += step_ns
    return still_ns / 1e9


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 20)), min_size=1, max_size=8))
def test_an_underrun_is_how_long_a_player_stood_still(steps: list[tuple[int, int]]) -> None:
    arrivals, seconds, now_ns = [], [], 5_000_000_000
    for gap, length in steps:
        now_ns += gap * 10_000_000
        arrivals.append(now_ns)
        seconds.append(length / 100)
    assert underrun_s(arrivals, seconds) == pytest.approx(brute_underrun_s(arrivals, seconds))


def test_a_watermark_changes_the_bytes_and_hardly_the_sound() -> None:
    data = wav(200)
    marked = watermarked(data, b"12345678")
    assert marked != watermarked(data, b"12345679") and len(marked) == len(data)
    assert marked[:44] == data[:44] and max(abs(a - b) for a, b in zip(marked, data, strict=True)) == 1
    assert watermarked(wav(3), b"12345678") == wav(3) and watermarked(b"ID3", b"12345678") == b"ID3"


@given(st.binary(max_size=80))
def test_any_bytes_have_a_wav_header_or_none(data: bytes) -> None:
    assert read_wav_head(data) is None or data[:4] in (b"RIFF", b"RF64")


def test_requests_hold_what_the_item_and_the_options_say() -> None:
    item = Item("i", text="hi", max_tokens=7, fields={"seed": 3})
    chat = endpoint("chat", model="m", options={"temperature": 0, "continuous_usage": True}).build(item, "n1")
    assert json.loads(chat.data) == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "temperature": 0,
        "max_tokens": 7,
        "seed": 3,
        "messages": [{"role": "user", "content": "[n1] hi"}],
    }
    generate = endpoint("sglang-generate", stream=False).build(item, "")
    assert json.loads(generate.data)["sampling_params"] == {"max_new_tokens": 7}


def test_a_nonce_leaves_the_item_as_it_was() -> None:
    item = Item("i", messages=(Message("user", "hi"),))
    chat = endpoint("chat")
    first, second = (json.loads(chat.build(item, nonce).data)["messages"] for nonce in ("a", "b"))
    assert (first[0]["content"], second[0]["content"]) == ("[a] hi", "[b] hi")


def test_an_upload_is_a_form_that_servers_can_read(tmp_path: Path) -> None:
    file = tmp_path / 'a"b.wav'
    file.write_bytes(wav(20))
    body = endpoint("transcriptions", model="m", options={"language": "en"}).build(
        Item("i", audio=str(file)), ""
    )
    parsed: Any = message_from_bytes(b"Content-Type: " + body.content_type.encode() + b"\r\n\r\n" + body.data)
    parts = {part.get_param("name", header="content-disposition"): part for part in parsed.get_payload()}
    assert parts["file"].get_payload(decode=True) == wav(20)
    assert parts["language"].get_payload() == "en" and parts["stream"].get_payload() == "true"


def test_a_template_is_filled_in_and_its_answer_found() -> None:
    body = {"in": [{"q": "{text}"}], "n": "{max_tokens}", "who": "<{id}>"}
    options = {"body": body, "text_path": "out.0.t", "usage_path": "tokens"}
    made = endpoint("template", path="/x", stream=False, options=options)
    assert json.loads(made.build(Item("i", text="hi", max_tokens=4), "").data) == {
        "in": [{"q": "hi"}],
        "n": 4,
        "who": "<i>",
    }
    answer = cut(b'{"out": [{"t": "yes"}], "tokens": 2}', [5])
    reading = made.read(Answer(200, {"content-type": "application/json"}, answer))
    assert (reading.text, reading.usage.completion_tokens, reading.event_ns) == ("yes", 2, ())
    with pytest.raises(UsageError, match="names wrong"):
        endpoint("template", path="/x", options={"body": "{wrong}"}).check([Item("i")])


@pytest.mark.parametrize("name", [name for name in ENDPOINTS if name != "template"])
def test_an_endpoint_refuses_an_item_that_lacks_what_it_sends(name: str) -> None:
    with pytest.raises(UsageError, match="item bare"):
        endpoint(name).check([Item("bare")])


def test_an_endpoint_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(UsageError, match="endpoint chats: there are chat, completions"):
        endpoint("chats")


KINDS = st.sampled_from(["", "text/event-stream", "application/json", "audio/wav", "audio/pcm", "text/plain"])
TEMPLATE = {"path": "/x", "options": {"body": {}, "text_path": "a.b"}}


@given(st.sampled_from(list(ENDPOINTS)), KINDS, st.binary(max_size=60) | st.just(CHAT), CUTS)
def test_any_answer_is_read_without_an_exception(name: str, kind: str, body: bytes, cuts: list[int]) -> None:
    made = endpoint(name, **(TEMPLATE if name == "template" else {}))
    pieces = cut(body, cuts) or (Piece(0, b""),)
    reading = made.read(Answer(200, {"content-type": kind}, pieces))
    assert reading.outcome in (
        *(Outcome.OK, Outcome.EMPTY, Outcome.TRUNCATED),
        *(Outcome.SERVER_ERROR, Outcome.PROTOCOL),
    )


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=4) | st.just("choices"),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["choices", "delta", "usage", "error", "text", "type", "audio", "meta_info"]),
                inner,
                max_size=3,
            )
        ),
        max_leaves=6,
    ),
    st.sampled_from(list(ENDPOINTS)),
)
def test_any_json_in_an_event_is_read_without_an_exception(value: Any, name: str) -> None:
    made = endpoint(name, **(TEMPLATE if name == "template" else {}))
    made.read(Answer(200, SSE, cut(events(json.dumps(value), "[DONE]"), [])))
