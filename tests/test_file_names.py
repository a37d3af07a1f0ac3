"""Several files in one short name."""

from __future__ import annotations

import pytest

from reports.file_names import files_name


@pytest.mark.parametrize(
    ("paths", "name"),
    [
        ([], "no trace"),
        (["/data/a.json"], "a.json"),
        (["/data/a.json", "/data/a.json"], "a.json"),
        (["/data/b.json", "/data/a.json"], "a.json and b.json"),
        ([f"/data/worker{n}.json" for n in (3, 0, 7)], "worker0.json to worker7.json (3 traces)"),
        (["/data/one/t.json", "/data/two/t.json"], "one/t.json and two/t.json"),
    ],
)
def test_files_are_named_as_briefly_as_tells_them_apart(paths: list[str], name: str) -> None:
    assert files_name(paths, "trace") == name
