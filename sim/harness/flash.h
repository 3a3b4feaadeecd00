// A serial NOR flash at the board's pins: SPI mode 0, commands 03, 9F, 05, 06, 04, 02, 20, D8.
//
// Its contents are a file, mapped, so that they outlive the run and the board's own restarts; without
// one they are new at each start: blank, or what `flash.bin` in the working folder has, which a build
// of a board with a boot ROM leaves there. So is a file that is made. Programming clears bits only, within a page of 256 bytes. Both
// ways to write take a while, shorter than a real flash, in which only the status can be read.
#pragma once

#include <string>

#include "common.h"
#include "options.h"

namespace sim {

class Flash {
  public:
    static constexpr size_t kBytes = 1 << 20;

    explicit Flash(const Options& options);
    ~Flash();
    Flash(const Flash&) = delete;
    Flash& operator=(const Flash&) = delete;

    // The pins in one clock cycle of the board; returns the flash's output.
    bool step(bool cs_n, bool clk, bool mosi) {
        if (busy_) --busy_;
        if (cs_n && !selected_) return true;  // its output floats
        return move(cs_n, clk, mosi);
    }

  private:
    bool move(bool cs_n, bool clk, bool mosi);
    void taken(uint8_t byte);
    uint8_t answer();
    void execute();
    void program();
    void erase(size_t bytes);
    uint8_t status() const;

    uint8_t* data_ = nullptr;
    Bytes own_;         // the contents when there is no file
    bool protect_;      // fault: nothing can be written
    uint64_t left_;     // fault: power fails after so many more programmed bytes
    bool limited_;
    uint64_t busy_ = 0;
    bool selected_ = false, clk_ = false, write_enabled_ = false, deaf_ = false;
    unsigned bits_ = 0;
    uint8_t in_ = 0, out_ = 0xff, command_ = 0;
    uint64_t count_ = 0;  // whole bytes since it was selected
    uint32_t address_ = 0;
    Bytes page_;
};

}  // namespace sim
