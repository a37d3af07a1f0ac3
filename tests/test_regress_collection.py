"""Collecting outputs: two servers asked over the grid, resumed after a cut, read back by their checksums."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from layers.collectors.load.item import Item, write_items
from layers.evidence.store import ARTIFACTS
from layers.layer5_regression.collected import read_collected
from layers.layer5_regression.grid import concurrencies, grid, lacking
from layers.layer5_regression.model import Cell
from layers.layer5_regression.separation import content_hash, earlier_contents
from parsers.errors import UsageError
from perfkit.cli.app import main
from tests.load_servers import Asked, Script, answer
from tests.output_builders import wav
from tests.sweep_runs import loaded

ITEMS = 20


def prompt_of(asked: Asked) -> str:
    return str(json.loads(asked.body)["messages"][0]["content"])


def says(text: str, finish: str = "stop") -> Script:
    choice = {"message": {"content": text}, "finish_reason": finish}
    return [answer(json.dumps({"choices": [choice], "usage": {"completion_tokens": 3}}).encode())]


def echo(asked: Asked) -> Script:
    return says(f"You said: {prompt_of(asked)}")


@pytest.fixture
def data(tmp_path: Path) -> str:
    path = tmp_path / "prompts.jsonl"
    rows = [{"id": f"p{n}", "text": f"prompt number {n}, long enough"} for n in range(ITEMS + 5)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return f"{path},items={ITEMS},warmup=5"


def asked(capsys: pytest.CaptureFixture[str], folder: Path, a: int, b: int, *more: str) -> dict[str, Any]:
    sides = ("--server", f"http://127.0.0.1:{a}", "--vs-server", f"http://127.0.0.1:{b}")
    capsys.readouterr()
    code = main(["regress", *sides, *more, "--json", "--investigation", str(folder)])
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert made["verdict"]["exit_code"] == code
    return made


GRID = ("--concurrency", "2", "--no-stream")


def test_two_servers_that_say_the_same_are_identical(
    tmp_path: Path, data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with loaded(echo) as a, loaded(echo) as b:
        made = asked(capsys, tmp_path / "i", a.port, b.port, "--data", data, *GRID)
        assert len(a.asked) == 2 * len(b.asked) == 2 * 2 * ITEMS
    assert made["verdict"]["word"] == "identical" and made["compared"] == 2 * ITEMS
    assert [one["cell"] for one in made["cells"]][:2] == ["c=2 cold whole", "c=2 warm whole"]
    fired = {g["code"]: g["effect"] for g in made["guards"]}
    assert fired == {"PK567": "note", "PK571": "note", "PK572": "note"}
    assert "streamed answers" in next(g["message"] for g in made["guards"] if g["code"] == "PK571")


def test_one_that_answers_otherwise_when_it_is_asked_together_is_found(
    tmp_path: Path, data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with loaded(echo) as a:
        seen: list[str] = []

        def unlike(asked: Asked) -> Script:
            seen.append(prompt_of(asked))
            return says("You said: nothing") if len(seen) == ITEMS + 4 else echo(asked)

        with loaded(unlike) as b:
            made = asked(capsys, tmp_path / "i", a.port, b.port, "--data", data, *GRID)
    assert (made["verdict"]["word"], made["different"]) == ("different", 1)
    assert (
        made["first_divergence"]["cell"] == "c=2 warm whole" and made["first_divergence"]["what"] == "length"
    )


def test_a_server_that_refuses_some_is_different_and_not_smaller(
    tmp_path: Path, data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuses(asked: Asked) -> Script:
        return [answer(b"full", status="503 Full")] if "number 7," in prompt_of(asked) else echo(asked)

    with loaded(echo) as a, loaded(refuses) as b:
        made = asked(capsys, tmp_path / "i", a.port, b.port, "--data", data, *GRID)
    assert made["verdict"]["word"] == "different" and made["different"] == 2
    assert made["first_divergence"]["what"] == "ended" and "503" in made["first_divergence"]["b"]


def spoken(asked: Asked, told: int | None) -> Script:
    """The text as samples; `told` is what the header says of their length."""
    samples = str(json.loads(asked.body)["input"]).encode() * 20
    return [answer(wav(samples, told=told), content_type="audio/wav")]


@pytest.fixture(scope="module")
def spoken_arms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a collection of sounds; B's headers do not know their length."""
    folder = tmp_path_factory.mktemp("spoken")
    path = folder / "prompts.jsonl"
    rows = [{"id": f"p{n}", "text": f"say {n}"} for n in range(ITEMS + 5)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with loaded(lambda one: spoken(one, None)) as a, loaded(lambda one: spoken(one, 0xFFFFFFFF)) as b:
        sides = ("--server", f"http://127.0.0.1:{a.port}", "--vs-server", f"http://127.0.0.1:{b.port}")
        asking = ("--data", f"{path},items={ITEMS},warmup=5", "--endpoint", "speech", "--concurrency", "1")
        assert main(["regress", *sides, *asking, "--no-stream", "--investigation", str(folder / "i")]) == 0
    (made,) = (folder / "i" / ARTIFACTS).glob("regress-*")
    return made


def compared_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    """The arms of a collection, given as folders."""
    arms = ("--a", str(folder / "a"), "--b", str(folder / "b"), "--aa", str(folder / "aa"))
    capsys.readouterr()
    code = main(["regress", *arms, "--json", "--no-record"])
    return code, json.loads(capsys.readouterr().out)


def test_a_collection_is_an_arm_by_itself(spoken_arms: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b, aa = (str(spoken_arms / name) for name in ("a", "b", "aa"))
    capsys.readouterr()
    assert main(["regress", "--a", a, "--a", aa, "--b", b, "--no-record"]) == 2
    assert "give its folder alone" in capsys.readouterr().err


def test_sound_is_kept_by_its_samples_and_its_header_counts_for_nothing(
    spoken_arms: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, made = compared_again(spoken_arms, capsys)
    assert (code, made["verdict"]["word"], made["compared"]) == (0, "identical", 2 * ITEMS)
    assert len(list((spoken_arms / "a" / "payloads").iterdir())) == ITEMS
    arm = read_collected("A", spoken_arms / "a")
    assert arm.outputs[0].payloads[0].dtype == "<i2" and arm.lost == ()


@pytest.mark.parametrize("where", ["record", "sound", "end", "cell"])
def test_damage_of_any_kind_makes_an_arm_invalid(
    where: str, tmp_path: Path, spoken_arms: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(spoken_arms, folder)
    cell, sound = folder / "b" / "cells" / "000.log", next((folder / "b" / "payloads").iterdir())
    if where == "record":
        cell.write_bytes(cell.read_bytes().replace(b'"p3"', b'"p4"', 1))
    elif where == "sound":
        sound.write_bytes(sound.read_bytes()[:-1] + b"\7")
    elif where == "end":
        cell.write_bytes(cell.read_bytes()[:-10])
    else:
        cell.unlink()
    code, made = compared_again(folder, capsys)
    assert code == 4 and "PK555" in {g["code"] for g in made["guards"] if g["effect"] == "void"}


def test_a_collection_that_was_cut_is_invalid_until_it_is_resumed(
    tmp_path: Path, data: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from layers.layer5_regression import collect

    ask, cells = collect._ask_cell, list[int]()

    def cut(asked: Any, number: int, told: Any) -> Any:
        cells.append(number)
        return ask(asked, number, told if len(cells) < 4 else lambda: True)

    monkeypatch.setattr(collect, "_ask_cell", cut)
    with loaded(echo) as server, loaded(echo) as other:
        made = asked(capsys, tmp_path / "i", server.port, other.port, "--data", data, *GRID)
        assert (made["verdict"]["word"], made["verdict"]["exit_code"]) == ("invalid", 130)
        assert "--resume goes on" in made["verdict"]["next_step"]
        assert any("planned samples recorded" in g["message"] for g in made["guards"])
        monkeypatch.setattr(collect, "_ask_cell", ask)
        before = len(server.asked) + len(other.asked)
        path = Path(data.partition(",")[0])
        items = path.read_text()
        path.write_text(items.replace("prompt", "other"))
        assert main(["regress", "--resume", "--investigation", str(tmp_path / "i")]) == 2
        assert "are others than when it began" in capsys.readouterr().err
        assert len(server.asked) + len(other.asked) == before
        path.write_text(items)
        assert main(["regress", "--resume", "--json", "--investigation", str(tmp_path / "i")]) == 0
        assert len(server.asked) + len(other.asked) - before == 3 * ITEMS
    assert json.loads(capsys.readouterr().out)["verdict"]["word"] == "identical"


SERVER = """
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def say(self, document):
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.say({"data": [{"id": "made-up"}]})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = asked["messages"][0]["content"]
        said = text.upper() if "number 3," in text and sys.argv[2:] else text
        self.say({"choices": [{"message": {"content": said}, "finish_reason": "stop"}]})

    def log_message(self, *_): ...

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def test_two_commands_are_started_asked_and_stopped(
    tmp_path: Path, data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first request after a start is a cell of its own; what the model is makes it ask for more."""
    script, config = tmp_path / "server.py", tmp_path / "config.json"
    script.write_text(SERVER, encoding="utf-8")
    config.write_text(json.dumps({"is_encoder_decoder": True}), encoding="utf-8")
    command = f"{sys.executable} {script} {{port}}"
    sides = ("--launch", command, "--vs-launch", f"{command} loud", "--model-config", str(config))
    asking = ("--data", data, "--concurrency", "1", "--no-stream", "--json")
    capsys.readouterr()
    assert main(["regress", *sides, *asking, "--investigation", str(tmp_path / "i")]) == 1
    made = json.loads(capsys.readouterr().out)
    assert [one["cell"] for one in made["cells"]] == ["c=1 first whole", "c=1 cold whole", "c=1 warm whole"]
    differ = {(one["item"], one["cell"]) for one in made["samples"] if not one["same"]}
    assert {cell for item, cell in differ if item == "p3"} >= {"c=1 cold whole", "c=1 warm whole"}
    assert len({item for item, _ in differ}) == 1
    assert "concurrency above 1" in next(g["message"] for g in made["guards"] if g["code"] == "PK573")


def test_items_that_a_sweep_has_sent_are_refused(
    tmp_path: Path, data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    known = tmp_path / "i" / ARTIFACTS / "sweep-1" / "items"
    known.mkdir(parents=True)
    write_items(known / "x.log", [Item("other-name", text="prompt number 3, long enough")])
    with loaded(echo) as server, loaded(echo) as other:
        sides = (
            "--server",
            f"http://127.0.0.1:{server.port}",
            "--vs-server",
            f"http://127.0.0.1:{other.port}",
        )
        code = main(["regress", *sides, "--data", data, "--investigation", str(tmp_path / "i")])
        assert server.asked == other.asked == []
    assert code == 2 and "1 of 20 items were sent by sweeps or A/Bs here (PK566)" in capsys.readouterr().err
    assert not list((tmp_path / "i" / ARTIFACTS).glob("regress-*"))


def test_an_item_is_known_by_what_is_sent_and_not_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "one.wav").write_bytes(b"sound")
    (tmp_path / "two.wav").write_bytes(b"sound")
    one, two = (Item(f"{name}", audio=str(tmp_path / f"{name}.wav")) for name in ("one", "two"))
    assert content_hash(one) == content_hash(two) != content_hash(Item("one", text="sound"))
    assert content_hash(Item("a", text="x", max_tokens=3)) == content_hash(Item("b", text="x"))
    assert earlier_contents(tmp_path).hashes == frozenset()


def test_the_grid_asks_cold_then_warm_and_begins_with_the_first_request() -> None:
    cells = grid((1, 4), (False,), starts=True)
    assert [cell.name for cell in cells] == [
        "c=1 first whole",
        "c=1 cold whole",
        "c=1 warm whole",
        "c=4 cold whole",
        "c=4 warm whole",
    ]
    assert grid((1,), (True,), starts=False)[0] == Cell(1, "cold", True)


def test_what_a_grid_lacks_is_said() -> None:
    assert lacking(grid((1, 4, 5), (False, True), starts=True)) == []
    told = lacking([Cell(1, "warm", True)])
    assert told == [
        "concurrency above 1",
        "both sides of a bucket (k and k + 1)",
        "a cold cache",
        "answers in one piece",
    ]
    assert lacking(grid((1, 2), (False, True), starts=False)) == ["both sides of a bucket (k and k + 1)"]


@pytest.mark.parametrize("text", ["", "0", "1,x", "1000", "1.5"])
def test_concurrencies_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--concurrency"):
        concurrencies(text)
    assert concurrencies("5, 1,4,4") == (1, 4, 5)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "say what to compare"),
        (("--set", "lookahead=on"), "say what to compare"),
        (("--set", "lookahead=on", "--vs", "lookahead=on"), "nothing would change"),
        (("--server", "http://127.0.0.1:1"), "give both sides"),
        (("--server", "http://127.0.0.1:1", "--vs-server", "http://127.0.0.1:1/"), "name one server"),
        (
            ("--server", "http://127.0.0.1:1", "--vs-server", "http://127.0.0.1:1", "--set", "a=b"),
            "bundled engine's",
        ),
        (("--vs", "a=b", "--endpoint", "nothing"), "--endpoint nothing"),
        (("--resume",), "is no investigation"),
        (("--resume", "--vs", "a=b"), "leave out --vs"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    arguments: tuple[str, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["regress", *arguments, "--investigation", str(tmp_path / "none")])
    err = capsys.readouterr().err
    assert (code, len(err.splitlines())) == (2, 1) and says in err
