"""Puts ranges around functions of the program that this interpreter runs, for `perfkit run --tag`.

The folder of this file stands first on PYTHONPATH, so every Python that the command starts imports it on its
way up, spawned children too; forked ones have it from their parent. It stands alone: the standard library of
any Python from 3.8 on, and nothing of perfkit. A function is wrapped when its module has just been executed,
before anybody can take the unwrapped one. Each call then is a range of torch.profiler (record_function) and
of NVTX, called `name` or `name[batch=N]`. torch is used if the program has imported it and never imported
from here; without it NVTX alone is used, through libnvToolsExt. A `sitecustomize` of the environment's own
still runs, after this one.

What to wrap comes in PERFKIT_TAGS: {"tags": [{"name", "module", "attribute", "batch"}], "report": path}. How
often each was called is appended to the report, at the calls 1, 2, 4, 8, … and at a regular end, so that a
process that is killed has said at least half of its count.

    PYTHON sitecustomize.py FIRST-FOLDER-ON-THE-PATH

run as a script it only checks: imports the modules, wraps, measures a call, and prints what it found.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import importlib
import importlib.machinery
import importlib.util
import itertools
import json
import os
import sys
import time
from typing import Any

CONFIG = "PERFKIT_TAGS"
HERE = os.path.dirname(os.path.abspath(__file__))
NVTX_LIBRARY = "libnvToolsExt.so.1"

SUSPENDED = 0x20 | 0x80 | 0x200
"""Flags of a code object: generator, coroutine, asynchronous generator (inspect.CO_*)."""
VARARGS, VARKEYWORDS = 0x04, 0x08

MEASURED_CALLS = 2000
MEASURED_ROUNDS = 5


class Unresolved(Exception):
    """A tag that names nothing that can be wrapped."""


class Ranges:
    """Opens and closes ranges with what this process has: torch, NVTX, both, or nothing (yet)."""

    def __init__(self) -> None:
        self.record: Any = None
        self.nvtx: Any = library_nvtx()
        self.settled = False

    def look(self) -> None:
        """Use torch from when the program has imported it; NVTX alone serves until then."""
        torch = sys.modules.get("torch")
        record = getattr(getattr(torch, "profiler", None), "record_function", None)
        if record is not None:
            self.record, self.settled = record, True
            self.nvtx = torch_nvtx(torch) or self.nvtx

    @property
    def kind(self) -> str:
        parts = ["record_function"] * bool(self.record) + ["nvtx"] * bool(self.nvtx)
        return " + ".join(parts) or "nothing"


def torch_nvtx(torch: Any) -> Any:
    """torch's own push and pop, where its build has them."""
    nvtx: Any = getattr(getattr(torch, "cuda", None), "nvtx", None)
    try:
        nvtx.range_push("perfkit")
        nvtx.range_pop()
    except (AttributeError, RuntimeError):
        return None
    return nvtx.range_push, nvtx.range_pop


def library_nvtx() -> Any:
    """Push and pop of the shared library, where there is one."""
    try:
        library = ctypes.CDLL(NVTX_LIBRARY)
        push, pop = library.nvtxRangePushA, library.nvtxRangePop
    except (OSError, AttributeError):
        return None
    return lambda label: push(label.encode()), pop


RANGES = Ranges()


class Tag:
    """One function to wrap, and what is known of its calls in this process."""

    def __init__(self, name: str, module: str, attribute: str, batch: str, report: str) -> None:
        self.name, self.module, self.attribute, self.batch = name, module, attribute, batch
        self.report = report
        self.forget()

    def forget(self) -> None:
        """Begin to count anew: a forked child is a process of its own."""
        self.calls = itertools.count(1)
        self.called = 0
        self.batch_failures = 0
        self.batch_problem = ""

    def wrap_in(self, module: Any) -> None:
        """Replace the function in its module or class."""
        owner = module
        *path, last = self.attribute.split(".")
        for part in path:
            owner = getattr(owner, part, None)
        found = stored(owner, last)
        if found is None:
            raise Unresolved(f"{self.name}: {self.module} has no {self.attribute}")
        kind = type(found) if isinstance(found, (staticmethod, classmethod)) else None
        wrapper = self.wrapped(found.__func__ if kind else found)
        setattr(owner, last, kind(wrapper) if kind else wrapper)

    def wrapped(self, function: Any) -> Any:
        """The function with a range around each call."""
        self._refuse_unfit(function)
        batch_of = self._batch_function(function) if self.batch else None

        @functools.wraps(function)
        def with_range(*args: Any, **kwargs: Any) -> Any:
            label = self.begin(batch_of, args, kwargs)
            marker = RANGES.record(label) if RANGES.record else None
            nvtx = RANGES.nvtx
            if marker is not None:
                marker.__enter__()
            if nvtx is not None:
                nvtx[0](label)
            try:
                return function(*args, **kwargs)
            finally:
                if nvtx is not None:
                    nvtx[1]()
                if marker is not None:
                    marker.__exit__(None, None, None)

        return with_range

    def begin(self, batch_of: Any, args: Any, kwargs: Any) -> str:
        """Count a call; what its range is called."""
        number = self.called = next(self.calls)
        if not RANGES.settled:
            RANGES.look()
        label = self.name if batch_of is None else self._label(batch_of, args, kwargs)
        if number & (number - 1) == 0:
            self.tell()
        return label

    def tell(self) -> None:
        """Append this process's count to the report."""
        record = {
            "tag": self.name,
            "pid": os.getpid(),
            "calls": self.called,
            "ranges": RANGES.kind,
            "batch_failures": self.batch_failures,
            "batch_problem": self.batch_problem,
        }
        append(self.report, record)

    def tell_last(self) -> None:
        """The whole count, where the interpreter ends in order."""
        if self.called:
            self.tell()

    def _refuse_unfit(self, function: Any) -> None:
        if not callable(function) or isinstance(function, type):
            raise Unresolved(f"{self.name}: {self.attribute} is no function")
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & SUSPENDED:
            why = "is suspended between its steps, and its range would cover what others do meanwhile"
            raise Unresolved(f"{self.name}: {self.attribute} {why}")

    def _batch_function(self, function: Any) -> Any:
        """The user's batch expression as a function of the same parameters."""
        source = f"lambda {parameters(getattr(function, '__code__', None))}: ({self.batch})"
        try:
            made = eval(source, getattr(function, "__globals__", {}))
        except SyntaxError as error:
            raise Unresolved(f"{self.name}: --batch {self.batch}: {error.msg}") from error
        made.__defaults__ = getattr(function, "__defaults__", None)
        made.__kwdefaults__ = getattr(function, "__kwdefaults__", None)
        return made

    def _label(self, batch_of: Any, args: Any, kwargs: Any) -> str:
        """`name[batch=N]`; the bare name where the expression fails or is no whole number.

        A tensor is none: turning it into a number would wait for the device.
        """
        try:
            size = batch_of(*args, **kwargs)
            if isinstance(size, int) or type(size).__module__ == "numpy":
                return f"{self.name}[batch={int(size)}]"
            problem = f"it is a {type(size).__name__}, not a whole number"
        except Exception as error:  # whatever the user's expression raises must not reach the service
            problem = f"{type(error).__name__}: {error}"
        self.batch_failures += 1
        self.batch_problem = self.batch_problem or problem
        return self.name


def stored(owner: Any, name: str) -> Any:
    """The attribute as it is stored, so that a static or class method is seen as one; None without it."""
    for place in getattr(owner, "__mro__", (owner,)):
        if name in getattr(place, "__dict__", {}):
            return place.__dict__[name]
    return None


def parameters(code: Any) -> str:
    """The parameters of a function as source text; anything goes where it has no Python code."""
    if code is None:
        return "*args, **kwargs"
    names = list(code.co_varnames)
    positional, keyword = code.co_argcount, code.co_kwonlyargcount
    parts = names[:positional]
    if code.co_posonlyargcount:
        parts.insert(code.co_posonlyargcount, "/")
    rest = positional + keyword
    if code.co_flags & VARARGS:
        parts.append("*" + names[rest])
        rest += 1
    elif keyword:
        parts.append("*")
    parts += names[positional : positional + keyword]
    if code.co_flags & VARKEYWORDS:
        parts.append("**" + names[rest])
    return ", ".join(parts)


def append(path: str, record: dict[str, Any]) -> None:
    """One line in one write, since processes share the file. One that fails costs the service nothing."""
    if not path:
        return
    try:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, (json.dumps(record) + "\n").encode())
        finally:
            os.close(file)
    except OSError as error:
        sys.stderr.write(f"perfkit: a count of tagged calls was not written: {error}\n")


class Hook:
    """Finds nothing itself; sees to it that a tagged module is wrapped as soon as it has been executed."""

    def __init__(self, tags: list[Tag]) -> None:
        self.of_module: dict[str, list[Tag]] = {}
        for tag in tags:
            self.of_module.setdefault(tag.module, []).append(tag)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname not in self.of_module:
            return None
        others = (finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec"))
        specs = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            self._wrap_after(spec.loader, fullname)
        return spec

    def wrap(self, module: Any) -> None:
        for tag in self.of_module[module.__name__]:
            tag.wrap_in(module)

    def _wrap_after(self, loader: Any, fullname: str) -> None:
        """Let this one loader object wrap what it executes; its type and all else stay as they are."""
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            if module.__name__ == fullname:
                self.wrap(module)

        loader.exec_module = exec_module


def install() -> list[Tag]:
    """Set the hook, and wrap what was imported before this file."""
    config = json.loads(os.environ[CONFIG])
    tags = [Tag(report=config["report"], **tag) for tag in config["tags"]]
    hook: Any = Hook(tags)
    sys.meta_path.insert(0, hook)
    for name in hook.of_module:
        if name in sys.modules:
            hook.wrap(sys.modules[name])
    for tag in tags:
        os.register_at_fork(after_in_child=tag.forget)
        atexit.register(tag.tell_last)
    return tags


def run_the_next_one() -> None:
    """Run the sitecustomize that would have been imported if this one were not here, if there is any."""
    sys.modules["perfkit_sitecustomize"] = sys.modules[__name__]
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def check(first_folder: str) -> None:
    """Import and wrap everything as the command would, and say what came of it as one line of JSON."""
    answer = os.dup(1)  # a module may send sys.stdout, or its descriptor, elsewhere
    sys.path[0] = first_folder
    problems = [problem for tag in install() for problem in problems_of(tag)]
    if importlib.util.find_spec("torch") is not None:
        importlib.import_module("torch")
    RANGES.look()
    document = {"problems": problems, "ranges": RANGES.kind, "cost_ns": cost_ns()}
    os.write(answer, f"\n{json.dumps(document)}\n".encode())
    os._exit(0)  # an engine's modules may have started threads


def problems_of(tag: Tag) -> list[str]:
    """Why a tag cannot be set; nothing where it can. Importing a module may do anything, exit included."""
    try:
        importlib.import_module(tag.module)
    except Unresolved as error:
        return [str(error)]
    except BaseException as error:
        return [f"{tag.name}: importing {tag.module} failed: {type(error).__name__}: {error}"]
    return []


def cost_ns() -> list[float]:
    """What a range adds to a call, in ns: one value a round, the batch expression not counted."""

    def plain() -> None:
        pass

    tagged = Tag("perfkit cost", "", "", "", "").wrapped(plain)
    return [(timed(tagged) - timed(plain)) / MEASURED_CALLS for _ in range(MEASURED_ROUNDS)]


def timed(function: Any) -> int:
    began = time.perf_counter_ns()
    for _ in range(MEASURED_CALLS):
        function()
    return time.perf_counter_ns() - began


if __name__ == "__main__":
    check(sys.argv[1])
elif CONFIG in os.environ:
    try:
        install()
    finally:
        run_the_next_one()
