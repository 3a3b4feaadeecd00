package trebuchet

import spinal.core._
import vexriscv._
import vexriscv.plugin._

/** Three instructions for network code, in the opcode space custom-0 (docs/cpu.md).
  *
  * {{{
  * mnemonic                    31     25 24 20 19 15 14 12 11  7 6     0   result
  * cksum.add  rd, rs1, rs2      0000000   rs2   rs1   000   rd   0001011   rs1 + rs2, ones' complement
  * cksum.fold rd, rs1           0000000  00000  rs1   001   rd   0001011   its halves, 16 bits of them
  * cksum.word rd, rs1, rs2, n   00000nn   rs2   rs1   010   rd   0001011   (rs2:rs1) >> 8 n, 32 bits
  * }}}
  *
  * Every other encoding of custom-0 is an illegal instruction. A result of `cksum.word` can be used
  * where that of an `add` can; the two sums are a stage longer on their way: the stage `execute` adds,
  * `memory` adds the carry, which is 0 for all other instructions.
  */
class ChecksumPlugin extends Plugin[VexRiscv] {
  object IS_CKSUM_ADD extends Stageable(Bool)
  object IS_CKSUM_FOLD extends Stageable(Bool)
  object IS_CKSUM_WORD extends Stageable(Bool)
  object CKSUM_CARRY extends Stageable(Bool)

  override def setup(pipeline: VexRiscv): Unit = {
    import pipeline.config._

    val decoder = pipeline.service(classOf[DecoderService])
    for (kind <- List(IS_CKSUM_ADD, IS_CKSUM_FOLD, IS_CKSUM_WORD)) decoder.addDefault(kind, False)

    val sum = List[(Stageable[_ <: BaseType], Any)](
      REGFILE_WRITE_VALID      -> True,
      BYPASSABLE_EXECUTE_STAGE -> False,
      BYPASSABLE_MEMORY_STAGE  -> True,
      RS1_USE                  -> True
    )
    // The core's own adder makes the sum; the carry out of it follows from the highest bits.
    decoder.add(
      M"0000000----------000-----0001011",
      sum ++ List(
        IS_CKSUM_ADD             -> True,
        RS2_USE                  -> True,
        SRC1_CTRL                -> Src1CtrlEnum.RS,
        SRC2_CTRL                -> Src2CtrlEnum.RS,
        SRC_USE_SUB_LESS         -> False,
        IntAluPlugin.ALU_CTRL    -> IntAluPlugin.AluCtrlEnum.ADD_SUB
      )
    )
    decoder.add(M"000000000000-----001-----0001011", sum ++ List(IS_CKSUM_FOLD -> True))
    decoder.add(
      M"00000------------010-----0001011",
      List(
        IS_CKSUM_WORD            -> True,
        REGFILE_WRITE_VALID      -> True,
        BYPASSABLE_EXECUTE_STAGE -> True,
        BYPASSABLE_MEMORY_STAGE  -> True,
        RS1_USE                  -> True,
        RS2_USE                  -> True
      )
    )
  }

  override def build(pipeline: VexRiscv): Unit = {
    import pipeline._
    import pipeline.config._

    execute plug new Area {
      import execute._

      val low = input(RS1)
      val high = input(RS2)
      val sum = input(SRC_ADD_SUB)
      val carry = (low.msb && high.msb) || ((low.msb || high.msb) && !sum.msb)
      val halves = low(31 downto 16).asUInt +^ low(15 downto 0).asUInt
      val words = input(INSTRUCTION)(26 downto 25).mux(
        0 -> low,
        1 -> high(7 downto 0) ## low(31 downto 8),
        2 -> high(15 downto 0) ## low(31 downto 16),
        3 -> high(23 downto 0) ## low(31 downto 24)
      )

      insert(CKSUM_CARRY) := (input(IS_CKSUM_ADD) && carry) || (input(IS_CKSUM_FOLD) && halves.msb)
      when(input(IS_CKSUM_FOLD)) {
        output(REGFILE_WRITE_DATA) := halves(15 downto 0).asBits.resized
      }
      when(input(IS_CKSUM_WORD)) {
        output(REGFILE_WRITE_DATA) := words
      }
    }

    // Adding 0 costs less than choosing. A plugin that writes a result of its own in this stage must
    // come later in the list.
    memory plug new Area {
      import memory._

      val around = input(REGFILE_WRITE_DATA).asUInt + input(CKSUM_CARRY).asUInt.resized
      output(REGFILE_WRITE_DATA).allowOverride
      output(REGFILE_WRITE_DATA) := around.asBits
    }
  }
}
