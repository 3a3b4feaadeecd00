"""Roles as clients use them: bytes to bytes for any, and typed calls where a role has some.

The typed calls of a role ``NAME`` are a subclass of :class:`Role`, the only one that a module
defines. That module is, the first one found:

1. ``client.py`` in the role's folder, if :func:`trebuchet.models.role_folders.add_roles` was told
   of it: it lies beside the ``role.py`` of the gateware;
2. ``trebuchet/client/roles/NAME.py``, for the roles of the tree;
3. an entry point ``NAME`` of the group ``trebuchet.roles``: a module of any installed package.
"""

import importlib
import importlib.metadata
import importlib.util
import re
import sys
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Generic, TypeVar, overload

from ..models.role_folders import is_own, role_folder
from .errors import BoardError, MissingPackage
from .jobs import Batch, Call
from .operation import Blocks, Waits, operation

__all__ = ["GROUP", "O", "Role", "typed_calls"]

O = TypeVar("O", covariant=True)  # noqa: E741 - the owner
#: Entry points by which packages bring typed calls.
GROUP = "trebuchet.roles"
_NAME = re.compile(r"[a-z][a-z0-9_]*")


class Role(Generic[O]):
    """A role of a board or pool.

    Parameters
    ----------
    owner : Board, AsyncBoard, Pool or AsyncPool
        Where it is.
    name : str or None
        What the board calls it; left out: :attr:`kind`. None: the role of the TCP port.

    Attributes
    ----------
    kind : str
        Of a subclass: the usual name of the role.
    pure : bool
        Of a subclass: results depend on the operands alone, so that jobs may be repeated.
    """

    kind: ClassVar[str | None] = None
    pure: ClassVar[bool] = False

    def __init__(self, owner: O, name: str | None = "") -> None:
        self._owner = owner
        self.name = self.kind if name == "" else name

    @property
    def owner(self) -> O:
        return self._owner

    @operation
    def call(self, data: bytes, *, pure: bool | None = None) -> Call[bytes]:
        """The result of one job. ``pure``: it may be repeated; None: as the role's calls say."""
        repeatable = self.pure if pure is None else pure
        (result,) = yield Batch(self.name, [data], pure=repeatable)
        return result

    @overload
    def stream(
        self: "Role[Blocks]", data: Iterable[bytes], *, ordered: bool = True, pure: bool = False
    ) -> Iterator[bytes]: ...
    @overload
    def stream(
        self: "Role[Waits]",
        data: Iterable[bytes] | AsyncIterable[bytes],
        *,
        ordered: bool = True,
        pure: bool = False,
    ) -> AsyncIterator[bytes]: ...
    def stream(self: Any, data: Any, *, ordered: bool = True, pure: bool = False) -> Any:
        """Results of the jobs of an iterator, which is read only as far as jobs are under way.

        ``ordered``: in the order of the operands, else as they come.
        """
        return self.owner.map(_Repeatable(self, pure), data, ordered=ordered)


class _Repeatable:
    """:meth:`Role.call` with its option."""

    def __init__(self, role: Any, pure: bool) -> None:
        self.role, self.pure = role, pure

    def plan(self, data: bytes) -> Call[bytes]:
        made: Call[bytes] = self.role.call.plan(data, pure=self.pure or None)
        return made


def typed_calls(name: str) -> type[Role[Any]] | None:
    """The class with the typed calls of the role ``name``; None if there is none."""
    if not _NAME.fullmatch(name):
        return None
    if is_own(name) and (path := role_folder(name) / "client.py").is_file():
        return _only_class(_load(name, path), name)
    module = f"{__package__}.roles.{name}"
    if importlib.util.find_spec(module) is not None:
        return _only_class(_imported(module, name), name)
    for point in importlib.metadata.entry_points(group=GROUP, name=name):
        return _only_class(_imported(point.module, name), name)
    return None


def _imported(module: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package == "trebuchet" or error.name == module:
            raise
        raise MissingPackage(
            f"the calls of role {name!r} need the Python package {package!r}; install it with: "
            f"pip install 'trebuchet[models]', or use role({name!r}).call(data) with bytes"
        ) from error


def _load(name: str, path: Path) -> ModuleType:
    """The module of a user's file; kept, so that a role's calls are one class."""
    module = f"trebuchet_clients.{name}"
    found = sys.modules.get(module)
    if found is not None and found.__file__ == str(path):
        return found
    spec = importlib.util.spec_from_file_location(module, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(made)
    except Exception as error:  # a fault of the user's file, which may be any
        raise BoardError(
            f"the calls of role {name!r} cannot be loaded from {path}: "
            f"{type(error).__name__}: {error}"
        ) from error
    sys.modules[module] = made
    return made


def _only_class(module: ModuleType, name: str) -> type[Role[Any]]:
    own = [
        found
        for found in vars(module).values()
        if isinstance(found, type)
        and issubclass(found, Role)
        and found.__module__ == module.__name__
    ]
    if len(own) != 1:
        raise BoardError(
            f"{module.__file__} must define one class derived from trebuchet.client.Role for role "
            f"{name!r}, not {len(own)}"
        )
    return own[0]
