"""The ready/valid contract: every component with a stream that goes out has a proof or a reason."""

import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from part_sizes import components
from trebuchet.cores.memory import MemorySignature
from trebuchet.cores.stream import PacketSignature
from trebuchet.formal.kit import registry, runner
from trebuchet.formal.kit.contracts import ContractProof, leaves_of, streams_of
from trebuchet.formal.kit.proof import Mutant, Proof

#: Proofs of function that state the rules on every stream of the component, too.
ELSEWHERE = {
    "arbiter.StreamArbiter": "stream_arbiter_beats",
    "bridge.fair.FairMux": "bridge_mux",
    "bridge.sender.PortSender": "bridge_sender",
    "drive.registers.DriveRegisters": "drive_registers",
    "drive.to_memory.DriveDma": "drive_dma_2",
    "engines.crc32c.engine.Crc32cEngine": "engine_crc32c_32",
    "engines.stage.EngineStage": "engine_stage_any_body",
    "roles.loopback.role.Wire": "engine_wire",
    "bridge.tap.FrameTap": "bridge_tap",
    "buffers.PacketFifo": "packet_fifo_waits",
    "buffers.SkidBuffer": "skid_buffer",
    "buffers.StreamFifo": "stream_fifo_latched",
    "memory_arbiter.MemoryArbiter": "memory_arbiter",
    "priority_arbiter.PriorityArbiter": "priority_arbiter_low",
    "write_buffer.WriteBuffer": "write_buffer",
    "net.frame_filter.FrameFilter": "frame_filter",
    "net.frame_port.FramePort": "frame_port",
    "realign.PacketPrepend": "packet_prepend",
    "realign.PacketTrim": "packet_trim",
    "roles.demux.RoleDemux": "role_demux",
    "sd.buffer.SdBuffer": "sd_buffer",
    "services.smp_board.BoardWindow": "smp_board",
    "roles.dispatch.Dispatcher": "dispatcher",
    "roles.gate.MemoryGate": "memory_gate",
    "services.merge.ServiceMerge": "service_merge",
    "services.session.SessionMachine": "session_machine",
    "net.vlan.VlanInsert": "vlan_insert_64",
    "net.vlan.VlanStrip": "vlan_strip_64",
    "tcp.lists.ListServer": "tcp_lists",
    "tcp.icmp_error.IcmpErrorPort": "tcp_icmp_error_port",
    "tcp.wheels.TimerWheels": "tcp_wheels",
}

_PARTS = "only wires: what goes out comes from parts with proofs of their own"
_STATES = "rests on what its state machine has done before: a matter for the proof of its function"
_BODY = "PacketRole with another body"
_FOREIGN = "somebody else's Verilog"

#: Components with a stream that goes out, but without this proof, and why.
EXCEPTIONS = {
    "bridge.inline.InlineEngine": _PARTS,
    "bridge.listener.TapListener": _PARTS,
    "bridge.station.BridgeStation": _PARTS,
    "cluster.messages.AbortGuard": "its input may break the rules, which is what it is for",
    "cluster.node.ClusterNode": _PARTS,
    "ltl.engine.Ltl": _PARTS,
    "ltl.ingress.Ingress": _PARTS,
    "ltl.receive.Receiver": "a word that is not taken at once is lost, as its data sheet says",
    "ltl.send.Sender": "takes a frame back when its connection is closed",
    "memory_model.MemoryModel": "a model for simulations",
    "roles.array.RoleArray": _PARTS,
    "roles.benchmark.role.BenchmarkRole": _BODY,
    "roles.burnin.role.BurninRole": _BODY,
    "services.discard.SingleReplyService": "has no reply of its own: Discard and Responder have",
    "roles.ecg.bank.PipelineBank": _PARTS,
    "roles.ecg.detect.Detector": _PARTS,
    "roles.ecg.front.FrontEnd": "what its presets have in common",
    "roles.ecg.front.SecondFrontEnd": _PARTS,
    "roles.ecg.lane.EcgLane": _STATES,
    "roles.ecg.load.RecordLoader": _STATES,
    "roles.ecg.network.Network": _STATES,
    "roles.ecg.pipeline.EcgPipeline": _PARTS,
    "roles.ecg.role.EcgRole": _PARTS,
    "roles.ecg.trace.TraceBuffer": "no mutant of it fails before its memory was filled once",
    "roles.ecg.trace.TraceStage": _STATES,
    "roles.ecg.window.WindowStage": _PARTS,
    "sd.host.SdHost": _STATES,
    "services.echo.Echo": _STATES,
    "services.framer.SmpFramer": _STATES,
    "roles.loopback.role.LoopbackRole": _BODY,
    "services.mailbox.Mailbox": _STATES,
    "roles.verilog.VerilogBody": _FOREIGN,
    "roles.verilog.VerilogComponent": _FOREIGN,
    "roles.verilog.VerilogRole": _FOREIGN,
    "roles.verilog_example.role.AdlerRole": _FOREIGN,
    "router.adapter.FlitsToPackets": _STATES,
    "shell.Shell": _PARTS,
    "tcp.cached.CachedStore": _PARTS,
    "tcp.engine.TcpEngine": _PARTS,
    "tcp.icmp.IcmpErrors": _PARTS,
    "tcp.index.SessionIndex": _PARTS,
    "tcp.cache_transfer.CacheLineTransfer": _STATES,
    "tcp.number_stack.NumberStack": "what it sends lies in a RAM; its tests check the rules",
    "tcp.receive.ReceiveEngine": _STATES,
    "tcp.sender.Sender": _STATES,
    "tcp.timer.WheelsTimerEngine": _PARTS,
    "web.finder.HeadFinder": _STATES,
    "web.lane.Lane": _PARTS,
    "web.service.Web": _STATES,
}

#: Components that no stream leaves.
WITHOUT = {
    *("ltl.limiter.Limiter", "ltl.parser.Parser", "ltl.pfc._Quanta", "ltl.pfc.PfcReceiver"),
    *("multiboot.start.ConfigPort", "multiboot.start.ProgramPin"),
    *("ltl.rate.RateControl", "net.checksum.Checksum", "net.hosts.payload.PayloadSum"),
    "net.strip.EthernetStrip",
    "services.smp_header.RoleChoice",
    *("sd.clock.SdClock", "sd.command.SdCommand", "sd.data.SdData", "sd.numbers.SdNumbers"),
    "probe.trace.TraceCore",
    "roles.burnin.lane.BurninLane",
    *("roles.ecg.correlate.Correlator", "roles.ecg.dwt.DwtLevel"),
    *("roles.ecg.dwt.TwoLevelDwt", "roles.ecg.moments.BandSums", "roles.ecg.moments.ScaledSums"),
    *("roles.ecg.network.RowBuffer", "roles.ecg.trace.Logarithm", "roles.ecg.weights.WeightLoader"),
    *("roles.ecg.window.SampleReader", "roles.matmul.array.LaneGroup"),
    *("roles.matmul.array.MacArray", "roles.matmul.lane.MacLane"),
    *("services.pressure.Pressure", "services.sweep.RequestClock", "services.sweep.Sweeper"),
    *("tcp.admission.Admission", "tcp.evict.Evictor"),
    *("roles.matmul.sequencer.Sequencer", "router.adapter.PacketsToFlits"),
    *("router.arbiter.RoundRobin", "router.buffer.ElasticBuffer", "router.credits.CreditCounter"),
    *("router.network.Network", "router.phit.PhitReceiver", "router.phit.PhitSender"),
    *("router.router.Router", "spi_controller.SpiController", "spi_flash.SpiFlash"),
    *("tcp.application.ApplicationEngine", "word_reader.WordReader"),
    *("tcp.estimator.CongestionWindow", "tcp.estimator.FixedWindow"),
    *("tcp.estimator.RttEstimator", "tcp.classifier.SegmentClassifier"),
    *(
        "tcp.cookie.SynCookie",
        "tcp.handshake.Handshake",
        "tcp.index_cache.TupleCache",
        "tcp.inspect.Inspector",
        "tcp.number_lists.NumberList",
        "tcp.options.MssOption",
        "tcp.icmp_error.IcmpErrorUpdate",
        "tcp.publish.PublishEngine",
        "tcp.record_update.RecordUpdate",
        "tcp.reassembly.ReassemblyBlocks",
        "tcp.speck.Speck",
    ),
    "tcp.places.PlacePools",
    *("tcp.store.SessionStore", "tcp.table.SessionTable", "tcp.timer.TimerEngine"),
    "tcp.wheels.Alarm",
    "tcp.window.WindowEdge",
    *("web.images.Images", "web.scan.EndScan", "web.values.FieldValue", "web.word_walk.WordWalk"),
}


def _proved():
    contracts = [proof for proof in registry.PROOFS if proof.name.startswith("contract_")]
    return {proof.core.partition("(")[0].removeprefix("cores.") for proof in contracts}


def test_every_component_is_proved_or_excused():
    proved, elsewhere = _proved(), set(ELSEWHERE) - _proved()
    lists = (proved, elsewhere, set(EXCEPTIONS), WITHOUT)
    named = set().union(*lists)
    assert sum(map(len, lists)) == len(named), "a component must be in one list"
    assert {path for path, _ in components()} == named


def test_proofs_elsewhere_exist():
    names = {proof.name for proof in registry.PROOFS}
    for name in ELSEWHERE.values():
        assert any(known.startswith(name) for known in names), name


class Both(wiring.Component):
    """Streams at every level of nesting."""

    i: In(stream.Signature(4))
    o: Out(PacketSignature(32)).array(2)
    mem: Out(MemorySignature(32, 1))
    level: Out(3)
    enable: In(1)

    def elaborate(self, platform):
        return Module()


def test_walks_the_signature():
    dut = Both()
    assert [name for name, _ in streams_of(dut, In)] == ["i", "mem_rdata", "mem_wdone"]
    assert [name for name, _ in streams_of(dut, Out)] == ["o_0", "o_1", "mem_cmd", "mem_wdata"]
    assert [name for name, _ in leaves_of(dut, In)] == ["enable"]
    assert [name for name, _ in leaves_of(dut, Out)] == ["level"]


class Flickers(wiring.Component):
    """Takes its offer back, in one of two ways, or not."""

    i: In(stream.Signature(2))
    o: Out(stream.Signature(2))

    def __init__(self, breaks):
        super().__init__()
        self.breaks = breaks

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            self.o.valid.eq(self.i.valid),
            self.o.payload.eq(self.i.payload),
            self.i.ready.eq(self.o.ready),
        ]
        if self.breaks == "valid":
            m.d.comb += self.i.ready.eq(1)
        if self.breaks == "payload":
            m.d.comb += self.o.payload.eq(self.i.payload ^ self.o.ready)
        return m


@pytest.mark.parametrize(
    ("breaks", "verdict"), [("", "proved"), ("valid", "failed"), ("payload", "failed")]
)
def test_contract_of_a_small_component(breaks, verdict, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "BUILD", tmp_path)
    proof = Proof(
        "test",
        "Flickers",
        "",
        "trebuchet.cores.stream",
        lambda _: ContractProof(Flickers(breaks)),
        depth=2,
        cover_depth=4,
        mutants=(Mutant("none", "no such text", ""),),
    )
    assert runner.run_tasks(runner.tasks_of(proof)[:1])[0].status == verdict


def test_a_proof_is_found_by_the_path_of_its_core():
    """In the same package; those that hold for any core of a kind are in packages of their own."""
    general = ("contracts", "engines", "second")
    misplaced = []
    for proof in registry.PROOFS:
        where = proof.build.__module__.split(".")[2:]
        core = proof.module.split(".")[2:]
        if where[0] not in general and core[:-1] not in (where, where[:-1]):
            misplaced.append(f"{proof.name}: {'.'.join(where)} proves {'.'.join(core)}")
    assert misplaced == []
