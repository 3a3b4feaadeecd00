package trebuchet

import spinal.core._
import spinal.lib._
import vexriscv._
import vexriscv.ip.InstructionCacheConfig
import vexriscv.plugin._

/** Generates the processors of Trebuchet: VexRiscv with [[ChecksumPlugin]], two configurations.
  *
  * `TrebuchetCore FOLDER NAME ICACHE_BYTES …`: for each pair the file `FOLDER/NAME.v`, without
  * instruction cache where that has 0 bytes.
  *
  * Without cache it is what LiteX calls `minimal` (RV32I, no bypass of results, no prediction), else
  * what it calls `lite` (RV32IM, iterative; bypass, static prediction). Module and ports are those that
  * LiteX's wrapper of VexRiscv instantiates.
  */
object TrebuchetCore {
  def main(args: Array[String]): Unit = {
    for (Array(name, bytes) <- args.tail.grouped(2)) {
      // The settings of LiteX's cores: synchronous reset, synchronous memories in block RAM.
      vexriscv.SpinalConfig
        .copy(targetDirectory = args.head, netlistFileName = name + ".v")
        .generateVerilog(core(bytes.toInt))
    }
  }

  private def core(icacheBytes: Int): VexRiscv = {
    val cached = icacheBytes > 0
    val plugins = common(cached) ++ (if (cached) List(multiplier) else Nil)
    val config = VexRiscvConfig(fetch(icacheBytes) :: plugins)
    val cpu = new VexRiscv(config)
    cpu.rework {
      for (plugin <- config.plugins) plugin match {
        case p: IBusSimplePlugin =>
          p.iBus.setAsDirectionLess()
          master(p.iBus.toWishbone()).setName("iBusWishbone")
        case p: IBusCachedPlugin =>
          p.iBus.setAsDirectionLess()
          master(p.iBus.toWishbone()).setName("iBusWishbone")
        case p: DBusSimplePlugin =>
          p.dBus.setAsDirectionLess()
          master(p.dBus.toWishbone()).setName("dBusWishbone")
        case _ =>
      }
    }
    cpu
  }

  /** Without a reset vector of its own the core gets an input for it. */
  private def fetch(icacheBytes: Int): Plugin[VexRiscv] =
    if (icacheBytes == 0)
      new IBusSimplePlugin(
        resetVector = null,
        prediction = NONE,
        cmdForkOnSecondStage = false,
        cmdForkPersistence = false // the bridge to Wishbone keeps a command until it is taken
      )
    else
      new IBusCachedPlugin(
        resetVector = null,
        prediction = STATIC,
        config = InstructionCacheConfig(
          cacheSize = icacheBytes,
          bytePerLine = 32,
          wayCount = 1,
          addressWidth = 32,
          cpuDataWidth = 32,
          memDataWidth = 32,
          catchIllegalAccess = true,
          catchAccessFault = true,
          asyncTagMemory = false,
          twoCycleRam = false,
          twoCycleCache = true
        )
      )

  private def common(bypass: Boolean): List[Plugin[VexRiscv]] = List(
    new DBusSimplePlugin(catchAddressMisaligned = true, catchAccessFault = true),
    new StaticMemoryTranslatorPlugin(ioRange = _.msb),
    new DecoderSimplePlugin(catchIllegalInstruction = true),
    new RegFilePlugin(regFileReadyKind = plugin.SYNC, zeroBoot = false),
    new IntAluPlugin,
    new SrcPlugin(separatedAddSub = false, executeInsertion = true),
    new LightShifterPlugin,
    new ChecksumPlugin,
    new HazardSimplePlugin(
      bypassExecute = bypass,
      bypassMemory = bypass,
      bypassWriteBack = bypass,
      bypassWriteBackBuffer = bypass
    ),
    new BranchPlugin(earlyBranch = false, catchAddressMisaligned = true),
    new CsrPlugin(
      CsrPluginConfig
        .small(mtvecInit = null)
        .copy(mtvecAccess = CsrAccess.WRITE_ONLY, ecallGen = true, wfiGenAsNop = true)
    ),
    new ExternalInterruptArrayPlugin(
      machineMaskCsrId = 0xbc0,
      machinePendingsCsrId = 0xfc0,
      supervisorMaskCsrId = 0x9c0,
      supervisorPendingsCsrId = 0xdc0
    )
  )

  private def multiplier =
    new MulDivIterativePlugin(genMul = true, genDiv = true, mulUnrollFactor = 1, divUnrollFactor = 1)
}
