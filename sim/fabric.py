"""The fabric top: the shell and a memory model, without CPU, as one Verilog module for the harness.

:func:`emit` takes any component of the shell's port shape:

=====================  ======  ==============================================================
member                 dir     here
=====================  ======  ==============================================================
``rx``, ``tx``         In/Out  packet streams of the link: ports ``rx_valid``, ``rx_ready``,
                               ``rx_data``, ``rx_empty``, ``rx_first``, ``rx_last``, ``rx_error``
``other_rx/other_tx``  Out/In  (optional) the same; the harness answers ARP and ping there
``mem``                Out     (optional) connected to a :class:`MemoryModel`
``tick``               In      port ``tick``
CSR blocks             In      ``rw`` registers are tied to constants, every ``ro`` register is an
                               output port ``csr_<member>_<register>``
=====================  ======  ==============================================================

Beside the Verilog it makes ``fabric_ports.h``, from which the harness knows the width, whether
there are other ports, the cycles of a nominal second, and the name of every counter.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path

from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from ..cores.memory_model import EXTERNAL_RAM_VERILOG, MemoryModel
from ..models.paths import build_folder
from ..models.plan import Plan
from ..soc.verilog import check_verilog
from .build import Source
from .caller import Caller
from .defaults import PAGE, addresses
from .flat import BEAT, FlatTop, csr_members

__all__ = ["DEFAULT", "FabricOptions", "FabricTop", "emit", "fabric_source", "fabric_with_plan"]

TOP = "trebuchet_fabric"
#: The plan of the fabric top.
DEFAULT = Plan.of_roles("ecg")
#: Cycles of a nominal second (``harness/progress.h``): with a memory, and of a component without.
NOMINAL_HZ, NOMINAL_HZ_SMALL = 400_000, 4_000_000


@dataclass(frozen=True)
class FabricOptions:
    """What the memory behind the shell is like, and how registers are set.

    Attributes
    ----------
    memory_bytes, memory_latency, memory_reorder
        Of the :class:`MemoryModel`.
    memory_init : dict
        Bytes at power-up by address, a multiple of the data path's width; zero elsewhere.
    memory_file : str or None
        A file for ``$readmemh``, in the folder in which the simulator runs, that is read then, too.
    csr : dict
        Values by register name, by the shell's member name of the register block.
    call : bool
        Frames make the TCP engine open connections (:mod:`trebuchet.sim.caller`).
    """

    memory_bytes: int = 1 << 24
    memory_latency: int = 40
    memory_reorder: bool = True
    memory_init: dict = field(default_factory=dict)
    memory_file: str | None = None
    csr: dict = field(default_factory=dict)
    call: bool = False


class FabricTop(FlatTop):
    """Flat ports around a component of the shell's shape.

    Attributes: ``counters``, a list of ``(block.register, port name)``.
    """

    def __init__(self, component, options=None):
        super().__init__(component)
        self.options = options or FabricOptions()
        members = component.signature.members
        self.streams = [s for s in ("rx", "tx", "other_rx", "other_tx") if s in members]
        for needed in ("rx", "tx", "tick"):
            if needed not in members:
                raise ValueError(f"A fabric top's component must have a member {needed!r}")
        self.width = len(component.rx.payload.data)
        self.port("tick", component.tick, False)
        for name in self.streams:
            self.stream(name, getattr(component, name), BEAT, members[name].flow is Out)
        self.counters = []
        self._add_counters()
        self._check_csr()

    def _add_counters(self):
        for member, block in csr_members(self.dut):
            for register in block.registers:
                if register.access not in ("ro", "w1c"):
                    continue
                name = f"csr_{member.removeprefix('csr_')}_{register.name}"
                self.port(name, getattr(getattr(self.dut, member), register.name), True)
                self.counters.append((f"{block.name}.{register.name}", name))

    def _check_csr(self):
        blocks = dict(csr_members(self.dut))
        opens = "csr_tcp" in blocks and "connect" in [r.name for r in blocks["csr_tcp"].registers]
        if self.options.call and not opens:
            raise ValueError("Option call needs an engine of TcpConfig(active=True)")
        for member, values in self.options.csr.items():
            if member not in blocks:
                raise ValueError(f"CSR member must be one of {sorted(blocks)}, not {member!r}")
            writable = {r.name for r in blocks[member].registers if r.access == "rw"}
            for name in values:
                if name not in writable:
                    raise ValueError(
                        f"Register of {member!r} must be one of {sorted(writable)}, not {name!r}"
                    )

    def elaborate(self, platform):
        m = super().elaborate(platform)
        if "mem" in self.dut.signature.members:
            self._connect_memory(m)
        called = self._call(m) if self.options.call else ()
        for member, block in csr_members(self.dut):
            values = self.options.csr.get(member, {})
            for register in block.registers:
                if register.access == "rw" and (member, register.name) not in called:
                    value = values.get(register.name, register.reset)
                    m.d.comb += getattr(getattr(self.dut, member), register.name).eq(value)
        return m

    def _call(self, m):
        """Add a :class:`Caller`; returns the registers that it writes."""
        m.submodules.caller = caller = Caller(self.width)
        passing, tcp = self.dut.other_rx, self.dut.csr_tcp
        m.d.comb += [
            caller.frames.valid.eq(passing.valid & passing.ready),
            caller.frames.payload.eq(passing.payload),
            caller.state.eq(tcp.connect_state),
            tcp.connect.eq(caller.connect),
        ]
        names = ("mac", "ip", "port", "local")
        m.d.comb += [getattr(tcp, f"connect_{n}").eq(getattr(caller, n)) for n in names]
        return {("csr_tcp", f"connect_{n}") for n in names}

    def _connect_memory(self, m):
        signature = self.dut.signature.members["mem"].signature
        m.submodules.memory = memory = MemoryModel(
            self.options.memory_bytes,
            signature.width,
            signature.tag_width,
            latency=self.options.memory_latency,
            reorder=self.options.memory_reorder,
            external=True,
        )
        wiring.connect(m, self.dut.mem, memory.port)


def _ram(top):
    """The storage behind the memory model, with its initial contents."""
    width, options = top.width, top.options
    lines = []
    for address, content in options.memory_init.items():
        if address % (width // 8) or address + len(content) > options.memory_bytes:
            raise ValueError(
                f"Initial contents must start at a multiple of {width // 8} and end inside the "
                f"memory, not lie at {address:#x} to {address + len(content):#x}"
            )
        for i in range(0, len(content), width // 8):
            word = int.from_bytes(content[i : i + width // 8], "little")
            lines.append(f"    mem[{(address + i) // (width // 8)}] = {width}'h{word:x};")
    if options.memory_file:
        lines.append(f'    $readmemh("{options.memory_file}", mem);')
    anchor = "  integer k;\n"
    assert anchor in EXTERNAL_RAM_VERILOG
    initial = "".join(["  initial begin\n", *(line + "\n" for line in lines), "  end\n"])
    return EXTERNAL_RAM_VERILOG.replace(anchor, anchor + initial if lines else anchor)


def emit(component, options=None):
    """Convert ``component`` (see the module's docstring); returns a :class:`.build.Source`."""
    top = FabricTop(component, options)
    text = top.verilog(TOP)
    nominal_hz = NOMINAL_HZ_SMALL
    if "mem" in component.signature.members:
        text += "\n" + _ram(top)
        nominal_hz = NOMINAL_HZ
    lines = [f"#define TREBUCHET_WIDTH {top.width}"]
    lines.append(f"#define TREBUCHET_OTHER {int('other_rx' in top.streams)}")
    lines.append(f"#define TREBUCHET_NOMINAL_HZ {nominal_hz}")
    calls = " ".join(f'X("{label}", {port})' for label, port in top.counters)
    lines.append(f"#define TREBUCHET_COUNTERS(X) {calls}")
    files = tuple(Path(path) for path in getattr(component, "verilog_files", ()))
    check_verilog(files, build_folder("tools"))
    return Source("fabric", TOP, {"top.v": text, "fabric_ports.h": "\n".join(lines) + "\n"}, files)


def fabric_source(tcp=None, csr=None, shell=None, **memory):
    """The shell with addresses set and everything switched on.

    Parameters
    ----------
    tcp : TcpConfig or None
        The TCP engine; None for 64 sessions.
    csr : dict
        Register values beside the addresses, as in :class:`~trebuchet.sim.fabric.FabricOptions`.
    shell : dict
        Further attributes of :class:`~trebuchet.cores.shell_config.ShellConfig`; its ``plan`` is
        :data:`DEFAULT` if left out.
    memory
        ``memory_latency`` and others of :class:`~trebuchet.sim.fabric.FabricOptions`.
    """
    from ..cores.shell import Shell
    from ..cores.shell_config import ShellConfig

    more = {"plan": DEFAULT, "configurable": False, **(shell or {})}  # there is no firmware
    config = ShellConfig(**({"tcp": tcp} if tcp else {}), **more)
    shell = Shell(config)
    mac, ip = addresses()
    registers = {
        "csr_shell": {
            "enable": 1,
            "mac": mac,
            "ip": ip,
            "page_length": len(PAGE),
        }
    }
    for member, values in (csr or {}).items():
        registers[member] = {**registers.get(member, {}), **values}
    options = FabricOptions(
        **{
            "memory_bytes": 1 << (config.base + config.memory.size - 1).bit_length(),
            "memory_init": {config.memory["page"].base: PAGE},
            "csr": registers,
            **memory,
        }
    )
    return replace(emit(shell, options), ready_port=7)


def fabric_with_plan(plan=None, events=False, tcp=None):
    """The shell with ``plan`` and ``tcp``, as large as on the simulated board with them.

    Left out they are the fabric's own plan, and 64 sessions or as many as fit.
    """
    from ..cores.tcp.config import TcpConfig
    from ..soc.plans import sim_board

    plan = DEFAULT if plan is None else plan
    board = sim_board(plan, tcp=tcp)
    engine = TcpConfig(
        width=board.data_width,
        sessions=board.sessions,
        cache=board.cache or None,
        segments=board.segments or None,
        places=board.places or None,
        segment_log2=board.segment_bytes.bit_length() - 1,
        trace=events,
    )
    return fabric_source(engine, shell={"plan": plan})
