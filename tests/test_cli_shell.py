"""The command line around the commands: help, version, errors in one line, exit codes, streams."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import pytest
import typer

from layers.evidence.verdict import Exit
from parsers.errors import InvalidMeasurement, UnreadableInput
from perfkit import __version__
from perfkit.cli import app, registry
from perfkit.cli.registry import BY_NAME, COMMANDS, Command
from tests.conftest import REPOSITORY

HEAVY = ("numpy", "pandas", "matplotlib", "scipy", "msgspec", "sqlite_utils", "torch", "rich")

Calls = Callable[[Any], None]


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Logs of faults go here and not into the home of whoever runs the tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "perfkit"


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Puts a function (or Typer) in place as the only command, named `probe`."""

    def put(implementation: Any) -> None:
        module = ModuleType("perfkit.cli.probe")
        module.probe = implementation  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)
        only = (Command("probe", "A command of this test."),)
        monkeypatch.setattr(app, "COMMANDS", only)
        monkeypatch.setattr(app, "BY_NAME", {"probe": only[0]})

    return put


def raising(error: BaseException) -> Callable[[], int]:
    def probe() -> int:
        """Raise."""
        raise error

    return probe


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "perfkit", *arguments]
    options = {"capture_output": True, "text": True, "timeout": 60, "cwd": REPOSITORY, **options}
    return subprocess.run(command, **options)


def modules_after(statement: str) -> set[str]:
    """The modules that a fresh interpreter has imported after one statement."""
    code = f"import sys; from perfkit.cli import app; {statement}; print('modules:', *sys.modules)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return set(done.stdout.partition("modules: ")[2].split())


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c.name)
def test_every_registered_command_exists_and_has_help(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main([command.name, "--help"]) == Exit.OK
    assert f"perfkit {command.name}" in capsys.readouterr().out


def test_help_lists_every_command_with_its_whole_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["--help"]) == Exit.OK
    shown = capsys.readouterr().out
    assert all(f"{command.name} " in shown and command.help in shown for command in COMMANDS)


def test_help_survives_a_command_whose_module_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(app, "COMMANDS", (Command("gone", "Not written yet."),))
    assert app.main(["--help"]) == Exit.OK
    assert "Not written yet." in capsys.readouterr().out


def test_help_imports_nothing_heavy() -> None:
    assert modules_after("app.main(['--help'])").isdisjoint(HEAVY)


def test_a_command_imports_no_other_command() -> None:
    loaded = {name.removeprefix("perfkit.cli.") for name in modules_after("app.build_group('explain')")}
    assert loaded & set(BY_NAME) == {"explain"}


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["--version"]) == Exit.OK
    assert capsys.readouterr().out == f"perfkit {__version__}\n"


def test_no_arguments_show_the_help_and_are_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main([]) == Exit.USAGE
    assert capsys.readouterr().out.startswith("Usage: perfkit")


def test_a_name_close_to_a_command_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["explian"]) == Exit.USAGE
    assert "Did you mean 'explain'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["--nonsense"], ["probe", "--nonsense"], ["probe", "x"], ["probe", "--n", "x"]],
)
def test_usage_errors_are_one_line_and_exit_2(
    arguments: list[str], command: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    def probe(n: int = 1) -> int:
        """Count."""
        return n

    command(probe)
    assert app.main(arguments) == Exit.USAGE
    error = capsys.readouterr().err
    assert error.startswith("perfkit: ") and error.count("\n") == 1


@pytest.mark.parametrize("code", [None, 0, 1, 3, 4, Exit.NO_CONCLUSION])
def test_what_a_command_returns_is_the_exit_code(code: int | None, command: Calls) -> None:
    def probe() -> int | None:
        """Return."""
        return code

    command(probe)
    assert app.main(["probe"]) == int(code or 0)


def test_a_command_may_leave_by_typer_exit(command: Calls) -> None:
    command(raising(typer.Exit(3)))
    assert app.main(["probe"]) == 3


def test_a_command_with_sub_commands(command: Calls) -> None:
    group = typer.Typer()

    @group.command()
    def add(number: int) -> int:
        """Add."""
        return number

    @group.command("list")
    def list_() -> int:
        """List."""
        return 0

    command(group)
    assert app.main(["probe", "add", "3"]) == 3
    assert app.main(["probe", "remove"]) == Exit.USAGE


@pytest.mark.parametrize(
    ("error", "code"), [(UnreadableInput("no such file: x"), 2), (InvalidMeasurement("void"), 4)]
)
def test_an_error_of_the_user_is_its_message_and_its_exit_code(
    error: Exception, code: int, command: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    command(raising(error))
    assert app.main(["probe"]) == code
    assert capsys.readouterr().err == f"perfkit: {error}\n"


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt(), typer.Abort()], ids=repr)
def test_an_interrupt_exits_130_without_a_traceback(
    interrupt: BaseException, command: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    command(raising(interrupt))
    assert app.main(["probe"]) == Exit.INTERRUPTED
    assert capsys.readouterr().err.count("\n") == 1


def test_a_fault_of_perfkit_names_the_log_that_holds_the_traceback(
    command: Calls, capsys: pytest.CaptureFixture[str], cache: Path
) -> None:
    command(raising(ZeroDivisionError("three\nlines\nlong")))
    assert app.main(["probe"]) == Exit.INTERNAL
    error = capsys.readouterr().err
    (log,) = cache.iterdir()
    assert error.count("\n") == 1 and str(log) in error and "ZeroDivisionError" in error
    assert "Traceback" in log.read_text() and __version__ in log.read_text()


def test_a_fault_is_logged_in_the_temporary_folder_where_there_is_no_cache(
    command: Calls, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    command(raising(ZeroDivisionError()))
    assert app.main(["probe"]) == Exit.INTERNAL
    (log,) = tmp_path.glob("perfkit-fault-*")
    assert str(log) in capsys.readouterr().err


SLEEPER = """
import sys, time
from types import ModuleType
from perfkit import bootstrap
from perfkit.cli import app
from perfkit.cli.registry import Command

def probe() -> int:
    print("runs", flush=True)
    time.sleep(60)
    return 0

module = sys.modules["perfkit.cli.probe"] = ModuleType("perfkit.cli.probe")
module.probe = probe
app.COMMANDS = (Command("probe", "Sleep."),)
sys.argv[1:] = ["probe"]
sys.exit(bootstrap.main())
"""


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_or_sigterm_ends_the_program_with_one_line_and_130(ending: signal.Signals) -> None:
    command = [sys.executable, "-c", SLEEPER]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "runs\n"
        process.send_signal(ending)
        _, error = process.communicate(timeout=30)
    assert process.returncode == Exit.INTERRUPTED
    assert error == "perfkit: interrupted; what was recorded stays\n"


def test_a_program_that_was_started_to_ignore_sigterm_ignores_it() -> None:
    """As a supervisor may ask for it."""
    code = "import signal, sys; from perfkit import bootstrap; sys.argv[1:] = ['--version']; "
    code += "bootstrap.main(); sys.exit(signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN)"
    shell = ["sh", "-c", 'trap "" TERM; exec "$@"', "sh", sys.executable, "-c", code]
    assert subprocess.run(shell, cwd=REPOSITORY, capture_output=True).returncode == 0


def test_the_help_lists_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    app.main(["--help"])
    listed = capsys.readouterr().out.partition("Exit codes:")[2].partition("Options:")[0]
    assert {str(int(code)) for code in (*Exit, app.EXIT_PIPE_CLOSED)} == set(re.findall(r"\d+", listed))


def test_the_end_of_a_file_in_a_command_is_a_fault_and_no_interrupt(command: Calls) -> None:
    command(raising(EOFError("compressed file ended early")))
    assert app.main(["probe"]) == Exit.INTERNAL


def test_a_fault_that_cannot_be_logged_is_shown(
    command: Calls, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "cache"))
    command(raising(ZeroDivisionError()))
    assert app.main(["probe"]) == Exit.INTERNAL
    assert "Traceback" in capsys.readouterr().err


HOSTILE = "a\x1b[31m\x07\r\nb\u202e\ud800[bold red]c[/]"


@pytest.mark.parametrize(
    "arguments", [[HOSTILE], ["--" + HOSTILE], ["probe", HOSTILE], ["probe", "--n", HOSTILE]]
)
def test_control_characters_and_markup_of_the_user_are_inert_in_usage_errors(
    arguments: list[str], command: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    def probe(n: Annotated[int, typer.Option()] = 1) -> int:
        """Count."""
        return n

    command(probe)
    assert app.main(arguments) == Exit.USAGE
    assert_inert(capsys.readouterr().err)


def test_control_characters_and_markup_are_inert_in_error_messages(
    command: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    command(raising(UnreadableInput(f"cannot read {HOSTILE}")))
    app.main(["probe"])
    error = capsys.readouterr().err
    assert_inert(error)
    assert "[bold red]c[/]" in error


def assert_inert(text: str) -> None:
    assert text.endswith("\n") and text[:-1].isprintable()


def test_a_reader_that_goes_away_is_met_with_silence() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = run("--help", capture_output=False, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (app.EXIT_PIPE_CLOSED, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full, which stands in for a full disk")
def test_a_full_disk_under_stdout_is_one_line_and_exit_4() -> None:
    with open("/dev/full", "w") as full:
        done = run("--help", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == Exit.INVALID
    assert done.stderr.startswith("perfkit: cannot write the output") and done.stderr.count("\n") == 1


def test_a_terminal_without_unicode_gets_escapes() -> None:
    done = run("né", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr.count("\n")) == (Exit.USAGE, 1)


def test_command_names_are_distinct_and_their_lines_fit_the_help() -> None:
    assert len(BY_NAME) == len(COMMANDS)
    assert all(len(command.help) <= 80 - 6 - max(map(len, BY_NAME)) for command in registry.COMMANDS)
