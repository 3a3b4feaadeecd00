"""Calls as methods: the same generator blocks on a ``Board`` and is awaited on an ``AsyncBoard``.

>>> class Crc32c(Role[O]):
...     @operation
...     def of(self, data: bytes) -> Call[int]:
...         (result,) = yield Batch(self.name, [data], pure=True)
...         return int.from_bytes(result, "little")
>>> Crc32c(board).of(b"123456789")               # an int
>>> await Crc32c(async_board).of(b"123456789")   # an int
"""

from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from .jobs import Call

__all__ = ["Blocks", "Operation", "Waits", "operation"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Owner = TypeVar("Owner", covariant=True)


class Blocks(Protocol):
    """What runs a call and returns its result."""

    def run(self, call: Call[T]) -> T: ...


class Waits(Protocol):
    """What runs a call and returns something to await."""

    def run(self, call: Call[T]) -> Awaitable[T]: ...


class Owned(Protocol[Owner]):
    """What has operations: roles, and boards themselves."""

    @property
    def owner(self) -> Owner: ...


class Operation(Generic[P, R, T]):
    """An operation of a role on a board or pool: call it, or give it to ``map``."""

    def __init__(self, owner: Any, plan: Callable[P, Call[T]]) -> None:
        self.owner = owner
        #: Makes the call without running it.
        self.plan = plan

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = self.owner.run(self.plan(*args, **kwargs))
        return result


class operation(Generic[P, T]):  # noqa: N801 - used as a decorator
    """Makes a method of a call: a generator function of :class:`~.jobs.Batch` es."""

    def __init__(self, function: Callable[Concatenate[Any, P], Call[T]]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, instance: None, kind: type) -> "operation[P, T]": ...
    @overload
    def __get__(self, instance: Owned[Blocks], kind: type) -> Operation[P, T, T]: ...
    @overload
    def __get__(self, instance: Owned[Waits], kind: type) -> Operation[P, Awaitable[T], T]: ...
    def __get__(self, instance: Any, kind: type) -> Any:
        if instance is None:
            return self
        bound = self.function.__get__(instance, kind)
        return Operation(instance.owner, bound)
