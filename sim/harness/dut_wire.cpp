// No device at all: a TAP device in its place, so that the load generator talks to the kernel's own TCP.
// This is how the load generator itself is checked. A "cycle" is about a microsecond.
#include <time.h>

#include "dut.h"
#include "tap.h"

namespace sim {

class DutWire : public Dut {
  public:
    explicit DutWire(const Options& o) {
        if (o.tap.empty() || o.load.mode.empty())
            throw UserError("the wire top needs --tap, --load and --port");
        const Mac mac = parse_mac(o.board_mac);
        tap_.open(o.tap, o.address, &mac);
    }
    bool can_send() const override { return true; }
    double nominal_hz() const override { return 1e4; }  // it sleeps most of the time
    void send(Frame&& frame) override {
        if (!frame.bad_fcs) tap_.write(frame);
    }
    void cycle(bool) override {
        Frame frame;
        if (tap_.read(frame)) {
            received.push_back(std::move(frame));
        } else if (++quiet_ % 16 == 0) {
            const timespec pause{0, 1000};
            nanosleep(&pause, nullptr);
        }
    }

  private:
    Tap tap_;
    uint64_t quiet_ = 0;
};

std::unique_ptr<Dut> make_dut(const Options& options) { return std::make_unique<DutWire>(options); }

}  // namespace sim
