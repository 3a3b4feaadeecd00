"""The firmware's portable files compiled for this machine, with the sanitizers' checks."""

import ctypes
import subprocess
from pathlib import Path

from trebuchet.models.http.c_header import store_header
from trebuchet.soc.firmware import (
    build_header,
    front_page_header,
    status_codes_header,
    web_header,
)

FIRMWARE = Path(__file__).resolve().parent.parent / "firmware"
WARNINGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror")


class Text(ctypes.Structure):
    """``struct text``."""

    _fields_ = [
        ("start", ctypes.c_char_p),
        ("length", ctypes.c_size_t),
        ("room", ctypes.c_size_t),
        ("overflow", ctypes.c_bool),
    ]


def new_text(room):
    """``(buffer, text)``, the text empty."""
    buffer = ctypes.create_string_buffer(room)
    return buffer, Text(ctypes.cast(buffer, ctypes.c_char_p), 0, room, False)


def generated(folder):
    """Write the generated headers that portable files include; returns the include folder."""
    (folder / "generated").mkdir(parents=True, exist_ok=True)
    (folder / "generated" / "trebuchet_status_codes.h").write_text(status_codes_header())
    (folder / "generated" / "trebuchet_build.h").write_text(build_header([]))
    (folder / "generated" / "trebuchet_front_page.h").write_text(front_page_header())
    (folder / "generated" / "trebuchet_store.h").write_text(store_header())
    (folder / "generated" / "trebuchet_web.h").write_text(web_header())
    (folder / "generated" / "soc.h").touch()
    return folder


def compile_library(folder, names, extra=""):
    """``firmware/NAME.c`` of all names, and the C text ``extra``: the path of a shared library.

    Undefined behaviour ends the process. (ASan would have to be loaded before Python: the fuzz
    drivers have it.)
    """
    (folder / "extra.c").write_text(extra)
    sources = [FIRMWARE / f"{name}.c" for name in names] + [folder / "extra.c"]
    flags = [*WARNINGS, "-O1", "-fPIC", "-shared"]
    flags += ["-fsanitize=undefined", "-fno-sanitize-recover=undefined", "-static-libubsan"]
    flags += [f"-I{generated(folder)}", f"-I{FIRMWARE}"]
    path = folder / "firmware.so"
    subprocess.run(["gcc", *flags, "-o", path, *sources], check=True)
    return path


def shared_library(folder, names, extra=""):
    """:func:`compile_library`, loaded for ctypes."""
    return ctypes.CDLL(str(compile_library(folder, names, extra)))
