"""What many questions to one trace need is computed once: results that live as long as the tables they are
of.

A pure function of tables (a trace, the operations of a device) marked `@kept` remembers its result for as
long as each table exists. Tables are compared by identity, since they never change.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

Tables = ParamSpec("Tables")
Result = TypeVar("Result")


def kept(function: Callable[Tables, Result]) -> Callable[Tables, Result]:
    """Compute a function of tables, given by position, once for each combination of them."""
    results: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    @wraps(function)
    def once(*tables: Tables.args, **named: Tables.kwargs) -> Result:
        place = results
        for table in tables[:-1]:
            place = place.setdefault(table, WeakKeyDictionary())
        if tables[-1] not in place:
            place[tables[-1]] = function(*tables, **named)
        result: Result = place[tables[-1]]
        return result

    return once
