"""The shell's memory port on LiteDRAM."""

from litex.gen import LiteXModule
from litex.soc.interconnect.stream import Buffer
from migen import log2_int

from ..cores.litedram_adapter import LiteDramAdapter
from ..cores.memory import MemorySignature
from .bridge import AmaranthModule, struct_fields

__all__ = ["DramPort"]


class DramPort(LiteXModule):
    """Connects one memory port of a bridged component to a LiteDRAM native port.

    The order that the port's rule 5 asks for holds across all requesters because they
    share this one native port and because an address has one bank; see
    :mod:`trebuchet.cores.litedram_adapter`, which also says what holds towards the CPU's port.

    Parameters
    ----------
    platform, directory
        As for :class:`~trebuchet.soc.bridge.AmaranthModule`.
    native : LiteDRAMNativePort
        From ``sdram.crossbar.get_port()``.
    size : int
        Bytes of the memory that are used: where addresses wrap, as the CPU's do.
    requester : AmaranthModule
        The component that has the port.
    member : str
        Name of the port in its signature.
    signature : MemorySignature
        The port's signature.
    name : str
        Name of the adapter's Verilog module; two ports of one design need two names.
    """

    def __init__(
        self,
        platform,
        native,
        size,
        requester,
        member,
        signature,
        directory,
        name="litedram_adapter",
    ):
        adapter = LiteDramAdapter(
            width=signature.width,
            tag_width=signature.tag_width,
            native_width=native.data_width,
            addr_width=min(native.address_width, log2_int(size * 8 // native.data_width)),
        )
        side = adapter.signature.members["native"].signature
        self.adapter = AmaranthModule(platform, adapter, name, directory)
        self._connect_requester(requester, member, signature)
        ports = self.adapter.ports

        cmd = struct_fields(ports["native", "cmd", "payload"], side.cmd_layout)
        wdata = struct_fields(ports["native", "wdata", "payload"], side.wdata_layout)
        self.comb += [
            native.cmd.valid.eq(ports["native", "cmd", "valid"]),
            native.cmd.we.eq(cmd["we"]),
            native.cmd.addr.eq(cmd["addr"]),
            native.cmd.last.eq(1),
            ports["native", "cmd", "ready"].eq(native.cmd.ready),
            native.wdata.valid.eq(ports["native", "wdata", "valid"]),
            native.wdata.data.eq(wdata["data"]),
            native.wdata.we.eq(wdata["we"]),
            ports["native", "wdata", "ready"].eq(native.wdata.ready),
            ports["native", "rdata", "valid"].eq(native.rdata.valid),
            ports["native", "rdata", "payload"].eq(native.rdata.data),
            native.rdata.ready.eq(ports["native", "rdata", "ready"]),
        ]

    def _connect_requester(self, requester, member, signature):
        if not isinstance(signature, MemorySignature):
            raise TypeError(f"Member {member!r} must have a MemorySignature, not {signature!r}")
        theirs, ours = requester.ports, self.adapter.ports
        for stream in ("cmd", "wdata"):
            self._through_registers(
                *(
                    {name: ports[(end, stream, name)] for name in ("valid", "payload", "ready")}
                    for ports, end in ((theirs, member), (ours, "mem"))
                )
            )
        for stream in ("rdata", "wdone"):
            for name in ("valid", "payload", "ready"):
                there, here = theirs.get((member, stream, name)), ours.get(("mem", stream, name))
                if there is None or here is None:
                    continue  # a tag of no bits leaves `wdone` without a payload
                self.comb += here.eq(there) if name == "ready" else there.eq(here)

    def _through_registers(self, source, sink):
        """The memory's ``ready`` goes to every requester of the shell: it starts at a register."""
        buffer = Buffer([("data", len(source["payload"]))], pipe_valid=True, pipe_ready=True)
        self.submodules += buffer
        self.comb += [
            buffer.sink.valid.eq(source["valid"]),
            buffer.sink.data.eq(source["payload"]),
            source["ready"].eq(buffer.sink.ready),
            sink["valid"].eq(buffer.source.valid),
            sink["payload"].eq(buffer.source.data),
            buffer.source.ready.eq(sink["ready"]),
        ]
