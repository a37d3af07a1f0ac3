"""`perfkit completion`: what the shells complete, asked of bash itself where it is there."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from perfkit.cli.app import main
from perfkit.cli.completion import Known, Option, Shell, known_commands, script
from perfkit.cli.registry import COMMANDS

FEW = [
    Known(
        "layer1",
        "Is it busy?",
        (
            Option(("--trace", "-t"), "A file.", ()),
            Option(("--format",), "It's one of these.", ("md", "html", "json")),
        ),
    ),
    Known("engine", "Start it.", (), (Known("serve", "Run it.", (Option(("--port",), "Where.", ()),)),)),
]


@pytest.fixture(scope="module")
def commands() -> list[Known]:
    return known_commands()


def completed(text: str, *words: str) -> list[str]:
    """What bash offers for the last of the words."""
    if shutil.which("bash") is None:
        pytest.skip("no bash on this machine")
    line = " ".join(f"'{word}'" for word in ("perfkit", *words))
    ask = f'COMP_WORDS=({line}); COMP_CWORD={len(words)}; _perfkit; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", f"{text}\n{ask}"], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return [word for word in done.stdout.splitlines() if word]


def test_bash_completes_commands_options_and_values() -> None:
    text = script(Shell.BASH, FEW)
    assert completed(text, "") == ["layer1", "engine", "--help", "--version"]
    assert completed(text, "la") == ["layer1"]
    assert completed(text, "layer1", "--f") == ["--format"]
    assert completed(text, "layer1", "-") == ["--trace", "-t", "--format"]
    assert completed(text, "layer1", "--format", "") == ["md", "html", "json"]
    assert completed(text, "layer1", "--format", "h") == ["html"]
    assert completed(text, "engine", "") == completed(text, "engine", "s") == ["serve"]
    assert completed(text, "engine", "serve", "--p") == ["--port"]


def test_a_word_that_is_no_option_is_left_to_the_names_of_files() -> None:
    text = script(Shell.BASH, FEW)
    assert completed(text, "layer1", "--trace", "t") == completed(text, "layer1", "t") == []
    assert "complete -o default" in text


def test_every_command_and_its_own_options_are_known(commands: list[Known]) -> None:
    assert [command.name for command in commands] == [command.name for command in COMMANDS]
    by_name = {command.name: command for command in commands}
    (formats,) = [option for option in by_name["report"].options if "--format" in option.names]
    assert formats.values == ("md", "html", "json")
    text = script(Shell.BASH, commands)
    assert "--trace" in completed(text, "layer1", "--tr") and "serve" in completed(text, "engine", "")
    assert set(completed(text, "report", "--format", "")) == {"md", "html", "json"}


def test_zsh_and_fish_get_their_own_words(commands: list[Known]) -> None:
    zsh = script(Shell.ZSH, FEW)
    assert "bashcompinit" in zsh and zsh.endswith(script(Shell.BASH, FEW))
    fish = script(Shell.FISH, FEW).splitlines()
    assert "complete -c perfkit -n __fish_use_subcommand -f -a layer1 -d 'Is it busy?'" in fish
    inside = "complete -c perfkit -n '__fish_seen_subcommand_from layer1'"
    assert f"{inside} -l format -d 'It\\'s one of these.' -x -a 'md html json'" in fish
    assert f"{inside} -l trace -s t -d 'A file.'" in fish
    assert len(script(Shell.FISH, commands).splitlines()) > 100


@pytest.mark.parametrize(("shell", "check"), [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")])
def test_the_shell_itself_can_read_its_script(shell: str, check: str, commands: list[Known]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} on this machine")
    text = script(Shell(shell), commands)
    assert subprocess.run([shell, check], input=text, text=True, capture_output=True).returncode == 0


def test_the_command_prints_the_script_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("_perfkit() {") and shown.err == ""
    assert main(["completion", "fish", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"]["word"] == "printed" and document["script"].startswith("complete -c perfkit")
    assert main(["completion", "tcsh"]) == 2
