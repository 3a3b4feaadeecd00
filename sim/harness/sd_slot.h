// The card slot of a board: the card's model (sd_card.h), and what it holds, a file (medium.h).
//
// The card goes and comes with its file. A reset of the board takes its supply away.
#pragma once

#include <string>

#include "common.h"
#include "medium.h"
#include "options.h"
#include "sd_card.h"

namespace sim {

class SdSlot : private SdContents {
  public:
    // Capacities of high-capacity cards are multiples of this.
    static constexpr size_t kUnit = 512 * 1024;

    struct Lines {
        bool clk = false, cmd = true, cmd_oe = false;
        uint8_t dat = 15;
        bool dat_oe = false;
    };

    explicit SdSlot(const Options& options)
        : medium_("card file", options.sd, kUnit), card_(settings(), *this, options.seed) {
        if (!medium_.in()) card_.remove();
    }

    bool present() const { return card_.present(); }
    bool busy() const { return card_.busy(); }
    // Levels of the lines, which have pull-ups, as host and card make them.
    bool cmd(const Lines& host) const {
        const SdCard::Pins card = card_.out();
        return host.cmd_oe ? host.cmd : !card.cmd_oe || card.cmd;
    }
    uint8_t dat(const Lines& host) const {
        const SdCard::Pins card = card_.out();
        return host.dat_oe ? host.dat : uint8_t(card.dat | (15 & ~card.dat_oe));
    }

    // One cycle; what the host drives in it.
    void clocked(const Lines& host) {
        medium_.clocked();
        if (medium_.in() && (!card_.present() || inserted_ != medium_.insertions())) insert();
        if (!medium_.in() && card_.present()) card_.remove();
        try {
            card_.step(host.clk, cmd(host), dat(host), host.cmd_oe, host.dat_oe);
        } catch (const SdViolation& violation) {
            fault_ = violation.what();
            reset();
        }
    }
    void reset() {
        if (card_.present()) insert();
    }
    // What the host did wrong since the last call, or "".
    std::string fault() {
        std::string found;
        found.swap(fault_);
        return found;
    }

  private:
    static SdOptions settings() {
        SdOptions o;
        o.removal = true;      // so a command may come to a card that is no longer selected
        o.slow_cycles = 3;     // 400 kHz at the board's 1 MHz
        return o;
    }
    void insert() {
        card_.insert();
        inserted_ = medium_.insertions();
    }
    uint64_t sectors() const override { return medium_.sectors(); }
    bool read(uint64_t sector, uint8_t* bytes) override { return medium_.read(sector, bytes); }
    bool write(uint64_t sector, const uint8_t* bytes) override { return medium_.write(sector, bytes); }

    Medium medium_;
    SdCard card_;
    uint64_t inserted_ = 1;  // of the medium that the card is
    std::string fault_;
};

}  // namespace sim
