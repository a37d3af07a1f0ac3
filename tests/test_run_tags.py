"""`perfkit run --tag`: ranges in a program of several processes whose code is left alone.

torch is a small stand-in on the program's path that writes down every range it is asked for, so that the
tests see what a profiler would.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from layers.collectors.tags.tagging import INJECTED
from layers.evidence.verdict import Exit
from layers.layer1_gpu_busy.annotations import FAMILIES, read_tag
from perfkit.cli.app import main
from tests.conftest import REPOSITORY
from tests.process_trees import wait_until_gone

TORCH = """
import os

class record_function:
    def __init__(self, name):
        self.name = name
    def __enter__(self):
        write("open", self.name)
        return self
    def __exit__(self, *_):
        write("close", self.name)

def write(what, name):
    if name == "perfkit cost":  # the check before the run measures what a range costs
        return
    with open(os.environ["RANGES"], "a") as file:
        file.write(f"{os.getpid()} {what} {name}\\n")
"""

ENGINE = """
class Scheduler:
    def __init__(self):
        self.running = [1, 2]
    def step(self, batch, *more, cached=3, **rest):
        return len(batch) + cached
    @staticmethod
    def pick(items):
        return items[0]
    @classmethod
    def make(cls, size):
        return cls, size
    def fail(self):
        raise RuntimeError("the service's own error")
    async def wait(self):
        pass
    def stream(self):
        yield 1

class Child(Scheduler):
    pass

def plain(x=7):
    return x

limit = 4
"""

SERVE = """
import multiprocessing, os, sys
import torch
from engine.core import Scheduler

def work(size):
    assert Scheduler().step(list(range(size))) == size + 3
    os._exit(0)

if __name__ == "__main__":
    Scheduler().step([1])
    for method, size in (("fork", 2), ("spawn", 3), ("forkserver", 4)):
        child = multiprocessing.get_context(method).Process(target=work, args=(size,))
        child.start()
        child.join()
        assert child.exitcode == 0, method
"""


class Opened(NamedTuple):
    """One range, as the stand-in for torch saw it begin."""

    pid: int
    label: str


class Program:
    """A program in a folder of its own, run under `perfkit run`."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capfd = folder, capfd
        self.ranges = folder / "ranges"

    def file(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def run(self, *arguments: str, script: str = "") -> tuple[int, dict[str, Any], str]:
        """Exit code, document and stderr of a run of serve.py, or of a script given here."""
        command = ["-c", script] if script else ["serve.py"]
        code = main(["run", *arguments, "--json", "--no-record", "--", sys.executable, *command])
        out, err = self._capfd.readouterr()
        return code, json.loads(out or "{}"), err

    def opened(self) -> list[Opened]:
        lines = [line.split(maxsplit=2) for line in self.ranges.read_text().splitlines()]
        return [Opened(int(pid), label) for pid, what, label in lines if what == "open"]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Program:
    made = Program(tmp_path, capfd)
    made.file("torch/__init__.py", "from torch import profiler\n")
    made.file("torch/profiler.py", TORCH)
    made.file("engine/__init__.py", "")
    made.file("engine/core.py", ENGINE)
    made.file("serve.py", SERVE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANGES", str(made.ranges))
    return made


STEP = "schedule=engine.core:Scheduler.step"
CALL_STEP = "import torch; from engine.core import Scheduler; Scheduler().step([1, 2])"


def test_forked_and_spawned_children_have_ranges_with_their_batch(program: Program) -> None:
    code, document, _ = program.run("--tag", STEP, "--batch", "len(batch)")
    assert (code, document["verdict"]["word"]) == (Exit.OK, "tagged")
    opened = program.opened()
    assert {one.label for one in opened} == {f"schedule[batch={size}]" for size in (1, 2, 3, 4)}
    assert len({one.pid for one in opened}) == 4
    (tag,) = document["tags"]
    assert {one["pid"] for one in tag["processes"]} == {one.pid for one in opened}
    assert all(one["ranges"] == "record_function" and one["calls_at_least"] == 1 for one in tag["processes"])


def test_layer_1_reads_the_batch_out_of_the_label(program: Program) -> None:
    program.run("--tag", STEP, "--batch", "len(batch)", script=CALL_STEP)
    (label,) = {one.label for one in program.opened()}
    (tagged,) = [tag for family in FAMILIES if (tag := read_tag(family, label))]
    assert (tagged.kind, tagged.batch_size) == ("schedule", 2)


def test_every_range_that_opens_is_closed_even_when_the_function_raises(program: Program) -> None:
    script = """
        import torch
        from engine.core import Scheduler
        try:
            Scheduler().fail()
        except RuntimeError as error:
            assert str(error) == "the service's own error"
        """
    code, _, _ = program.run("--tag", "f=engine.core:Scheduler.fail", script=textwrap.dedent(script))
    assert code == Exit.OK
    assert Counter(line.split()[1] for line in program.ranges.read_text().splitlines()) == {
        "open": 1,
        "close": 1,
    }


@pytest.mark.parametrize(
    ("target", "call"),
    [
        ("plain", "core.plain(x=5) == 5"),
        ("Scheduler.pick", "core.Scheduler.pick([9]) == 9 == core.Scheduler().pick([9])"),
        ("Scheduler.make", "core.Child.make(3) == (core.Child, 3)"),
        ("Child.step", "core.Child().step([1]) == 4"),
        ("Scheduler.step", "core.Child().step([1], 2, cached=0, other=1) == 1"),
    ],
)
def test_all_kinds_of_functions_do_what_they_did(program: Program, target: str, call: str) -> None:
    script = f"import torch; from engine import core; assert {call}"
    code, document, _ = program.run("--tag", f"x=engine.core:{target}", script=script)
    assert (code, document["exit_code"]) == (Exit.OK, 0)
    assert program.opened()


def test_a_wrapped_function_still_looks_like_itself(program: Program) -> None:
    script = """
        import inspect, torch
        from engine import core
        core.Scheduler().step([1])
        step = core.Scheduler.step
        assert step.__name__ == "step" and "cached" in inspect.signature(step).parameters
        assert "len(batch)" in inspect.getsource(core)
        assert type(core.__spec__.loader).__name__ == "SourceFileLoader"
        """
    assert program.run("--tag", STEP, script=textwrap.dedent(script))[0] == Exit.OK


@pytest.mark.parametrize(
    ("expression", "labels"),
    [
        ("len(batch)", {"schedule[batch=2]"}),
        ("len(self.running) + cached", {"schedule[batch=5]"}),
        ("sum(1 for x in batch if x < limit)", {"schedule[batch=2]"}),
        ("len(more) + len(rest)", {"schedule[batch=0]"}),
    ],
)
def test_the_expression_sees_parameters_defaults_and_the_modules_names(
    program: Program, expression: str, labels: set[str]
) -> None:
    code, _, _ = program.run("--tag", STEP, "--batch", expression, script=CALL_STEP)
    assert code == Exit.OK and {one.label for one in program.opened()} == labels


def test_an_expression_that_fails_costs_the_label_and_never_the_service(program: Program) -> None:
    code, document, _ = program.run("--tag", STEP, "--batch", "batch.size", script=CALL_STEP)
    assert (code, document["verdict"]["directional"]) == (Exit.NO_CONCLUSION, True)
    assert {one.label for one in program.opened()} == {"schedule"}
    (guard,) = document["guards"]
    assert guard["name"] == "batch-expression-failed" and "AttributeError" in guard["message"]


def test_a_batch_that_is_no_whole_number_is_not_turned_into_one(program: Program) -> None:
    _, document, _ = program.run("--tag", STEP, "--batch", "1.5", script=CALL_STEP)
    assert "it is a float, not a whole number" in document["guards"][0]["message"]


def test_each_tag_may_have_an_expression_of_its_own(program: Program) -> None:
    script = CALL_STEP + "; from engine import core; core.plain()"
    tags = ("--tag", STEP, "--tag", "other=engine.core:plain")
    program.run(*tags, "--batch", "schedule=len(batch)", "--batch", "x", script=script)
    assert {one.label for one in program.opened()} == {"schedule[batch=2]", "other[batch=7]"}


@pytest.mark.parametrize(
    ("tag", "said"),
    [
        ("x=engine.core:Scheduler.absent", "engine.core has no Scheduler.absent"),
        ("x=engine.core:Absent.step", "engine.core has no Absent.step"),
        ("x=engine.absent:step", "importing engine.absent failed: ModuleNotFoundError"),
        ("x=engine.core:limit", "limit is no function"),
        ("x=engine.core:Scheduler", "Scheduler is no function"),
        ("x=engine.core:Scheduler.wait", "is suspended between its steps"),
        ("x=engine.core:Scheduler.stream", "is suspended between its steps"),
        ("engine.core:plain", "write NAME=MODULE:FUNCTION"),
    ],
)
def test_a_name_that_does_not_resolve_is_an_error_before_anything_starts(
    program: Program, tag: str, said: str
) -> None:
    started = program.folder / "started"
    code, _, err = program.run("--tag", tag, script=f"open({str(started)!r}, 'w')")
    assert code == Exit.USAGE and said in err
    assert not started.exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "name what to tag"),
        (("--tag", STEP, "--tag", STEP), "two tags are called schedule"),
        (("--tag", STEP, "--batch", "len("), "--batch len("),
        (("--tag", STEP, "--batch", "1", "--batch", "2"), "a second expression"),
        (("--tag", STEP, "--batch", "schedule=1", "--batch", "2"), "every tag has an expression"),
    ],
)
def test_options_that_contradict_each_other_are_usage_errors(
    program: Program, options: tuple[str, ...], said: str
) -> None:
    code, _, err = program.run(*options, script="pass")
    assert code == Exit.USAGE and said in err


def test_the_cost_of_a_range_is_measured_and_printed(program: Program) -> None:
    _, document, err = program.run("--tag", STEP, script=CALL_STEP)
    (cost,) = document["measurements"]
    assert (cost["name"], cost["unit"], cost["n"]) == ("range_cost_ns", "ns", 5)
    assert cost["value"] > 0 and len(cost["raw"]) == 5
    assert "a range costs" in err and "no profiler attached" in err


def test_a_tag_that_is_never_called_makes_the_run_invalid(program: Program) -> None:
    code, document, _ = program.run("--tag", STEP, script="import torch; import engine.core")
    assert (code, document["verdict"]["word"]) == (Exit.INVALID, "untagged")
    assert "schedule (engine.core:Scheduler.step)" in document["verdict"]["because"]


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed here and cannot be hidden")
def test_without_torch_and_without_nvtx_there_is_an_error_before_the_load(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    (program.folder / "torch" / "profiler.py").unlink()
    (program.folder / "torch" / "__init__.py").unlink()
    (program.folder / "torch").rmdir()
    code, _, err = program.run("--tag", STEP, script=CALL_STEP)
    assert code == Exit.USAGE and "neither torch nor libnvToolsExt.so.1" in err


NVTX = """
#include <stdio.h>
#include <stdlib.h>
static void say(const char *what) {
    FILE *file = fopen(getenv("RANGES"), "a");
    fprintf(file, "1 %s\\n", what);
    fclose(file);
}
int nvtxRangePushA(const char *label) {
    char text[200];
    snprintf(text, sizeof text, "open %s", label);
    say(text);
    return 0;
}
int nvtxRangePop(void) { say("close it"); return 0; }
"""


def test_without_torch_nvtx_alone_makes_the_ranges(
    program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("profiler.py", "__init__.py"):
        (program.folder / "torch" / name).unlink()
    (program.folder / "torch").rmdir()
    compile_library(program.file("nvtx.c", NVTX), tmp_path / "libnvToolsExt.so.1")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    script = "from engine.core import Scheduler; Scheduler().step([1, 2])"
    code, document, _ = program.run("--tag", STEP, "--batch", "len(batch)", script=script)
    assert code == Exit.OK and document["tags"][0]["processes"][0]["ranges"] == "nvtx"
    assert "schedule[batch=2]" in {one.label for one in program.opened()}


def compile_library(source: Path, library: Path) -> None:
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", library, source], check=True)
    except FileNotFoundError:
        pytest.skip("no C compiler: an NVTX library cannot be built")


def test_a_sitecustomize_of_the_environment_still_runs(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.file("own/sitecustomize.py", "import builtins\nbuiltins.own_ran = True\n")
    monkeypatch.setenv("PYTHONPATH", str(program.folder / "own"))
    script = CALL_STEP + "; import sitecustomize; assert own_ran and 'own' in sitecustomize.__file__"
    code, document, _ = program.run("--tag", STEP, script=script)
    assert (code, document["exit_code"]) == (Exit.OK, 0)


def test_the_programs_own_path_and_arguments_are_as_without_perfkit(program: Program) -> None:
    script = CALL_STEP + f"; import sys; assert not [p for p in sys.path if p == {str(INJECTED)!r}]"
    assert program.run("--tag", STEP, script=script)[1]["exit_code"] == 0


def test_python_that_ignores_the_environment_is_refused(program: Program) -> None:
    code = main(["run", "--tag", STEP, "--no-record", "--", sys.executable, "-I", "serve.py"])
    assert code == Exit.USAGE


def test_a_console_script_is_checked_with_the_python_of_its_first_line(program: Program) -> None:
    script = program.file("serve", f"#!{sys.executable}\n{SERVE}")
    script.chmod(0o755)
    code = main(["run", "--tag", "x=engine.core:absent", "--no-record", "--", str(script)])
    assert code == Exit.USAGE
    code = main(["run", "--tag", STEP, "--no-record", "--json", "--", str(script)])
    assert code == Exit.OK


def test_behind_a_shell_script_a_wrong_name_ends_the_service_when_it_is_imported(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(program.folder))
    script = program.file("start.sh", f"#!/bin/sh\nexec {sys.executable} serve.py 2> errors\n")
    script.chmod(0o755)
    code = main(["run", "--tag", "x=engine.core:absent", "--no-record", "--", str(script)])
    assert code == Exit.INVALID
    assert "Unresolved: x: engine.core has no absent" in (program.folder / "errors").read_text()
    assert main(["run", "--tag", STEP, "--no-record", "--", str(script)]) == Exit.OK


def test_a_command_that_fails_is_told_by_its_code(program: Program) -> None:
    code, document, _ = program.run("--tag", STEP, script=CALL_STEP + "; raise SystemExit(7)")
    assert (code, document["exit_code"]) == (Exit.FAILED, 7)


def test_a_command_that_is_not_there_is_a_usage_error() -> None:
    assert main(["run", "--tag", STEP, "--no-record", "--", "no-such-program"]) == Exit.USAGE


def test_a_killed_process_has_told_at_least_half_of_its_calls(program: Program) -> None:
    script = """
        import os, signal, torch
        from engine.core import Scheduler
        one = Scheduler()
        for _ in range(100):
            one.step([1])
        os.kill(os.getpid(), signal.SIGKILL)
        """
    code, document, _ = program.run("--tag", STEP, script=textwrap.dedent(script))
    assert code == Exit.FAILED
    assert document["tags"][0]["processes"][0]["calls_at_least"] == 64


def test_sigterm_reaches_the_command_and_is_a_good_end(program: Program) -> None:
    script = CALL_STEP + "; import time; print('up', flush=True); time.sleep(60)"
    command = [sys.executable, "-m", "perfkit", "run", "--tag", STEP, "--no-record", "--", sys.executable]
    running = subprocess.Popen(
        [*command, "-c", script],
        env=os.environ | {"PYTHONPATH": f"{REPOSITORY}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert running.stdout is not None and running.stdout.readline() == "up\n"
    running.send_signal(signal.SIGTERM)
    shown = running.communicate()[0]
    assert running.returncode == Exit.OK and "TAGGED" in shown


def test_counts_of_an_investigation_are_kept_as_an_artifact(
    program: Program, capfd: pytest.CaptureFixture[str]
) -> None:
    code = main(["run", "--tag", STEP, "--investigation", "kept", "--", sys.executable, "-c", CALL_STEP])
    assert code == Exit.OK
    (artifact,) = (program.folder / "kept" / "artifacts").glob("tagged-calls*.jsonl")
    assert json.loads(artifact.read_text().splitlines()[0])["tag"] == "schedule"
    assert "schedule" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "cannot be started: Exec format error"),
        ("#!", "cannot be started: "),
        ("echo served\n", "cannot be started: Exec format error"),
        ("#!/nonexistent/python3\n", "cannot be started: No such file or directory"),
        ('#!/usr/bin/env "python\n', ""),
    ],
)
def test_a_command_that_cannot_be_started_is_one_line(
    text: str, says: str, program: Program, capfd: pytest.CaptureFixture[str]
) -> None:
    script = program.file("start", text)
    script.chmod(0o755)
    code = main(["run", "--tag", STEP, "--no-record", "--", str(script)])
    said = capfd.readouterr().err
    assert code in ((2,) if says else (4, 127))
    assert says in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("import sys; sys.stdout = open('/dev/null', 'w')", 0),
        ("import os; os.dup2(os.open('/dev/null', 1), 1)", 0),
        ("import sys; sys.stdout.close()", 0),
        ("import os; os._exit(0)", 2),
        ("import os; print('{}', flush=True); os._exit(0)", 2),
    ],
)
def test_the_check_of_tags_has_an_answer_or_says_that_there_is_none(
    module: str, code: int, program: Program
) -> None:
    program.file("engine/odd.py", f"{module}\ndef f(): pass\n")
    found, _, said = program.run("--tag", "f=engine.odd:f", script="pass")
    assert (found == 2) == (code == 2), said
    assert ("it gave no answer" in said) == (code == 2)


def test_a_python_that_is_none_gives_no_answer(program: Program) -> None:
    code, _, said = program.run("--tag", STEP, "--python", "/bin/true", script="pass")
    assert (code, "(--python names the command's)" in said) == (2, True)


def test_a_helper_that_a_module_starts_is_taken_down_after_the_check(program: Program) -> None:
    starts = """
        import subprocess
        helper = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        with open("helpers", "a") as file:
            file.write(f"{helper.pid}\\n")
        def f(): pass
    """
    program.file("engine/helped.py", starts)
    assert program.run("--tag", "f=engine.helped:f", script="pass")[0] != 70
    (helper,) = (program.folder / "helpers").read_text().split()
    wait_until_gone([int(helper)])
