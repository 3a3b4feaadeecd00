"""Objects of a folder of files, by the names under which they are served."""

import hashlib
import mimetypes
import os
from pathlib import Path

from ..errors import TrebuchetError
from .response import Object

__all__ = ["INDEX", "media_type", "media_types", "objects_of"]

#: The file that is served for its folder.
INDEX = "index.html"
_BINARY = "application/octet-stream"
#: Only the library's own table: the machine's would make tags and headers differ between machines.
_TYPES = mimetypes.MimeTypes(filenames=())
_TYPES.add_type("text/javascript", ".js")
_TYPES.add_type("font/woff2", ".woff2")
_TYPES.add_type("text/markdown", ".md")


def media_type(name):
    """Media type of a file by its name; text is said to be UTF-8."""
    found, encoding = _TYPES.guess_type(name)
    if found is None or encoding is not None:
        return _BINARY
    texts = found.startswith("text/") or found in ("application/json", "application/javascript")
    return f"{found}; charset=utf-8" if texts else found


def media_types():
    """Return :func:`media_type` of all extensions that have one, by extension, without its dot."""
    names = sorted(name.removeprefix(".") for name in _TYPES.types_map[True])
    return {name: media_type(f"x.{name}") for name in names}


def _object(path, name):
    content = path.read_bytes()
    kind = media_type(name)
    tag = hashlib.sha256(kind.encode() + b"\0" + content).digest()[:8]
    return Object(content, kind.encode(), int.from_bytes(tag, "big"))


def objects_of(folder):
    """Read all files below ``folder``; returns a dict of :class:`.response.Object` by path.

    A file ``index.html`` is also the object of its folder, whose path ends with a slash. Tags are
    hashes of media type and content. Links to folders are not followed.

    Raises
    ------
    TrebuchetError
        There is no such folder, no file in it, or a file cannot be read.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise TrebuchetError(f"{folder} is no folder; name one whose files are to be served")
    objects = {}
    try:
        for parent, folders, names in os.walk(folder, onerror=_raise):
            folders.sort()
            below = Path(parent).relative_to(folder).parts
            for name in sorted(names):
                found = _object(Path(parent) / name, name)
                objects[b"/" + "/".join((*below, name)).encode("utf-8", "surrogateescape")] = found
                if name == INDEX:
                    path = b"/" + "".join(f"{part}/" for part in below).encode()
                    objects[path] = found
    except OSError as error:
        raise TrebuchetError(f"{error.filename}: {error.strerror}") from error
    if not objects:
        raise TrebuchetError(f"{folder}: there is no file in it; name a folder with files")
    return objects


def _raise(error):
    raise error
