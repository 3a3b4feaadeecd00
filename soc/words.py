"""External memory that is written in whole words only: modules whose chips have no byte masks.

DDR4 chips of four bits, as registered modules have them, cannot leave bytes out of a write. What
is to be written in part is read first, and written back whole. So that nobody writes the same word
in between, everybody goes through the same :class:`WholeWords`: the CPU and the shell.
"""

from litedram.common import LiteDRAMNativePort
from litedram.frontend.wishbone import LiteDRAMWishbone2Native
from litex.gen import LiteXModule
from litex.soc.integration.soc import SoCRegion
from litex.soc.interconnect import stream, wishbone
from migen import FSM, Case, Cat, If, Mux, NextState, NextValue, Replicate, Signal

__all__ = ["WholeWords", "connect_bus"]

#: Words on their way to the memory, and reads under way.
_WRITES, _READS = 8, 32


class WholeWords(LiteXModule):
    """LiteDRAM native ports onto one, whose writes have all their bytes enabled.

    ``ports`` are the users' ends, each for one user that keeps the manners of LiteDRAM's own: it
    takes a word in the one cycle in which ``rdata.valid`` is 1. A write's word is taken when it is
    there, after its command. Commands are done one after the other, so a read sees every write
    whose word was taken before it, from any port.

    A read takes a cycle more than without, a whole word's write two cycles of the commands' time;
    a partial write that, and the time of a read, in which no other command is accepted. Ports take
    turns. Reset: idle; LiteDRAM must be reset too.

    Parameters
    ----------
    native : LiteDRAMNativePort
        From ``sdram.crossbar.get_port()``.
    users : int
        Number of ports.
    """

    def __init__(self, native, users=2):
        width = native.data_width
        self.ports = ports = [
            LiteDRAMNativePort("both", native.address_width, width) for _ in range(users)
        ]
        self.words = words = stream.SyncFIFO([("data", width)], _WRITES)
        # Whose word comes next: a port's number, or `users` for what is to be written in part.
        self.owners = owners = stream.SyncFIFO([("owner", (users + 1).bit_length())], _READS)

        # A command stays in its register until LiteDRAM takes it: the word of a write is in
        # `words` by then, since LiteDRAM takes one whether there is one or not.
        offer, offered_we = Signal(), Signal()
        offered = Signal(native.address_width)
        free = Signal()
        self.comb += [
            native.cmd.valid.eq(offer),
            native.cmd.we.eq(offered_we),
            native.cmd.addr.eq(offered),
            native.cmd.last.eq(1),
            free.eq(~offer | native.cmd.ready),
            native.wdata.valid.eq(words.source.valid),
            native.wdata.data.eq(words.source.data),
            native.wdata.we.eq(Replicate(1, width // 8)),
            words.source.ready.eq(native.wdata.ready),
        ]
        self.sync += If(native.cmd.ready, offer.eq(0))

        turn = Signal(max=max(users, 2))
        asks, cmd_we, wvalid = Signal(), Signal(), Signal()
        cmd_addr = Signal(native.address_width)
        wdata, wmask = Signal(width), Signal(width // 8)
        take_cmd, take_word = Signal(), Signal()
        self.comb += Case(
            turn,
            {
                k: [
                    asks.eq(port.cmd.valid),
                    cmd_we.eq(port.cmd.we),
                    cmd_addr.eq(port.cmd.addr),
                    wvalid.eq(port.wdata.valid),
                    wdata.eq(port.wdata.data),
                    wmask.eq(port.wdata.we),
                    port.cmd.ready.eq(take_cmd),
                    port.wdata.ready.eq(take_word),
                ]
                for k, port in enumerate(ports)
            },
        )
        following = Mux(turn == users - 1, 0, turn + 1)

        addr, mask, word = Signal.like(offered), Signal.like(wmask), Signal(width)
        whole = 2 ** len(mask) - 1
        wanted = Cat(*(Replicate(bit, 8) for bit in mask))
        back = Signal()
        self.comb += [
            back.eq(native.rdata.valid & (owners.source.owner == users)),
            native.rdata.ready.eq(1),
            owners.source.ready.eq(native.rdata.valid),
            *(
                [
                    port.rdata.data.eq(native.rdata.data),
                    port.rdata.valid.eq(native.rdata.valid & (owners.source.owner == k)),
                ]
                for k, port in enumerate(ports)
            ),
        ]
        read = [NextValue(offer, 1), NextValue(offered_we, 0), owners.sink.valid.eq(1)]
        self.fsm = fsm = FSM(reset_state="COMMAND")
        fsm.act(
            "COMMAND",
            NextValue(addr, cmd_addr),
            If(
                ~asks,
                NextValue(turn, following),
            )
            .Elif(cmd_we, take_cmd.eq(1), NextState("WORD"))
            .Elif(
                free & owners.sink.ready,
                take_cmd.eq(1),
                *read,
                NextValue(offered, cmd_addr),
                owners.sink.owner.eq(turn),
                NextValue(turn, following),
            ),
        )
        fsm.act(
            "WORD",
            take_word.eq(1),
            NextValue(word, wdata),
            NextValue(mask, wmask),
            If(wvalid, NextState("READ"), If(wmask == whole, NextState("WRITE"))),
        )
        fsm.act(
            "READ",
            If(
                free & owners.sink.ready,
                *read,
                NextValue(offered, addr),
                owners.sink.owner.eq(users),
                NextState("MERGE"),
            ),
        )
        fsm.act(
            "MERGE",
            If(
                back,
                NextValue(word, (word & wanted) | (native.rdata.data & ~wanted)),
                NextState("WRITE"),
            ),
        )
        fsm.act(
            "WRITE",
            words.sink.data.eq(word),
            If(
                free & words.sink.ready,
                words.sink.valid.eq(1),
                NextValue(offer, 1),
                NextValue(offered_we, 1),
                NextValue(offered, addr),
                NextValue(turn, following),
                NextState("COMMAND"),
            ),
        )


def connect_bus(soc, port, size):
    """Give the CPU's bus its main memory through ``port``, as ``add_sdram`` would."""
    origin = soc.mem_map["main_ram"]
    soc.bus.add_region("main_ram", SoCRegion(origin=origin, size=size, mode="rwx"))
    narrow = wishbone.Interface(soc.bus.data_width, address_width=32, addressing="word")
    soc.bus.add_slave(name="main_ram", slave=narrow)
    wide = wishbone.Interface(port.data_width, address_width=32, addressing="word")
    soc.main_ram_converter = wishbone.Converter(narrow, wide)
    soc.main_ram_bridge = LiteDRAMWishbone2Native(wide, port, base_address=origin)
