"""Several devices in one phrase: ranks by number, others by name, many counted."""

from __future__ import annotations

import pytest

from reports.device_lists import NAMED, devices_text


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["rank 2, device 2", "rank 6, device 6"], "ranks 2, 6"),
        (["rank 2, device 2"], "rank 2, device 2"),
        (["rank 2, device 0", "rank 2, device 1"], "rank 2, device 0; rank 2, device 1"),
        (["rank 2, device 2", "a.json, device 0"], "rank 2, device 2; a.json, device 0"),
        (["run 1", "run 2"], "run 1; run 2"),
    ],
)
def test_ranks_are_named_by_number_where_that_tells_them_apart(names: list[str], text: str) -> None:
    assert devices_text(names) == text


def test_of_many_the_rest_is_counted() -> None:
    assert devices_text([f"rank {n}, device {n}" for n in range(NAMED + 3)]).endswith(" and 3 more")
