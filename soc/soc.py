"""The system on chip: VexRiscv, LiteDRAM, LiteEth's MAC, UART, timer, and the Trebuchet shell."""

from litex.gen import LiteXModule
from litex.soc.cores.uart import UART, RS232PHYModel
from litex.soc.integration.soc import SoCRegion
from litex.soc.interconnect import csr_bus, stream, wishbone
from litex.soc.interconnect.csr_eventmanager import EventManager, EventSourceLevel
from litex.soc.interconnect.packet import Arbiter
from migen import If, Record

from .. import __version__
from ..boards.schema import BOOT_ROM_BYTES
from ..cores.cluster.contract import WINDOW
from ..cores.ltl.config import UDP_PORT
from ..cores.net.frame_port import FramePort
from ..cores.services.mailbox_copy import REQUEST_BYTES
from ..cores.spi_controller import SpiController
from ..cores.spi_flash import SpiFlash
from ..cores.web.desk import BUFFERS
from ..models.http.image import LAYOUT
from ..models.http.limits import LIMITS
from .board_calls import attach
from .bridge import packet_description, unflipped
from .cpu import CORES
from .drive import SdSlot, stream_drive
from .fabric import FabricSoC
from .multiboot import Multiboot
from .rom import stand_in
from .slices import AnswerSlice, BusSlice, CsrBridge, CsrInterconnect
from .watchdog import Watchdog
from .words import connect_bus

__all__ = ["IrqLine", "TrebuchetSoC"]

#: Bytes of ROM for firmware that serves files of a drive (firmware/web_card.h), at least.
FILES_ROM_BYTES = 1 << 17
#: Bytes of the frame store from which on firmware answers options and fragments (firmware/host.h).
HOST_STORE = 4096


def _rom_bytes(board):
    """Return the bytes of the ROM: the boot ROM's, or the firmware's with what is linked."""
    if board.boot_rom:
        return BOOT_ROM_BYTES
    files = board.drive != "none" and board.plan.of("web")
    return max(board.rom_bytes, FILES_ROM_BYTES) if files else board.rom_bytes


class IrqLine(LiteXModule):
    """A level interrupt with LiteX's event registers (``ev_status``, ``ev_pending``, …)."""

    def __init__(self, line):
        self.ev = EventManager()
        self.ev.shell = EventSourceLevel(description="a block of the shell wants attention")
        self.ev.finalize()
        self.comb += self.ev.shell.trigger.eq(line)


class TrebuchetSoC(FabricSoC):
    """The SoC of one board: the shell, and a CPU whose firmware manages it.

    Parameters
    ----------
    board : Board
        What is built in, and how large.
    shell : wiring.Component
        The shell (``cores/shell.py``), or anything with its ports.
    directory : path
        Gateware folder of the build, where the converted Verilog goes.
    """

    def __init__(self, board, shell, directory):
        ours = CORES.get(board.cpu_variant)
        super().__init__(
            board,
            directory,
            ident=f"Trebuchet {__version__} on {board.title}",
            cpu_type="vexriscv",
            cpu_variant=ours.base if ours else board.cpu_variant,
            integrated_rom_size=_rom_bytes(board),
            integrated_sram_size=board.sram_bytes,
            uart_baudrate=board.uart_baud,
            with_uart=board.flow != "sim",
        )
        if ours:
            self.cpu.use_external_variant(str(ours.verilog))
            self.add_config("CPU_HUMAN_NAME", ours.name, check_duplicate=False)
            self.add_constant("TREBUCHET_CPU_CKSUM")  # it has the instructions of cksum.h
        if board.boot_rom and board.flow == "trellis":
            self._spare_block_rams()
        self._slice_data_bus()
        attach(board, self)
        if "main_ram" in self.bus.slaves:
            self.main_ram_slice = BusSlice(self.bus.slaves["main_ram"])
            self.bus.slaves["main_ram"] = self.main_ram_slice.bus
        if board.flow == "sim":
            self._add_sim_uart()
        self.fabric = self._convert(shell, "trebuchet_shell")
        self._add_tick()
        self._add_watchdog()
        self._add_memory(shell)
        self._add_network()
        self._add_flash()
        if board.drive != "none":
            self._add_drive(unflipped(shell.signature.members["drive"].signature))
        if board.multiboot != "none":
            self.multiboot_port = Multiboot(self, directory)
            self.add_constant("TREBUCHET_MULTIBOOT")
        self._add_registers()
        self.shell_irq = IrqLine(self.fabric.ports[("irq",)] | self.frame_port.ports[("irq",)])
        self.irq.add("shell_irq", use_loc_if_exists=True)
        self._add_constants(shell)

    def _spare_block_rams(self):
        """The CPU's small memories into LUT RAM: VexRiscv's Verilog asks for three block RAMs."""
        small = " ".join(f"*/m:{name}" for name in ("RegFilePlugin_regFile", "ways_0_tags"))
        self.platform.toolchain._yosys_cmds += [
            "hierarchy -top {build_name}",
            f'setattr -set ram_style "distributed" {small}',
        ]

    def _slice_data_bus(self):
        """A register before VexRiscv's data bus, which is LiteX's `cpu_bus1`.

        The other one needs none: an instruction goes into a register anyway.
        """
        self.data_bus_slice = AnswerSlice(self.bus.masters["cpu_bus1"])
        self.bus.masters["cpu_bus1"] = self.data_bus_slice.bus

    def add_csr_bridge(self, name="csr", origin=None, register=False):
        """As LiteX's, with registers on the way to each bank (:mod:`.slices`)."""
        bus = wishbone.Interface(self.bus.data_width, address_width=32, addressing="word")
        layout = {"address_width": self.csr.address_width, "data_width": self.csr.data_width}
        self.csr_bridge = CsrBridge(bus, csr_bus.Interface(**layout))
        self.csr_ways = CsrInterconnect(self, self.csr_bridge.csr)
        size = 4 << self.csr.address_width
        decode = self.cpu.csr_decode
        region = SoCRegion(origin=origin, size=size, cached=False, decode=decode)
        self.bus.add_slave(name=name, slave=bus, region=region)
        self.add_config("CSR_DATA_WIDTH", self.csr.data_width)
        self.add_config("CSR_ALIGNMENT", self.csr.alignment)

    def _add_sim_uart(self):
        pads = self.platform.request("uart")
        inner = Record(
            [
                (f"{side}_{name}", width)
                for side in ("source", "sink")
                for name, width in (("valid", 1), ("ready", 1), ("data", 8))
            ]
        )
        self.uart_phy = RS232PHYModel(inner)
        self.uart = UART(self.uart_phy, tx_fifo_depth=16, rx_fifo_depth=16)
        self.irq.add("uart", use_loc_if_exists=True)
        self.comb += [
            pads.tx_valid.eq(inner.source_valid),
            pads.tx_data.eq(inner.source_data),
            inner.source_ready.eq(pads.tx_ready),
            inner.sink_valid.eq(pads.rx_valid),
            inner.sink_data.eq(pads.rx_data),
            pads.rx_ready.eq(inner.sink_ready),
        ]

    def _add_registers(self):
        """One CSR region for each register block, named like the block."""
        for bank in self._banks():
            self.add_module(name=bank.block.name, module=bank)

    def _banks(self):
        owners = [self.fabric, self.frame_guard, self.host_services, self.frame_port]
        if self.board.bridge:
            owners.append(self.bridge_station)
        if self.board.flash is not None:
            owners.append(self.spi_controller)
        if self.board.multiboot != "none":
            owners.append(self.multiboot_port)
        if self.board.drive == "sd":
            owners.append(self.sd_slot)
        return [bank for owner in owners for bank in owner.banks.values()]

    def init_rom(self, name, contents=(), auto_size=True):
        """As LiteX's, which cuts a ROM down to its contents; but not on the simulated board.

        That gets other firmware, maybe longer, for each board of several (``sim/fleet``). On an
        ECP5 the firmware has a stand-in, and stays aside for :func:`~.rom.fill`.
        """
        if name == "rom" and self.board.flow == "trellis":
            self.firmware = tuple(contents)
            contents = stand_in(len(contents))
        super().init_rom(name, contents, auto_size and self.board.flow != "sim")

    def register_map(self):
        """``(block, base address)`` of every register block; complete once the SoC is finalized."""
        return [(bank.block, self.csr.regions[bank.block.name].origin) for bank in self._banks()]

    def _add_watchdog(self):
        millisecond = self.tick.millisecond
        if hasattr(self.cpu, "o_halted"):  # time stands still while a debugger holds the CPU
            millisecond = millisecond & ~self.cpu.o_halted
        self.watchdog = Watchdog(millisecond)
        self.irq.add("watchdog", use_loc_if_exists=True)
        self.comb += If(self.watchdog.restart, self.crg.rst.eq(1))

    def _share_words(self, users=2):
        ours = super()._share_words(users)
        connect_bus(self, self.whole_words.ports[0], self.board.dram_bytes)
        return ours

    def _other_frames(self, received, answers):
        width = self.board.data_width
        served = (7, 9) if self.board.udp_services else ()
        served += (UDP_PORT,) if self.board.peers else ()
        port = FramePort(width, self.board.frame_store, arp=self.board.active, served=served)
        self.frame_port = self._convert(port, "frame_port")
        addresses = self._addresses().items()
        self.comb += [self.frame_port.ports[(name,)].eq(value) for name, value in addresses]
        # Sees what the services take; neither ever waits.
        self.comb += received.connect(self.frame_port.packets["rx"], omit={"ready"})
        other_tx = stream.Endpoint(packet_description(width))
        self.other_tx = Arbiter([answers, self.frame_port.packets["tx"]], other_tx)
        return other_tx

    def _add_drive(self, port):
        if self.board.drive == "stream":
            self.comb += stream_drive(self.fabric, self.drive_pads, port)
        else:
            self.sd_slot = SdSlot(
                self.board, self.platform, self.fabric, port.width, self._directory
            )

    def _add_flash(self):
        flash = self.board.flash
        if flash is None:
            return
        half_period = flash.half_period(self.board.sys_clk_hz)
        controller = (SpiFlash if self.board.boot_rom else SpiController)(half_period)
        self.spi_controller = self._convert(controller, "spi_controller")
        ports, pads = self.spi_controller.ports, self.flash_pads
        self.comb += [
            pads.clk.eq(ports[("sck",)]),
            pads.cs_n.eq(ports[("cs_n",)]),
            pads.mosi.eq(ports[("mosi",)]),
            ports[("miso",)].eq(pads.miso),
        ]
        self.add_constant("TREBUCHET_FLASH_SIZE", flash.size)
        if self.board.boot_rom:
            self.add_constant("TREBUCHET_BOOT_ROM")
        for name, (offset, length) in flash.parts.items():
            self.add_constant(f"TREBUCHET_FLASH_{name.upper()}", offset)
            self.add_constant(f"TREBUCHET_FLASH_{name.upper()}_BYTES", length)

    def _add_web_constants(self, plan, memory, tcp):
        for service in plan.of("web"):
            self.add_constant("TREBUCHET_WEB_PORT", service.port)
            self.add_constant("TREBUCHET_WEB_MEMORY", memory["web"].base)
            self.add_constant("TREBUCHET_WEB_HALF", memory["web"].size // 2)
            self.add_constant("TREBUCHET_WEB_LAYOUT", LAYOUT)
            self.add_constant("TREBUCHET_WEB_HEADERS", BUFFERS)
            self.add_constant("TREBUCHET_WEB_RING", tcp.segment_size)
            self.add_constant("TREBUCHET_WEB_HEAD", min(LIMITS.head + 2, tcp.unread))

    def _add_constants(self, shell):
        board = self.board
        if hasattr(shell, "config"):
            plan, memory = shell.config.plan, shell.config.memory
            self.add_constant("TREBUCHET_PAGE", memory["page"].base)
            service = plan.services.index(plan.of("http")[0])
            self.add_constant("TREBUCHET_MAILBOX_SERVICE", service)
            self.add_constant("TREBUCHET_MAILBOX_PORT", plan.services[service].port)
            if plan.of("smp"):
                service = plan.services.index(plan.of("smp")[0])
                self.add_constant("TREBUCHET_SMP_SERVICE", service)
                self.add_constant("TREBUCHET_SMP_RING", shell.config.tcp.segment_size)
            self._add_web_constants(plan, memory, shell.config.tcp)
            largest = min(REQUEST_BYTES, shell.config.tcp.unread)
            self.add_constant("TREBUCHET_MAILBOX_REQUEST", largest)
        if board.flow == "sim":
            # A model has no bad cells, and the test's report takes half of the whole start.
            self.add_constant("SDRAM_TEST_DISABLE")
        self.add_constant("TREBUCHET_VERSION", __version__)
        self.add_constant("TREBUCHET_BOARD", board.name)
        self.add_constant("TREBUCHET_SESSIONS", board.sessions)
        self.add_constant("TREBUCHET_MEMORY_BASE", self.memory_map.base)
        self.add_constant("TREBUCHET_MEMORY_SIZE", self.memory_map.size)
        self.add_constant("TREBUCHET_WATCHDOG_MS", board.watchdog_ms)
        self.add_constant("TREBUCHET_LTL_PEERS", board.peers)
        self.add_constant("TREBUCHET_LTL_WINDOW", WINDOW)
        if board.programmable:
            self.add_constant("TREBUCHET_TCP_PROGRAMMABLE")
        if board.udp_services:
            self.add_constant("TREBUCHET_UDP_SERVICES")
        if board.frame_store >= HOST_STORE:
            self.add_constant("TREBUCHET_HOST")
        self.add_constant("TREBUCHET_IP", board.ip_int)
        self.add_constant("TREBUCHET_DHCP", int(board.dhcp))
        self.add_constant("TREBUCHET_DHCP_RETRY_MS", board.dhcp_retry_ms)
        self.add_constant("TREBUCHET_MAC_HIGH", board.mac_int >> 32)
        self.add_constant("TREBUCHET_MAC_LOW", board.mac_int & 0xFFFF_FFFF)
