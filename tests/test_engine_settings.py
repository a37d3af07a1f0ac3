"""Settings of the engine: bundles, sources, what a value can be."""

from __future__ import annotations

from pathlib import Path

import pytest

from sample_engine.config.limits import RAISED
from sample_engine.config.resolve import flat, resolve, restart_reasons, with_source
from sample_engine.config.settings import Settings
from sample_engine.config.switches import BASELINE, OPTIMIZED, refusals
from sample_engine.config.values import TYPES, SettingsError


def test_the_default_is_optimized_with_stock_limits() -> None:
    assert resolve().settings == Settings()
    assert resolve().settings.switches == OPTIMIZED


def test_a_later_source_wins_and_is_named(tmp_path: Path) -> None:
    file = tmp_path / "engine.toml"
    file.write_text('lookahead = false\nsize = "tiny"\nchunk_frames = 9\n')
    resolved = resolve(file, {"SAMPLE_ENGINE_CHUNK_FRAMES": "7", "OTHER": "1"}, {"size": "large"})
    assert not resolved.settings.switches.lookahead
    assert (resolved.settings.size, resolved.settings.chunk_frames) == ("large", 7)
    assert resolved.sources == {
        "lookahead": f"file {file}",
        "size": "option",
        "chunk_frames": "environment",
    }


def test_a_bundle_comes_before_single_names_of_its_source_and_after_those_of_earlier_ones() -> None:
    environment = {"SAMPLE_ENGINE_ENCODER_CACHE": "on"}
    settings = resolve(None, environment, {"cuda_graph": "on", "preset": "baseline"}).settings
    assert settings.switches.cuda_graph
    assert not settings.switches.encoder_cache
    assert settings.switches.radix_key == BASELINE.radix_key


def test_limits_are_a_bundle_of_three() -> None:
    assert resolve(options={"limits": "raised"}).settings.limits == RAISED
    assert resolve(options={"limits": "raised", "build_workers": "3"}).settings.limits.build_workers == 3


def test_every_setting_has_one_flat_name() -> None:
    assert flat(Settings()).keys() == TYPES.keys()


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("lookahed", "on", "no setting is called"),
        ("lookahead", "maybe", "on or off"),
        ("chunk_frames", "2.5", "whole number"),
        ("chunk_frames", True, "whole number"),
        ("vocoder_wait_ms", "-1", "not negative"),
        ("vocoder_wait_ms", "nan", "not negative"),
        ("policy", "fair", "per-stage-length-aware"),
        ("preset", "fast", "baseline, optimized"),
    ],
)
def test_a_wrong_value_is_refused_with_its_source_and_what_would_do(
    name: str, given: object, said: str
) -> None:
    with pytest.raises(SettingsError, match=said) as caught:
        resolve(options={name: given})
    assert str(caught.value).startswith("option: ")


def test_a_file_that_is_not_there_is_an_error_of_settings(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="absent"):
        resolve(tmp_path / "absent.toml")


def test_what_a_running_server_cannot_become_has_a_reason() -> None:
    resolved = resolve()
    changed = with_source(resolved, {"size": "tiny", "lookahead": False}, "configure").settings
    assert restart_reasons(resolved.settings, changed) == {"size": "the weights are made at start"}


def test_a_key_of_the_host_refuses_graph_and_lookahead() -> None:
    both = resolve(options={"radix_key": "host"}).settings.switches
    assert [text.split()[0] for text in refusals(both)] == ["cuda_graph", "lookahead"]
    assert refusals(BASELINE) == refusals(OPTIMIZED) == []
