"""The real openai client against a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.engine_servers import Server, serving

openai = pytest.importorskip("openai")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def client(server: Server) -> Iterator[Any]:
    url = f"http://127.0.0.1:{server.port}/v1"
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as made:
        yield made


SPEECH = {"model": "sample-tts", "voice": "any", "input": "one two three"}


def test_it_gets_speech_and_streams_the_same(client: Any, server: Server) -> None:
    whole = client.audio.speech.create(**SPEECH, response_format="pcm").content
    streamed = client.audio.speech.with_streaming_response.create(
        **SPEECH, response_format="pcm", extra_body={"stream": True}
    )
    with streamed as response:
        pieces = list(response.iter_bytes())
    assert b"".join(pieces) == whole == server.speak(0, input=SPEECH["input"], response_format="pcm").data


def test_it_streams_completions(client: Any) -> None:
    asked = {"model": "sample-tts", "prompt": "one two", "max_tokens": 5}
    text = client.completions.create(**asked).choices[0].text
    assert "".join(one.choices[0].text for one in client.completions.create(**asked, stream=True)) == text


def test_it_transcribes_whole_and_in_a_stream(client: Any) -> None:
    speech = client.audio.speech.create(**SPEECH).content
    with serving("--pipeline", "asr") as listening:
        url = f"http://127.0.0.1:{listening.port}/v1"
        with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as scribe:
            asked = {"model": "sample-asr", "file": ("a.wav", speech)}
            text = scribe.audio.transcriptions.create(**asked).text
            events = list(scribe.audio.transcriptions.create(**asked, stream=True))
            with pytest.raises(openai.BadRequestError, match="no PCM WAV file"):
                scribe.audio.transcriptions.create(model="sample-asr", file=("a.wav", b"RIFF"))
    assert text
    assert "".join(one.delta for one in events[:-1]) == events[-1].text == text


def test_it_raises_its_own_errors(client: Any) -> None:
    assert [one.id for one in client.models.list()] == ["sample-tts"]
    with pytest.raises(openai.NotFoundError, match="sample-tts"):
        client.audio.speech.create(**{**SPEECH, "model": "other"})
    with pytest.raises(openai.BadRequestError, match="words always fit"):
        client.audio.speech.create(**{**SPEECH, "input": "word " * 100})
    with pytest.raises(openai.InternalServerError, match="cannot transcribe"):
        client.audio.transcriptions.create(model="sample-asr", file=("a.wav", b"RIFF"))
