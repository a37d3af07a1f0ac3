"""The asr pipeline on a GPU: one audio at a time keeps every launch at one shape, so bits must be equal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a GPU that torch can use", allow_module_level=True)

from tests.engine_listening import NAMES, audio, hear, listening, texts  # noqa: E402 (needs the GPU)
from tests.engine_service import Service  # noqa: E402

BUDGET_BYTES = 1 << 30


@pytest.fixture(scope="module")
def plain() -> Iterator[Service]:
    with listening(device="cuda", budget_bytes=BUDGET_BYTES) as running:
        yield running


def one_by_one(running: Service) -> list[str]:
    return [running.data(hear(running, name, audio(index))).decode() for index, name in enumerate(NAMES)]


@pytest.fixture(scope="module")
def alone(plain: Service) -> list[str]:
    return one_by_one(plain)


@pytest.mark.parametrize(
    "changes",
    [{}, {"encoder_thread": True}, {"encoder_cache": True}, {"lookahead": True}, {"cuda_graph": True}],
)
def test_no_switch_changes_a_text(plain: Service, alone: list[str], changes: dict[str, Any]) -> None:
    plain.settle()
    plain.engine.configure(changes)
    assert one_by_one(plain) == alone


def test_many_at_once_are_all_answered(plain: Service) -> None:
    plain.settle()
    assert all(texts(plain))
    plain.settle()
