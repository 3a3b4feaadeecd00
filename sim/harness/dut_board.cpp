// A simulated board with one port.
#include "dut_board.h"

namespace sim {

std::unique_ptr<Dut> make_dut(const Options& options) { return std::make_unique<DutBoard>(options); }

}  // namespace sim
