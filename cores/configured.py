"""Options of a plan's entry as an object of its configuration class."""

import dataclasses
from dataclasses import dataclass

from ..models.errors import TrebuchetError

__all__ = ["NoConfig", "configured", "exported"]


@dataclass(frozen=True)
class NoConfig:
    """Of what has no options."""


def configured(what, kind, options):
    """An object of the class ``kind`` with these options.

    Raises TrebuchetError, one line that begins with ``what``, for an option that the class has not,
    or a value that cannot be.
    """
    known = {field.name: field for field in dataclasses.fields(kind)}
    for name, value in options.items():
        if name not in known:
            raise TrebuchetError(
                f"{what} has no option {name!r}; it has: {', '.join(known) or 'none'}"
            )
        wanted = type(known[name].default)
        if type(value) is not wanted:
            raise TrebuchetError(
                f"{what}: option {name} must be of type {wanted.__name__}, not {value!r}"
            )
    try:
        return kind(**options)
    except ValueError as error:
        raise TrebuchetError(f"{what}: {error}") from error


def exported(module, kind, name):
    """The one class in a module's ``__all__`` whose name ends in ``kind``, ``Role`` or ``Engine``.

    Raises TrebuchetError, one line about the file of the role or engine ``name``, if there is none,
    or more than one.
    """
    found = [getattr(module, item) for item in module.__all__ if item.endswith(kind)]
    if len(found) != 1:
        what = kind.lower()
        raise TrebuchetError(
            f"the file of {what} {name!r} must export one {what}, not {len(found)}: "
            f"{module.__file__}"
        )
    return found[0]
