"""Features and encoder: what they make of an audio depends on that audio alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.models.asr_sizes import ASR_SIZES, SAMPLE_RATE_HZ
from sample_engine.observe.metrics import Metrics
from sample_engine.stages.encoder import EncoderStage
from sample_engine.stages.features import Array, features_of, longest_s
from sample_engine.stages.handoff import receive
from sample_engine.stages.payloads import Encoded, Features
from sample_engine.stages.preprocess import TooLong
from sample_engine.stages.stage import execute
from sample_engine.stages.transcript import piece_of
from tests.engine_builders import download
from tests.engine_decoding import settings_with
from tests.engine_listening import audio

TINY = ASR_SIZES["tiny"]
BUDGET_BYTES = 32 << 20
AUDIOS = [features_of(audio(index), TINY) for index in range(8)]


@pytest.fixture(scope="module")
def device() -> Iterator[EmulatedDevice]:
    with EmulatedDevice(BUDGET_BYTES) as opened:
        yield opened


def stage_of(device: EmulatedDevice, **options: Any) -> EncoderStage:
    return EncoderStage(device, settings_with(options), Metrics())


def states(device: EmulatedDevice, encoded: Sequence[Encoded]) -> list[bytes]:
    return [download(device, receive(device.streams[0], one.states)).tobytes() for one in encoded]


def test_a_tone_is_loudest_in_its_band() -> None:
    at_s = np.arange(SAMPLE_RATE_HZ) / SAMPLE_RATE_HZ
    loudest = []
    for tone_hz in (120.0, 500.0, 2000.0, 7000.0):
        samples: Array = np.sin(2 * np.pi * tone_hz * at_s).astype(np.float32)
        values = features_of(samples, TINY).values
        loudest.append(set(values[:-3].argmax(axis=1).tolist()))
    assert all(len(one) == 1 for one in loudest)
    assert sorted(map(min, loudest)) == [min(one) for one in loudest]
    assert len(set(map(min, loudest))) == len(loudest)


@pytest.mark.parametrize("size", ["tiny", "small", "large"])
def test_every_band_has_a_bin_of_its_own(size: str) -> None:
    values = features_of(audio(3), ASR_SIZES[size]).values
    assert values.shape[1] == ASR_SIZES[size].encoder.bands
    assert len({column.tobytes() for column in values.T}) == values.shape[1]


def test_silence_has_features() -> None:
    values = features_of(np.zeros(500, np.float32), TINY).values
    assert np.array_equal(values, np.zeros((4, TINY.encoder.bands)))


def test_the_digest_tells_audios_apart() -> None:
    assert len({one.digest for one in AUDIOS}) == len(AUDIOS)
    assert features_of(audio(5), TINY).digest == AUDIOS[5].digest


def test_what_always_fits_does_fit_and_a_second_more_does_not() -> None:
    fits = int(longest_s(TINY) * SAMPLE_RATE_HZ)
    features_of(np.zeros(fits, np.float32), TINY)
    with pytest.raises(TooLong, match="always fit"):
        features_of(np.zeros(fits + SAMPLE_RATE_HZ, np.float32), TINY)


@pytest.mark.parametrize("size", ["tiny", "small"])
def test_states_do_not_depend_on_who_shares_the_launch(device: EmulatedDevice, size: str) -> None:
    heard = [features_of(audio(index), ASR_SIZES[size]) for index in range(8)]
    stage = stage_of(device, size=size, handoff_bytes=1 << 20)
    assert stage.promise.level == "any shape"
    alone = [states(device, execute(stage, [one]))[0] for one in heard]
    assert states(device, execute(stage, heard)) == alone
    assert states(device, execute(stage, heard[::-1])) == alone[::-1]
    assert len(set(alone)) == len(heard)


def test_a_window_does_not_hear_the_others() -> None:
    with EmulatedDevice(BUDGET_BYTES) as device:
        stage = stage_of(device)
        whole = AUDIOS[6]
        [encoded] = execute(stage, [whole])
        first = Features(whole.values[:128], b"first", 16, 1)
        [alone] = execute(stage, [first])
        rows = [np.frombuffer(one, np.float32).reshape(-1, 16) for one in states(device, [encoded, alone])]
        assert np.array_equal(rows[0][:16], rows[1])


def test_of_equal_audios_in_a_batch_one_is_encoded(device: EmulatedDevice) -> None:
    stage = stage_of(device, encoder_cache=True)
    items = [AUDIOS[0], AUDIOS[1], AUDIOS[0]]
    encoded = execute(stage, items)
    assert encoded[0] is encoded[2]
    assert stage.cache.described() == {"entries": 2, "capacity": 256, "hit": 1, "miss": 2, "off": 0}


def test_the_least_recently_heard_is_forgotten_first(device: EmulatedDevice) -> None:
    stage = stage_of(device, encoder_cache=True, encoder_cache_entries=2)
    for index in (0, 1, 0, 2, 0, 1):
        execute(stage, [AUDIOS[index]])
    assert stage.cache.described() == {"entries": 2, "capacity": 2, "hit": 2, "miss": 4, "off": 0}


def test_pieces_make_words() -> None:
    pieces = [piece_of(one, first=not place) for place, one in enumerate((3, 1, 6, 151_645))]
    assert [piece[:1] == " " for piece in pieces] == [False, False, True, False]
    assert [len(piece) for piece in pieces] == [2, 2, 3, 0]
