// The pins of a top's card slot, where it has one (boards/sim.py).
#pragma once

#include <type_traits>

#include "sd_slot.h"

namespace sim {

template <class Top, class = void>
struct HasSlot : std::false_type {};
template <class Top>
struct HasSlot<Top, std::void_t<decltype(std::declval<Top&>().sdcard_clk)>> : std::true_type {};

// The slot at the pins of `Top`, nothing if it has none.
template <class Top>
class SdPins {
  public:
    explicit SdPins(const Options& options) : slot_(options) {
        if (!HasSlot<Top>::value && !options.sd.empty()) throw UserError("--sd: this top has no card slot");
    }

    // Before the edge. What the host drives comes from registers, so it has settled.
    void outputs(Top& top) {
        if constexpr (HasSlot<Top>::value) {
            host_ = {bool(top.sdcard_clk), bool(top.sdcard_cmd_o), bool(top.sdcard_cmd_oe),
                     uint8_t(top.sdcard_dat_o), bool(top.sdcard_dat_oe)};
            top.sdcard_cmd_i = slot_.cmd(host_);
            top.sdcard_dat_i = slot_.dat(host_);
            top.sdcard_cd = !slot_.present();
        }
    }

    void clocked(bool in_reset) {
        if constexpr (HasSlot<Top>::value) {
            if (in_reset) slot_.reset();
            else slot_.clocked(host_);
        }
    }

    SdSlot& slot() { return slot_; }

  private:
    SdSlot slot_;
    SdSlot::Lines host_;
};

}  // namespace sim
