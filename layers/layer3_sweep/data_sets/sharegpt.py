"""ShareGPT: recorded chats, as a list of conversations in one JSON file.

Of each the first turn of the human is asked, and as many tokens as the recorded answer has at 4 characters a
token. Left out, as other load generators leave them out (vLLM's and SGLang's bounds, there in tokens): what
has no answer, prompts and answers below 4 tokens, prompts above 1024, both above 2048 together.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from layers.collectors.load.item import Item
from layers.layer3_sweep.data_sets.file_set import FileSet, file_set
from layers.layer3_sweep.data_sets.jsonl import described
from layers.layer3_sweep.data_sets.options import Options
from parsers.errors import UnreadableInput
from parsers.not_json import NOT_JSON

CHARACTERS_A_TOKEN = 4
LEAST_TOKENS, MOST_PROMPT_TOKENS, MOST_TOKENS = 4, 1024, 2048
HUMAN, MODEL = frozenset({"human", "user"}), frozenset({"gpt", "assistant", "chatgpt", "bard", "bing"})


class Turn(msgspec.Struct):
    """One turn, under the names of the data set or of OpenAI."""

    said_by: str | None = msgspec.field(name="from", default=None)
    role: str | None = None
    value: str | None = None
    content: str | None = None

    @property
    def speaker(self) -> str:
        return self.said_by or self.role or ""

    @property
    def text(self) -> str:
        return self.value or self.content or ""


class Conversation(msgspec.Struct):
    """One recorded chat."""

    id: str | int | None = None
    conversations: list[Turn] = msgspec.field(default_factory=list)
    messages: list[Turn] = msgspec.field(default_factory=list)


def sharegpt_set(path: Path, options: Options) -> FileSet:
    """The data set of a file; UnreadableInput where it is none, or no conversation of it can be asked."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=list[Conversation])
    except OSError as error:
        raise UnreadableInput(f"{path}: {error.strerror}: check the path and its permissions") from error
    except NOT_JSON as error:
        raise UnreadableInput(f"{path}: no list of ShareGPT conversations: {error}") from error
    items = list(_items(found))
    if not items:
        raise UnreadableInput(f"{path}: of {len(found)} conversations none has a prompt and an answer of use")
    left_out = len(found) - len(items)
    told = f"{described(path)}, {left_out} of {len(found)} conversations left out"
    return file_set(told, items, options)


def _items(found: list[Conversation]) -> Iterator[Item]:
    for number, one in enumerate(found):
        turns = one.conversations or one.messages
        asked = next((n for n, turn in enumerate(turns) if turn.speaker in HUMAN), len(turns))
        pair = turns[asked : asked + 2]
        if len(pair) == 2 and pair[1].speaker in MODEL:
            prompt, answer = (len(turn.text) / CHARACTERS_A_TOKEN for turn in pair)
            if fits(prompt, answer):
                yield Item(f"{number}", text=pair[0].text, max_tokens=round(answer))


def fits(prompt_tokens: float, answer_tokens: float) -> bool:
    """Whether a pair is within the bounds that other load generators keep to."""
    return (
        min(prompt_tokens, answer_tokens) >= LEAST_TOKENS
        and prompt_tokens <= MOST_PROMPT_TOKENS
        and prompt_tokens + answer_tokens <= MOST_TOKENS
    )
