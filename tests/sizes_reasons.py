"""Parts that have no test of their own at boards' sizes, and why; see ``part_sizes.py``.

A reason names what runs the part at those sizes: tests as in ``docs/testplan.toml``, or a part that
it is in.
"""

__all__ = ["REASONS", "reason_of"]

WIRES = "joins parts, which have tests at these sizes"
PROVED = "its proof, or a test of every value, is of the sizes that there are"
BOARDS = "these tests run it as boards have it"
LARGE = "too large for a quick test; these tests run it as boards have it"
NONE = "no board has it; these tests run it at its default, or as large as it can be"
MODEL = "no part of a board"

REASONS = {
    WIRES: {
        "bridge.bridge.Bridge": [],
        "bridge.bridge.BridgeLane": ["bridge_bridge::test_a_role_and_the_wire_share_the_line"],
        "bridge.station.BridgeStation": [],
        "cluster.node.ClusterNode": ["cluster_node"],
        "roles.ecg.bank.PipelineBank": ["ecg_role_verilator"],
        "roles.ecg.pipeline.EcgPipeline": ["ecg_verilator"],
        "roles.array.RoleArray": ["e2e_roles"],
        "roles.ecg.role.EcgRole": ["ecg_role_verilator"],
        "shell.Shell": ["e2e_board"],
        "tcp.engine.TcpEngine": ["tcp_storm"],
    },
    PROVED: {
        **dict.fromkeys(("buffers.SkidBuffer", "realign.PacketPrepend"), ()),
        "drive.registers.DriveRegisters": (),
        **dict.fromkeys(("cluster.messages.Segmenter", "cluster.messages.Reassembler"), ()),
        **dict.fromkeys(("cluster.messages.AbortGuard", "cluster.transfer.Transfer"), ()),
        **dict.fromkeys(("ltl.pfc.PfcReceiver", "ltl.pfc.PfcSender"), ()),
        **dict.fromkeys(("net.checksum.Checksum", "net.strip.EthernetStrip"), ()),
        **dict.fromkeys(("net.frame_filter.FrameFilter", "net.vlan.VlanInsert"), ()),
        **dict.fromkeys(("net.vlan.VlanStrip", "bridge.sender.PortSender"), ()),
        **dict.fromkeys(("roles.ecg.load.PairPacker", "roles.ecg.pipeline.PairSplitter"), ()),
        **dict.fromkeys(("roles.fetch.MemoryJoin", "roles.gate.MemoryGate"), ()),
        **dict.fromkeys(("roles.packet_role.PacketRole", "roles.slot.RoleSlot"), ()),
        **dict.fromkeys(("services.mailbox_copy.ResponseCopier", "router.phit.PhitReceiver"), ()),
        **dict.fromkeys(("roles.demux.RoleDemux", "services.merge.ServiceMerge"), ()),
        "services.smp_header.RoleChoice": ["services_framer::test_a_message_names_its_role"],
        **dict.fromkeys(("router.arbiter.RoundRobin", "router.phit.PhitSender"), ()),
        **dict.fromkeys(("router.adapter.FlitsToPackets", "router.adapter.PacketsToFlits"), ()),
        **dict.fromkeys(("tcp.estimator.FixedWindow", "tcp.estimator.RttEstimator"), ()),
        **dict.fromkeys(("tcp.options.MssOption", "tcp.connect.ConnectPort"), ()),
        **dict.fromkeys(("tcp.icmp_error.IcmpErrorPort", "tcp.speck.Speck"), ()),
        "sd.clock.SdClock": ["sd_host::test_clocks_and_sample_points"],
        "sd.command.SdCommand": ["sd_host"],
        "spi_controller.SpiController": ["spi_controller"],
        "spi_flash.SpiFlash": ["spi_flash"],
        "tcp.estimator.CongestionWindow": ["tcp_estimator::test_congestion_window"],
        "tcp.classifier.SegmentClassifier": ["tcp_classifier::test_judge"],
        "tcp.window.WindowEdge": ["tcp_window"],
        "web.word_walk.WordWalk": ["web_heads::test_every_line_and_field"],
        "web.values.FieldValue": ["web_heads::test_every_line_and_field"],
    },
    BOARDS: {
        "priority_arbiter.PriorityArbiter": ["memory_waiting::test_bounds_on_waiting"],
        "bridge.fair.FairMux": ["bridge_fair::test_each_gets_half_of_the_line"],
        "bridge.listener.TapListener": ["bridge_station"],
        "cluster.caller.Caller": ["cluster_caller"],
        "cluster.server.Server": ["cluster_server"],
        "cluster.scheduler.JobScheduler": ["cluster_server"],
        "ltl.commands.Commands": ["sizes_net::test_ltl"],
        "ltl.framer.Framer": ["sizes_net::test_ltl"],
        "ltl.limiter.Limiter": ["ltl_limiter"],
        "ltl.parser.Parser": ["sizes_net::test_ltl"],
        "ltl.rate.RateControl": ["sizes_net::test_ltl", "ltl_rate"],
        "ltl.receive.Receiver": ["sizes_net::test_ltl", "ltl_receive"],
        "ltl.respond.Responder": ["sizes_net::test_ltl"],
        "ltl.send.Sender": ["sizes_net::test_ltl"],
        "multiboot.start.ConfigPort": ["multiboot_start"],
        "multiboot.start.ProgramPin": ["multiboot_start"],
        **dict.fromkeys(
            ("net.hosts.payload.PayloadSum", "net.hosts.services.HostServices"),
            ["net_hosts_services::test_the_largest_frames_and_those_of_every_length"],
        ),
        "roles.ecg.weights.WeightLoader": ["roles_ecg_configure::test_weight_port"],
        "roles.ecg.configure.WeightPort": ["roles_ecg_configure::test_weight_port"],
        "services.mailbox_copy.RequestCopier": ["services_mailbox::test_request_ends"],
        "services.session.SessionMachine": ["sizes_roles::test_echo", "sizes_roles::test_mailbox"],
        "services.sweep.RequestClock": ["services_sweep::test_request_clock"],
        "services.smp_header.SmpHeaderReader": ["sizes_roles::test_framer"],
        "router.buffer.ElasticBuffer": ["router_router", "router_adapter"],
        "router.credits.CreditCounter": ["router_router", "router_adapter"],
        "router.router.Router": ["router_router", "cluster_node"],
        "tcp.handshake.Handshake": ["tcp_conformance"],
        "tcp.reassembly.ReassemblyBlocks": ["tcp_reassembly"],
        "tcp.sender.Sender": ["tcp_sender::test_full_segments_fill_the_data_path"],
        "tcp.tx_payload.PayloadReader": ["tcp_sender::test_full_segments_fill_the_data_path"],
    },
    LARGE: {
        **dict.fromkeys(
            ("roles.ecg.correlate.Correlator", "roles.ecg.detect.Detector"), ["ecg_verilator"]
        ),
        **dict.fromkeys(("roles.ecg.dwt.DwtLevel", "roles.ecg.dwt.TwoLevelDwt"), ["ecg_verilator"]),
        **dict.fromkeys(
            ("roles.ecg.front.FaithfulFrontEnd", "roles.ecg.front.FrontEnd"), ["ecg_verilator"]
        ),
        **dict.fromkeys(
            ("roles.ecg.front.SecondFrontEnd", "roles.ecg.trace.Logarithm"), ["ecg_verilator"]
        ),
        **dict.fromkeys(
            ("roles.ecg.trace.TraceBuffer", "roles.ecg.trace.TraceStage"), ["ecg_verilator"]
        ),
        **dict.fromkeys(
            ("roles.ecg.logarithm.FeatureStage", "roles.ecg.moments.BandSums"), ["ecg_verilator"]
        ),
        **dict.fromkeys(
            ("roles.ecg.moments.ScaledSums", "roles.ecg.network.Network"), ["ecg_verilator"]
        ),
        **dict.fromkeys(
            ("roles.ecg.network.RowBuffer", "roles.ecg.pipeline.BlockCounter"), ["ecg_verilator"]
        ),
        **dict.fromkeys(
            ("roles.ecg.window.SampleReader", "roles.ecg.window.WindowStage"), ["ecg_verilator"]
        ),
        "roles.ecg.bank.VectorStore": ["roles_ecg_bank"],
        "roles.ecg.lane.EcgLane": ["ecg_role_verilator"],
        "roles.ecg.load.BlockLoader": ["ecg_role_verilator"],
        "roles.ecg.load.RecordLoader": ["ecg_stream::test_a_part_of_full_size"],
        "tcp.receive.ReceiveEngine": ["tcp_thousand", "e2e_board"],
        "tcp.record_update.RecordUpdate": ["tcp_thousand", "e2e_board"],
    },
    NONE: {
        "sd.data.SdData": ["sd_host"],
        "sd.host.SdHost": ["sd_host"],
        "sd.numbers.SdNumbers": ["sd_numbers::test_numbers"],
        **dict.fromkeys(("axi.AxiMaster", "axi_lite.AxiLiteRegisters"), ["axi", "axi_lite"]),
        "bridge.inline.InlineEngine": ["bridge_inline", "soc_inline"],
        "engines.crc32c.engine.Crc32cEngine": [
            "engines_stage",
            "engines_crc32c_engine",
            "soc_inline",
        ],
        "engines.stage.EngineStage": ["engines_stage", "soc_inline"],
        "roles.benchmark.role.BenchmarkBody": ["roles_benchmark_role"],
        "roles.benchmark.role.BenchmarkRole": ["roles_benchmark_role"],
        **dict.fromkeys(
            ("roles.burnin.lane.BurninLane", "roles.burnin.role.BurninBody"), ["roles_burnin_role"]
        ),
        "roles.burnin.role.BurninRole": ["roles_burnin_role"],
        "roles.matmul.array.LaneGroup": ["roles_matmul_verilator"],
        "roles.matmul.array.MacArray": ["roles_matmul_verilator"],
        "roles.matmul.lane.MacLane": ["roles_matmul_verilator"],
        "roles.matmul.role.MatmulRole": ["roles_matmul_verilator"],
        "roles.matmul.role.Multiplier": ["roles_matmul_verilator"],
        "roles.matmul.sequencer.Sequencer": ["roles_matmul_verilator"],
        "roles.verilog.VerilogBody": ["roles_verilog"],
        "roles.verilog.VerilogComponent": ["roles_verilog"],
        "roles.verilog.VerilogRole": ["roles_verilog"],
        "roles.verilog_example.role.AdlerRole": ["roles_verilog"],
        "router.network.Network": ["router_network"],
        "tcp.cached.CachedStore": ["tcp_cached", "scale"],
        "tcp.cookie.SynCookie": ["tcp_cookie"],
        "tcp.icmp.IcmpErrors": ["tcp_icmp"],
        "tcp.index.SessionIndex": ["tcp_index", "scale"],
        "tcp.index_cache.TupleCache": ["tcp_index_cache::test_tuple_cache"],
        "tcp.index_reader.IndexReader": ["tcp_index", "scale"],
        "tcp.index_writer.IndexWriter": ["tcp_index", "scale"],
        "tcp.lists.ListServer": ["tcp_lists", "scale"],
        "tcp.cache_transfer.CacheLineTransfer": ["tcp_cached", "scale"],
        "tcp.icmp_error.IcmpErrorUpdate": ["tcp_notices", "tcp_icmp_error"],
        "tcp.places.PlacePools": ["tcp_places::test_pools"],
        "tcp.number_stack.NumberStack": ["tcp_number_stack::test_number_stack", "scale"],
        "tcp.timer.WheelsTimerEngine": ["scale"],
        "web.finder.HeadFinder": ["web_finder"],
        "web.scan.EndScan": ["web_finder"],
        "services.pressure.Pressure": ["services_pressure"],
        "web.answer.Answer": ["web_service"],
        "web.desk.Desk": ["web_desk"],
        "web.images.Images": ["web_images"],
        "web.lane.Lane": ["web_service", "sim_web"],
        "web.lookup.Lookup": ["web_lookup"],
        "web.service.Web": ["web_service", "sim_web"],
        "web.slots.Slots": ["web_service", "sim_web"],
        "tcp.wheels.Alarm": ["tcp_wheels::test_alarm"],
        "tcp.wheels.TimerWheels": ["tcp_wheels", "scale"],
    },
    MODEL: {
        "memory_model.MemoryModel": ["memory_model"],
        "services.discard.SingleReplyService": ["sizes_roles::test_discard"],
        "roles.loopback.role.LoopbackRole": ["roles_loopback_role"],
        "roles.loopback.role.Wire": ["roles_loopback_role"],
    },
}


def reason_of(part):
    """Why there is no test of ``part`` itself, and what there is; None without a reason."""
    for why, parts in REASONS.items():
        if part in parts:
            tests = ", ".join(parts[part])
            return f"{why}: {tests}" if tests else why
    return None
