"""The sizes of the gateware's parts: as proved, by default and on boards; and their tests.

Proofs are of small sizes. A count that is a bit too narrow, a comparison that forgets the last
place, an address that is cut off show at the sizes that boards have. ``docs/sizes.toml`` lists
these: it is made by ``python tests/part_sizes.py`` from the shells of all boards, elaborated. A
test marked with :func:`at_sizes` runs at all of them, and at the default.
"""

import ast
import dataclasses
import functools
import importlib
import inspect
import pkgutil
import tomllib
from collections import defaultdict
from pathlib import Path
from unittest.mock import patch

import pytest
import trebuchet.cores
from amaranth.hdl import Fragment
from amaranth.lib import wiring
from trebuchet import boards
from trebuchet.cores.bridge.station import BridgeStation
from trebuchet.cores.litedram_adapter import LiteDramAdapter
from trebuchet.cores.net.frame_port import FramePort
from trebuchet.cores.net.guard import FrameGuard
from trebuchet.cores.net.hosts.services import HostServices
from trebuchet.cores.shell import Shell

LIST = Path(__file__).resolve().parent.parent / "docs" / "sizes.toml"
HEAD = """\
# The sizes of the gateware's parts: of their proofs, by default, and on boards; and the tests that
# run them at the latter two, as in testplan.toml, or why there is none. Made by
# `python tests/part_sizes.py`; tests/test_sizes_list.py holds it against boards, proofs and tests.
"""
#: Parameters that are no sizes: addresses, keys, names.
NO_SIZES = {"base", "pool_base", "state_base", "slots_base", "scratch", "isn_key", "isn_start"}
NO_SIZES |= {"trace", "source", "ports", "peer", "src_loc_at", "rest"}
#: Of a configuration, times and thresholds are none either.
OF_CONFIG = {"width", "tag_width", "sessions", "segment_log2", "rx_buffer", "wheel", "mss"}
OF_CONFIG |= {"connections", "vcs", "slots", "window", "max_message", "buffer_beats", "seq_bits"}
OF_CONFIG |= {"flit_width", "buffer_flits", "reserved", "phit_width"}


def at_sizes(part, /, *, but=(), **more):
    """Parametrise a test with ``size``, a dict: each that boards have of ``part``, and the default.

    ``but``: parameters that make no difference to the test; ``more``: those without a default.
    """
    entry, sizes = listed()[part], []
    for size in (*entry["boards"], entry["default"] | more):
        size = {name: value for name, value in size.items() if name not in but}
        if size and not any(size.items() <= other.items() for other in sizes):
            sizes.append(size)
    assert sizes, f"{part} has no sizes: name those that it has no default for"
    return pytest.mark.parametrize("size", sizes, ids=_name)


def _name(size):
    return "-".join(f"{k}={v}" for k, v in size.items())


@functools.cache
def listed():
    """The list, as it is in ``docs``."""
    return tomllib.loads(LIST.read_text())


def components():
    """Every component of ``cores``, by its path."""
    root = trebuchet.cores
    for info in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
        module = importlib.import_module(info.name)
        for name, found in vars(module).items():
            own = inspect.isclass(found) and found.__module__ == info.name
            if own and issubclass(found, wiring.Component):
                yield f"{info.name.removeprefix(root.__name__ + '.')}.{name}", found


def parts():
    """Those of :func:`components` that others may use."""
    return ((path, part) for path, part in components() if not part.__name__.startswith("_"))


def of_boards():
    """Sizes by part: what the shells, and what is around them, are made of."""
    made, done = defaultdict(list), set()

    def note(part, arguments):
        size = sizes_of(arguments)
        if size not in made[part]:
            made[part].append(size)

    with _noticed(note):
        for name in boards.NAMES:
            board = boards.load_board(name)
            config = shell_config(board)
            about = (str(config), board.frame_store, board.bridge, board.dram_bytes)
            if about in done:
                continue
            done.add(about)
            _elaborate(Shell(config))
            _surroundings(board)
    return dict(made)


def shell_config(board):
    from trebuchet.soc.build import shell_config

    return shell_config(board)


def _surroundings(board):
    """What `soc/` puts around a shell, with the arguments that it gives (soc.py, fabric.py)."""
    width = board.data_width
    FramePort(width, board.frame_store, arp=board.active)
    HostServices(width, board.udp_services)
    FrameGuard(width, 60)
    if board.bridge:
        _elaborate(BridgeStation(width))
    # 16 or 32 bits of single data rate; 16 bits of DDR3 at half the clock; 64 bits of DDR4.
    native = 512 if board.flow == "vivado" else 32 if board.dram_bytes <= 32 << 20 else 128
    words = board.dram_bytes * 8 // native
    LiteDramAdapter(width, 2, native, words.bit_length() - 1)


def _elaborate(component):
    Fragment.get(component, None)


class _noticed:
    """Within it, ``note(part, arguments)`` is called for each component that is made."""

    def __init__(self, note):
        self.patches = [self._patch(path, part, note) for path, part in parts()]

    @staticmethod
    def _patch(path, part, note):
        original = part.__init__
        signature = inspect.signature(original)

        def initialise(self, *args, **kwargs):
            if type(self) is part:
                bound = signature.bind(self, *args, **kwargs)
                bound.apply_defaults()
                note(path, dict(list(bound.arguments.items())[1:]))
            original(self, *args, **kwargs)

        return patch.object(part, "__init__", initialise)

    def __enter__(self):
        for one in self.patches:
            one.start()

    def __exit__(self, *_):
        for one in self.patches:
            one.stop()


def sizes_of(arguments):
    """The numbers among a constructor's arguments; those of a configuration count as its own."""
    size = {}
    for name, value in arguments.items():
        if dataclasses.is_dataclass(value) and hasattr(value, "width"):
            fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
            size |= sizes_of({k: v for k, v in fields.items() if k in OF_CONFIG})
        elif isinstance(value, bool | int) and name not in NO_SIZES:
            size[name] = value
    return size


def default_of(part):
    """The numbers among the defaults of a constructor, and those of a configuration."""
    found = {}
    for name, parameter in list(inspect.signature(part.__init__).parameters.items())[1:]:
        if parameter.default is not inspect.Parameter.empty:
            found[name] = parameter.default
    return sizes_of(found)


def of_proofs():
    """What the proofs say of the size of each part."""
    from trebuchet.formal.kit.registry import PROOFS

    found = defaultdict(list)
    for proof in PROOFS:
        name, _, text = proof.core.partition("(")
        said = text.rpartition(")")[0]
        if said and said not in found[name.removeprefix("cores.")]:
            found[name.removeprefix("cores.")].append(said)
    return found


def of_tests():
    """Tests that are marked with :func:`at_sizes`, by part."""
    found = defaultdict(list)
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        if "at_sizes" not in (text := path.read_text()):
            continue
        for node in ast.walk(ast.parse(text)):
            for mark in getattr(node, "decorator_list", ()):
                if isinstance(mark, ast.Call) and getattr(mark.func, "id", "") == "at_sizes":
                    found[mark.args[0].value].append(
                        f"{path.stem.removeprefix('test_')}::{node.name}"
                    )
    return found


def made_list():
    """The text of ``docs/sizes.toml``."""
    from sizes_reasons import reason_of

    sizes, proofs, tests, text = of_boards(), of_proofs(), of_tests(), HEAD
    for path, part in sorted(parts(), key=lambda entry: entry[0]):
        default, on_boards = default_of(part), sizes.get(path, [])
        text += f'\n["{path}"]\nproofs = {_list(map(_text, proofs[path]))}\n'
        text += f"default = {_table(default)}\nboards = {_list(map(_table, on_boards))}\n"
        if tests[path]:
            text += f"tests = {_list(map(_text, tests[path]))}\n"
        else:
            text += f"reason = {_text(reason_of(path) or 'none')}\n"
    return text


def _text(value):
    return "'" + value + "'" if "'" not in value else '"' + value.replace('"', "'") + '"'


def _table(size):
    values = ", ".join(f"{k} = {str(v).lower()}" for k, v in size.items())
    return f"{{ {values} }}" if values else "{}"


def _list(items):
    items = list(items)
    return "[" + "".join(f"\n    {item}," for item in items) + ("\n]" if items else "]")


if __name__ == "__main__":
    LIST.write_text(made_list())
