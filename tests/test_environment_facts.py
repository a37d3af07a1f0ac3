"""What of the environment is kept, and that no secret is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.preflight.environment import KEPT, NOT_KEPT, environment_section

SECRET = "hunter2-s3cr3t"

SECRETS = {
    "HF_TOKEN": SECRET,
    "VLLM_API_KEY": SECRET,
    "SGLANG_ADMIN_KEY": SECRET,
    "NCCL_SOMETHING": SECRET,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "OPENAI_API_KEY": SECRET,
    "DATABASE_URL": f"postgres://me:{SECRET}@host/db",
    "HF_ENDPOINT": f"https://me:{SECRET}@mirror.example/hf",
    "PASSWORD": SECRET,
}


def test_no_planted_secret_is_kept() -> None:
    section = environment_section(SECRETS)
    assert SECRET not in repr(section)
    assert section.facts["HF_ENDPOINT"] == "https://mirror.example/hf"


def test_unlisted_names_of_engines_are_kept_without_their_value() -> None:
    facts = environment_section(SECRETS).facts
    assert facts["VLLM_API_KEY"] == facts["NCCL_SOMETHING"] == NOT_KEPT
    assert not facts.keys() & {"AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "DATABASE_URL", "PASSWORD"}


def test_settings_are_kept() -> None:
    facts = environment_section({"CUDA_VISIBLE_DEVICES": "GPU-1", "OMP_NUM_THREADS": "8"}).facts
    assert facts == {"CUDA_VISIBLE_DEVICES": "GPU-1", "OMP_NUM_THREADS": "8"}


@pytest.mark.parametrize("word", ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"])
def test_no_listed_name_speaks_of_a_secret(word: str) -> None:
    assert not [name for name in KEPT if word in name.split("_")]


@given(st.dictionaries(st.text("ABCDEFGHIKLMNOPRSTUVXY_", min_size=1), st.text(min_size=1)))
def test_only_listed_names_keep_a_value(variables: dict[str, str]) -> None:
    facts = environment_section(variables).facts
    assert {name for name, value in facts.items() if value != NOT_KEPT} <= KEPT
