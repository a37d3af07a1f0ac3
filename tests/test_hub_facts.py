"""Checkpoints and data sets: where they lie, their revision, and hashes that tell them apart."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from layers.preflight import hub
from layers.preflight.facts import Section
from layers.preflight.hub import checkpoint_section, content_hash, data_section, shape_hash

OLD, NEW = "1" * 40, "2" * 40


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A Hugging Face cache with two snapshots of one model; refs/main names the newer one."""
    folder = tmp_path / "hub" / "models--org--model"
    for revision in (OLD, NEW):
        snapshot = folder / "snapshots" / revision
        snapshot.mkdir(parents=True)
        (snapshot / "config.json").write_text(f'{{"revision": "{revision}"}}')
        (snapshot / "model.safetensors").write_bytes(b"weights")
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(NEW)
    return tmp_path / "hub"


def section(cache: Path, name: str) -> Section:
    return checkpoint_section(name, {"HF_HUB_CACHE": str(cache)})


def test_a_name_is_looked_up_in_the_cache(cache: Path) -> None:
    facts = section(cache, "org/model").facts
    assert facts["revision"] == NEW and facts["is_newest_fetched"] is True
    assert facts["sha256.config.json"] == hashlib.sha256(f'{{"revision": "{NEW}"}}'.encode()).hexdigest()
    assert facts["weights_bytes"] == len(b"weights")


def test_a_path_to_an_older_snapshot_is_not_what_main_names(cache: Path) -> None:
    facts = section(cache, str(cache / "models--org--model" / "snapshots" / OLD)).facts
    assert facts["revision"] == OLD and facts["is_newest_fetched"] is False


@pytest.mark.parametrize("home", ["HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"])
def test_the_cache_is_where_the_environment_says(tmp_path: Path, home: str) -> None:
    below = {"HF_HUB_CACHE": "", "HF_HOME": "hub", "XDG_CACHE_HOME": "huggingface/hub"}[home]
    assert hub.hub_cache({home: str(tmp_path)}) == tmp_path / below


def test_what_is_in_no_cache_is_unavailable_and_said(cache: Path) -> None:
    for name in ("org/other", "no such thing", "no/such/thing"):
        found = section(cache, name)
        assert found.facts == {"named": name}
        assert f"{name} is no path, and not in the cache" in found.unavailable["path"]


def test_a_plain_folder_has_hashes_and_no_revision(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    found = checkpoint_section(str(tmp_path))
    assert "sha256.config.json" in found.facts and found.facts["is_newest_fetched"] is None
    assert "not a git repository" in found.unavailable["revision"]


def test_a_data_set_is_hashed_by_content(tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_text("one\n")
    before = data_section(str(file)).facts["content"]
    file.write_text("two\n")
    assert data_section(str(file)).facts["content"] != before
    assert str(before).startswith("content:")


def test_a_folder_of_data_is_told_by_names_too(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    before = content_hash(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    assert content_hash(tmp_path) != before


def test_data_that_is_too_long_to_hash_is_told_by_names_and_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "MAX_HASHED_BYTES", 3)
    file = tmp_path / "long"
    file.write_text("long")
    assert content_hash(file) == shape_hash([file])
    file.write_text("LONG")
    assert content_hash(file).startswith("names and sizes:")
