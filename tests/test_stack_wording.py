"""Files and frames in text: from the package on, the last folders, without those there is no room for."""

from __future__ import annotations

import pytest

from layers.layer2_stacks.model import Part
from layers.layer2_stacks.wording import called_from, frame_in, place, short_path
from tests.stack_builders import stack
from tests.test_stack_analysis import analysed, only

SITE = "/opt/venv/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (f"{SITE}/torch/nn/modules/module.py:1511", "torch/nn/modules/module.py:1511"),
        ("/usr/lib/python3.11/threading.py:327", "threading.py:327"),
        ("/home/me/src/engine/stages/staging.py:58", "…/engine/stages/staging.py:58"),
        ("/srv/app/batch.py:31", "/srv/app/batch.py:31"),
        ("engine/stages/deep/down/staging.py", "engine/stages/deep/down/staging.py"),
        ("<frozen importlib._bootstrap>:241", "<frozen importlib._bootstrap>:241"),
        ("libc.so.6", "libc.so.6"),
    ],
)
def test_a_path_says_which_file_and_not_where_it_is_installed(path: str, shown: str) -> None:
    assert short_path(path) == shown


@pytest.mark.parametrize(
    ("room", "shown"),
    [
        (None, "…/engine/stages/staging.py:58 (read)"),
        (36, "…/engine/stages/staging.py:58 (read)"),
        (35, "…/stages/staging.py:58 (read)"),
        (28, "…/staging.py:58 (read)"),
        (1, "…/staging.py:58 (read)"),
    ],
)
def test_whole_folders_go_where_there_is_no_room(room: int | None, shown: str) -> None:
    assert place("/home/me/src/engine/stages/staging.py:58", "read", room) == shown


@pytest.mark.parametrize(
    ("name", "room", "shown"),
    [
        ("Staging.read (/a/b/c/stages/staging.py:58)", None, "Staging.read (…/c/stages/staging.py:58)"),
        ("Staging.read (/a/b/c/stages/staging.py:58)", 38, "Staging.read (…/stages/staging.py:58)"),
        ("Queue.get (/usr/lib/python3.11/queue.py:171)", None, "Queue.get (queue.py:171)"),
        ("start_thread", 3, "start_thread"),
    ],
)
def test_a_frame_keeps_its_function(name: str, room: int | None, shown: str) -> None:
    assert frame_in(name, room=room) == shown


def test_a_caller_in_the_file_of_its_line_has_its_line_alone() -> None:
    """The path stands in front of it already."""
    own = "/home/me/src/engine/stages/staging.py"
    (row,) = only(analysed(stack(f"Staging.take {own} 9;Staging.read {own} 58", 9))).lines
    assert row.callers == (Part(f"Staging.take ({own}:9)", 9),)
    assert called_from(row) == " from Staging.take, line 9"
    (row,) = only(analysed(stack(f"Staging.take {own} 9;wait /usr/lib/python3.11/threading.py 629", 9))).lines
    assert called_from(row) == " from Staging.take (…/engine/stages/staging.py:9)"
