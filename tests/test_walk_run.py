"""The walk goes part by part, stops for people, never runs twice what has ended, and goes on after a kill."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from layers.layer3_sweep.subject import Subject
from parsers.children import child_command
from parsers.errors import UsageError
from perfkit.walk import run
from perfkit.walk.decide import decide
from perfkit.walk.journal import LOG, PREFIX, Journal, latest_walk, read_journal
from perfkit.walk.model import Candidate, Decision, Outcome, Part, Way
from perfkit.walk.profiles import QUICK
from perfkit.walk.run import People, Walk
from perfkit.walk.steps import arguments_of
from perfkit.walk.subject import Investigated
from tests.command_runs import run as command
from tests.control_servers import control_server
from tests.test_walk_decisions import outcome, stacks

WORDS = {"preflight": "no-gpu", "layer1": "host-bound", "ab": "improvement", "regress": "identical"}
PROGRAM = """
import json, sys
part, documents = sys.argv[1], json.loads(sys.argv[2])
print("begins", file=sys.stderr)
print(json.dumps(documents.get(part, {"verdict": {"word": part, "directional": False, "because": "so"}})))
"""


class Seen:
    """People who agree to everything and write down what they are told."""

    def __init__(self, load: bool = True, choice: bool = True, end_after: Part | None = None) -> None:
        self.ran: list[Part] = []
        self.out: dict[Part, str] = {}
        self.offered: list[Candidate] = []
        self._load, self._choice, self._end_after = load, choice, end_after

    def people(self) -> People:
        return People(
            told=lambda: self._end_after is not None and self._end_after in self.ran,
            begins=lambda part: None,
            waits=lambda: None,
            cut=lambda: None,
            rests=lambda: None,
            ended=self._ended,
            left_out=self.out.__setitem__,
            may_load=lambda: self._load,
            choose=self._choose,
        )

    def _ended(self, outcome: Outcome, decision: Decision) -> None:
        self.ran.append(outcome.part)

    def _choose(self, found: Sequence[Candidate]) -> Candidate | None:
        self.offered = list(found)
        return found[0] if self._choice else None


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are small programs; Layer 2 finds the key on the host, the bundled engine is not started."""
    documents = {
        name: {"verdict": {"word": word, "directional": False, "because": "so"}}
        for name, word in WORDS.items()
    }
    documents["layer2"] = dict(stacks().document)

    def program(target: str, walk: str, part: str, *arguments: str) -> list[str]:
        assert target == "perfkit.walk.child:main" and "--json" in arguments
        return [sys.executable, "-c", PROGRAM, part, json.dumps(documents)]

    monkeypatch.setattr(run, "child_command", program)


@pytest.fixture
def url() -> Iterator[str]:
    with control_server({}) as server:
        yield server.url


def walked(folder: Path, whom: Investigated, seen: Seen, skipped: dict[Part, str] | None = None) -> bool:
    with closing(Journal(folder)) as journal:
        if not journal.told.kind:
            journal.kind("sample-engine")
        with Walk(folder.parent.parent, journal, whom, QUICK, skipped or {}, seen.people()) as walk:
            return walk.go_on()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "artifacts" / f"{PREFIX}1"
    made.mkdir(parents=True)
    return made


def test_all_parts_run_in_order_and_the_change_that_the_evidence_names_is_tried(
    folder: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Investigated, "foreign", False)
    seen = Seen()
    assert walked(folder, Investigated(server=url), seen)
    assert seen.ran == list(Part) and seen.out == {}
    assert seen.offered[0].vs == "radix_key=device"
    told = read_journal(folder)
    assert told.finished and told.chosen == seen.offered[0]
    assert told.decisions[Part.LAYER5] == Decision(Way.END, "the answers are the same")


def test_a_server_of_somebody_else_gets_no_load_without_a_yes_and_is_never_restarted(
    folder: Path, url: str
) -> None:
    seen = Seen(load=False)
    assert not walked(folder, Investigated(server=url), seen)
    assert seen.ran == [Part.PREFLIGHT]
    seen = Seen()
    assert walked(folder, Investigated(server=url), seen)
    assert seen.ran == [Part.LAYER1, Part.STAGES, Part.LAYER2, Part.LAYER3]
    assert (
        "did not start this server" in seen.out[Part.LAYER4]
        and seen.out[Part.LAYER5] == "no change was tried"
    )


def test_a_command_is_not_given_settings_that_it_has_no_place_for(
    folder: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Investigated, "foreign", False)
    monkeypatch.setattr(Investigated, "subject", Subject(url=url))
    seen = Seen()
    assert walked(folder, Investigated(launch="serve {port}"), seen)
    assert "perfkit ab --launch" in seen.out[Part.LAYER4] and seen.offered == []


def test_nothing_is_tried_before_somebody_chose(
    folder: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Investigated, "foreign", False)
    seen = Seen(choice=False)
    assert not walked(folder, Investigated(server=url), seen)
    assert Part.LAYER4 not in seen.ran and read_journal(folder).candidates
    seen = Seen()
    assert walked(folder, Investigated(server=url), seen)
    assert seen.ran == [Part.LAYER4, Part.LAYER5]


def test_what_has_ended_is_never_run_again(folder: Path, url: str) -> None:
    seen = Seen(end_after=Part.LAYER1)
    assert not walked(folder, Investigated(server=url), seen)
    before = (folder / "layer1.json").read_bytes()
    later = Seen()
    assert walked(folder, Investigated(server=url), later)
    assert Part.LAYER1 not in later.ran and later.ran[0] is Part.STAGES
    assert (folder / "layer1.json").read_bytes() == before


def test_a_busy_device_leads_to_the_kernels(folder: Path, url: str) -> None:
    with closing(Journal(folder)) as journal:
        for part, word in ((Part.PREFLIGHT, "ready"), (Part.LAYER1, "device-bound")):
            found = outcome(part, word)
            journal.ended(found, decide(found), 1.0)
    seen = Seen()
    assert walked(folder, Investigated(server=url), seen)
    assert seen.ran == [] and set(seen.out) == {*Part} - {Part.PREFLIGHT, Part.LAYER1}
    assert "roofline and kernel tables" in seen.out[Part.LAYER2]


def test_a_part_is_left_out_with_its_reason(folder: Path, url: str) -> None:
    seen = Seen()
    assert walked(folder, Investigated(server=url), seen, {Part.LAYER2: "no ptrace here"})
    assert seen.out[Part.LAYER2] == "no ptrace here"
    assert "no switch of this server" in seen.out[Part.LAYER4]


@pytest.mark.parametrize("left", [True, False])
def test_a_part_that_was_cut_goes_on_where_it_left_a_folder_of_its_own(
    folder: Path, url: str, left: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifacts = folder.parent
    (artifacts / "sweep-before").mkdir()
    with closing(Journal(folder)) as journal:
        for part in (Part.PREFLIGHT, Part.LAYER1, Part.STAGES, Part.LAYER2):
            journal.ended(outcome(part, "x"), Decision(Way.ON, "so"), 1.0)
        journal.began(Part.LAYER3, [], [path.name for path in artifacts.iterdir()])
    if left:
        (artifacts / "sweep-of-the-walk").mkdir()
    given: list[Sequence[str]] = []
    of_programs: Callable[..., list[str]] = vars(run)["child_command"]

    def kept(target: str, *arguments: str) -> list[str]:
        given.append(arguments)
        return of_programs(target, *arguments)

    monkeypatch.setattr(run, "child_command", kept)
    walked(folder, Investigated(server=url, headers=("X=1",)), Seen())
    assert given[0][1] == "sweep" and ("--resume" in given[0]) is left
    assert "--header=X=1" in given[0]
    assert any(option.startswith("--concurrency") for option in given[0]) is not left


def test_the_newest_walk_is_the_one_to_go_on_with(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no walk began here"):
        latest_walk(tmp_path)
    for name in ("20260101-000000", "20260102-000000"):
        (tmp_path / f"{PREFIX}{name}").mkdir()
        with closing(Journal(tmp_path / f"{PREFIX}{name}")) as journal:
            journal.asked({})
    assert latest_walk(tmp_path).name == f"{PREFIX}20260102-000000"


def test_a_journal_with_a_torn_end_is_read_as_far_as_it_is_whole(folder: Path) -> None:
    with closing(Journal(folder)) as journal:
        journal.ended(outcome(Part.PREFLIGHT, "ready"), Decision(Way.ON, "so"), 1.0)
    with (folder / LOG).open("ab") as log:
        log.write(b'12345678 {"ended": "layer1"')
    told = read_journal(folder)
    assert set(told.outcomes) == {Part.PREFLIGHT} and told.outcomes[Part.PREFLIGHT].word == "ready"


def test_a_part_ends_with_the_walk(tmp_path: Path) -> None:
    """The walk is killed without a word: its part is told to end and keeps what it has."""
    part = child_command("perfkit.walk.child:main")
    script = (
        "import os, subprocess, sys, time\n"
        f"child = subprocess.Popen({part!r} + [str(os.getpid()), 'preflight', '--watch', '600',"
        f" '--investigation', {str(tmp_path / 'i')!r}], stdout=subprocess.DEVNULL)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    walk = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert walk.stdout is not None
    pid = int(walk.stdout.readline())
    while b"--watch" not in Path(f"/proc/{pid}/cmdline").read_bytes():
        time.sleep(0.05)
    walk.send_signal(signal.SIGKILL)
    walk.wait()
    walk.stdout.close()
    while Path(f"/proc/{pid}").exists():
        time.sleep(0.05)


def test_the_command_records_the_walk_and_writes_the_report(
    tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "child_command", child_command)
    left = [part for part in Part if part is not Part.PREFLIGHT]
    skips = [
        option for part in left for option in ("--skip", part.value, "--because", f"no {part.value} here")
    ]
    folder = tmp_path / "investigation"
    options = ["--server", url, "--yes", "--json", "--zero-when-done", "--investigation", str(folder)]
    code, out, _ = command(capsys, "investigate", *options, *skips)
    document = json.loads(out)
    assert (code, document["verdict"]["exit_code"]) == (0, 3)
    first, *rest = document["walk"]
    assert first["command"] == "preflight" and "decision" in first
    assert [row["left_out"] for row in rest] == [f"no {part.value} here" for part in left]
    assert (folder / "report.md").exists() and (folder / "report.html").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--skip", "layer1"], "--because"),
        (["--skip", "layer1", "--because", " "], "--because"),
        (["--skip", "layer9", "--because", "x"], "--skip layer9: there are preflight"),
        (["--profile", "slow"], "there are quick, standard, thorough"),
        (["--resume"], "no walk began here"),
    ],
)
def test_what_cannot_be_walked_is_refused(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = command(capsys, "investigate", *options, "--investigation", str(tmp_path / "i"))
    assert (code, said in err) == (2, True)


def test_layers_4_and_5_get_the_arms_the_proof_and_what_was_prevented() -> None:
    tried = Candidate("n", "w", ("e",), "h", "x=1", "x=2", ("--engine-preset=optimized",), "ran", "freed")
    whom = Investigated(options={"data": "text"})
    a_b = arguments_of(Part.LAYER4, QUICK, whom, "", tried)
    assert {"--set=x=1", "--vs=x=2", "--engine-preset=optimized", "--data=text"} < set(a_b)
    assert {"--ran=ran", "--unblocked=freed", f"--pairs={QUICK.pairs}"} < set(a_b)
    again = arguments_of(Part.LAYER4, QUICK, replace(whom, a_a=True, pipeline="asr"), "", tried)
    assert {"--set=x=1", "--a-a", "--pipeline=asr"} < set(again)
    assert not any(one.startswith(("--vs", "--ran", "--unblocked")) for one in again)
    answers = arguments_of(Part.LAYER5, QUICK, whom, "", tried)
    assert "--counter=ran" in answers and not any(one.startswith("--ran") for one in answers)
