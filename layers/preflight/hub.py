"""Which checkpoint and which data set: where they lie, their revision, and hashes that tell them apart.

A name (`org/model`) is looked up in the Hugging Face cache and never downloaded. There a revision is a folder
`snapshots/<commit>`, and `refs/main` names the newest one that was fetched: it moves when somebody fetches
again (it did, in the middle of an investigation, and broke weight loading: Fun-ASR, sglang-omni issue 1941).
Weights are told by their names and sizes, since hashing them would take minutes; configuration, tokenizer and
index files by their content.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from layers.collectors.bounded import ProbeFailed
from layers.preflight.checkouts import read_checkout
from layers.preflight.facts import Gathering, Section

REPOSITORY_ID = re.compile(r"[\w.-]+/[\w.-]+")
SNAPSHOT = re.compile(r"/(?:models|datasets)--[^/]+/snapshots/(?P<revision>[^/]+)(?:/|$)")
CONFIG_FILES = ("config.json", "generation_config.json", "tokenizer_config.json", "preprocessor_config.json")
INDEX_FILES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.pth", "*.gguf")
MAX_HASHED_BYTES = 4 << 30
"""A longer data set is told by names and sizes: hashing it would take longer than a pre-flight may."""


def checkpoint_section(name: str, variables: Mapping[str, str] = os.environ) -> Section:
    """Path, revision and hashes of a checkpoint, given as a folder, a file or a name in the cache."""
    facts = Gathering("checkpoint")
    path = _take_place(facts, name, "models", variables)
    if path is not None:
        for file in (*CONFIG_FILES, *INDEX_FILES):
            if (path / file).is_file():
                facts.take(f"sha256.{file}", partial(file_hash, path / file))
        facts.take("weights", lambda: shape_hash(weights_of(path)))
        facts.take("weights_bytes", lambda: sum(file.stat().st_size for file in weights_of(path)))
    return facts.section()


def data_section(name: str, variables: Mapping[str, str] = os.environ) -> Section:
    """Path, revision and hash of a data set, given as a file, a folder or a name in the cache."""
    facts = Gathering("data")
    path = _take_place(facts, name, "datasets", variables)
    if path is not None:
        facts.take("content", lambda: content_hash(path))
    return facts.section()


def _take_place(facts: Gathering, name: str, kind: str, variables: Mapping[str, str]) -> Path | None:
    facts.know("named", name)
    try:
        path = locate(name, kind, variables)
    except ProbeFailed as error:
        facts.miss("path", str(error))
        return None
    facts.know("path", str(path))
    facts.take("revision", lambda: revision_of(path))
    facts.take("is_newest_fetched", lambda: is_newest_fetched(path))
    return path


def locate(name: str, kind: str, variables: Mapping[str, str] = os.environ) -> Path:
    """The real path of what is named; ProbeFailed where it is neither a path nor in the cache."""
    path = Path(name).expanduser()
    if path.is_file() or path.is_dir():
        return path.absolute()
    if path.exists():
        raise ProbeFailed(f"{name} is a pipe or a device, not a file or a folder")
    folder = hub_cache(variables) / f"{kind}--{name.replace('/', '--')}"
    main = folder / "refs" / "main"
    if not REPOSITORY_ID.fullmatch(name) or not main.is_file():
        raise ProbeFailed(f"{name} is no path, and not in the cache {hub_cache(variables)}")
    return folder / "snapshots" / main.read_text().strip()


def hub_cache(variables: Mapping[str, str]) -> Path:
    """Where huggingface_hub keeps what it fetched."""
    home = variables.get("HF_HOME") or Path(variables.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return Path(variables.get("HF_HUB_CACHE") or Path(home) / "hub").expanduser()


def revision_of(path: Path) -> str:
    """The commit of a snapshot in the cache, else that of the git checkout that the path lies in."""
    snapshot = SNAPSHOT.search(str(path))
    return snapshot["revision"] if snapshot else read_checkout(path).label


def is_newest_fetched(path: Path) -> bool | None:
    """Whether the cache's `main` names this snapshot; None outside the cache."""
    snapshot = SNAPSHOT.search(str(path))
    if snapshot is None:
        return None
    repository = Path(str(path)[: snapshot.start("revision")]).parent
    return (repository / "refs" / "main").read_text().strip() == snapshot["revision"]


def weights_of(path: Path) -> list[Path]:
    """The weight files of a checkpoint."""
    if path.is_file():
        return [path]
    return sorted(file for pattern in WEIGHTS for file in path.glob(pattern))


def content_hash(path: Path) -> str:
    """A hash of everything, or of names and sizes where there is too much; the result says which."""
    files = [path] if path.is_file() else sorted(_files_below(path))
    if sum(file.stat().st_size for file in files) > MAX_HASHED_BYTES:
        return shape_hash(files)
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{_below(file, path)}\0{file_hash(file)}\n".encode(errors="surrogateescape"))
    return f"content:{digest.hexdigest()}"


def shape_hash(files: Iterable[Path]) -> str:
    """A hash of names and sizes alone."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0{file.stat().st_size}\n".encode(errors="surrogateescape"))
    return f"names and sizes:{digest.hexdigest()}"


def file_hash(path: Path) -> str:
    """The sha256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _files_below(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        yield from (file for name in names if (file := Path(parent, name)).is_file())


def _below(file: Path, path: Path) -> str:
    return file.name if file == path else str(file.relative_to(path))
