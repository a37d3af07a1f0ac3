"""`perfkit regress` on the bundled engine: two settings of it, started, asked and stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfkit.cli.app import main

pytest.importorskip("torch")


def test_a_switch_that_cannot_engage_alone_is_no_proof_that_it_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lookahead needs two rows: at 1 at a time the bytes are the same since both arms decode alike."""
    setting = ("--set", "lookahead=off", "--vs", "lookahead=on", "--both", "size=tiny")
    asking = ("--concurrency", "1", "--no-stream", "--data", "text:uniform,words=2-4,same,items=4")
    code = main(["regress", *setting, *asking, "--no-aa", "--json", "--investigation", str(tmp_path)])
    made = json.loads(capsys.readouterr().out)
    assert (code, made["verdict"]["word"], made["different"], made["compared"]) == (4, "invalid", 0, 9)
    void = [g for g in made["guards"] if g["effect"] == "void"]
    assert [g["code"] for g in void] == ["PK567"] and "grew by 0" in void[0]["message"]
    a, b = made["arms"]
    assert a["declared"] == {"lookahead": "off"} and a["proofs"][0]["grew_by"] > 0
    assert b["proofs"][0]["counter"] == "engine_lookahead_steps_total" and b["proofs"][0]["grew_by"] == 0
