// An SD memory card at its pins: CLK, CMD, DAT0 to DAT3. What it holds is behind SdContents. The tests of
// the host (sim/sd_harness) and the simulated board's slot (sd_pins.h) have the same.
//
// SDSC of version 1 and 2 and SDHC: identification, CSD, switch to high speed, four or one data lines,
// multi-block reads and writes. Access time, gaps, busy and their spread are options, and so are
// faults: damaged blocks, lost and damaged responses, refused writes, removal. What the host must not
// do raises SdViolation: CRC7, framing, N_CC and N_RC (8 clocks), N_WR (2), power-up (74 clocks), too
// fast a clock for the state, levels that change while it is high, two drivers of one line, blocks with
// a wrong CRC, and, unless faults are on, commands that the state does not allow. Sections: SD Physical Layer Simplified Specification 4, 5.3.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace sim {

struct SdViolation : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct SdOptions {
    bool high_capacity = true, version_2 = true, high_speed = true;
    unsigned access = 100, gap = 2, busy = 20;  // clocks; each is drawn between half and all of it
    unsigned response = 8;                      // N_CR, drawn from 2 to this
    bool early = false;                         // data 2 clocks after the command, before the response ends
    unsigned polls = 3;                         // ACMD41 until the card is ready
    unsigned delay = 0;                         // system cycles from the clock's edge to the card's output
    unsigned slow_cycles = 2, fast_cycles = 2, high_cycles = 2;  // least system cycles of a clock
    // Faults, in events of 1,000.
    unsigned bad_block = 0, bad_end = 0, lost_response = 0, bad_response = 0, refused = 0, late_error = 0;
    bool dead_blocks = false;  // bad_block is of sectors, always the same
    bool faults() const { return bad_block || bad_end || lost_response || bad_response || refused || removal; }
    bool removal = false;
};

// The sectors of a card. Reads and writes return whether they were possible.
class SdContents {
  public:
    virtual ~SdContents() = default;
    virtual uint64_t sectors() const = 0;
    virtual bool read(uint64_t sector, uint8_t* bytes) = 0;
    virtual bool write(uint64_t sector, const uint8_t* bytes) = 0;
};

class SdCard {
  public:
    SdCard(const SdOptions& options, SdContents& contents, uint64_t seed)
        : o_(options), contents_(contents), rng_(seed) { power_up(); }

    struct Pins { bool cmd, cmd_oe; uint8_t dat, dat_oe; };

    bool present() const { return present_; }
    void remove() { present_ = false; power_up(); }
    void insert() { present_ = true; power_up(); }
    uint64_t clocks() const { return total_; }
    uint64_t data_clocks() const { return data_clocks_; }  // of data bits, without CRC and framing
    const char* speed() const { return high_ ? "high" : "default"; }
    // It is being identified, or a command, its response or data are under way.
    bool busy() const {
        return present_ && (state_ != kTran || receiving_ || busy_ || status_ || !cmd_bits_.empty() || !dat_bits_.empty());
    }

    // One system cycle: levels of the lines as all drivers make them; what the host drives.
    void step(bool clk, bool cmd, uint8_t dat, bool host_cmd_oe, bool host_dat_oe) {
        if (!present_) { clk_ = clk; return; }
        Pins now = out();
        require(!(host_cmd_oe && now.cmd_oe), "host and card drive CMD at once");
        require(!(host_dat_oe && now.dat_oe), "host and card drive DAT at once");
        ++since_edge_, ++since_change_;
        // Levels that the host drives change while the clock is low, or with its falling edge.
        const bool rises = clk && !clk_;
        const bool same = (!host_cmd_oe || cmd == cmd_past_) && (!host_dat_oe || dat == dat_past_);
        require(same || !clk, "CMD or DAT changes while the clock is high");
        if (clk != clk_) {
            require(!reset_ || since_change_ >= (least() + 1) / 2, "half a clock is too short");
            since_change_ = 0;
        }
        cmd_past_ = cmd, dat_past_ = dat;
        if (rises) rise(cmd, dat, host_cmd_oe, host_dat_oe);
        if (clk != clk_ && clk == high_) shift();
        clk_ = clk;
        late_.push_back({cmd_out_, cmd_oe_, dat_out_, dat_oe_});
        while (late_.size() > o_.delay + 1) late_.pop_front();
    }

    // What the card drives.
    Pins out() const {
        if (!present_ || late_.empty()) return {true, false, 15, 0};
        return late_.front();
    }

  private:
    enum State { kIdle, kReady, kIdent, kStby, kTran, kData, kRcv, kPrg };

    static void require(bool good, const std::string& what) {
        if (!good) throw SdViolation("SD card: " + what);
    }
    bool chance(unsigned per_mille) { return per_mille && rng_() % 1000 < per_mille; }
    unsigned draw(unsigned most) { return most < 2 ? most : most / 2 + unsigned(rng_() % (most - most / 2 + 1)); }

    void power_up() {
        state_ = kIdle, high_ = four_ = app_ = illegal_ = error_ = switching_ = false;
        reset_ = false, since_power_ = 0, quiet_ = 100, polls_ = o_.polls, receiving_ = false, rca_ = 0;
        cmd_bits_.clear(), dat_bits_.clear(), late_.clear();
        cmd_oe_ = false, dat_oe_ = 0, cmd_out_ = true, dat_out_ = 15;
        reading_ = writing_ = in_block_ = false, dat_quiet_ = 100, busy_ = 0, cut_ = 0;
    }

    // --- sampled at the rising edge

    void rise(bool cmd, uint8_t dat, bool cmd_driven, bool dat_driven) {
        ++total_;
        require(!reset_ || since_edge_ >= least(), "clock too fast for this state");
        quickest_ = std::min(quickest_, since_edge_);
        since_edge_ = 0;
        ++since_power_, ++quiet_, ++dat_quiet_;
        if (!receiving_ && cmd_driven && !cmd) {
            require(since_power_ > 74, "command within 74 clocks after power-up");
            require(cmd_bits_.empty(), "command before the response has ended");
            require(quiet_ > 8, "command within 8 clocks (N_CC, N_RC)");
            receiving_ = true, command_.clear(), quickest_ = 1000;
        }
        if (receiving_) {
            require(cmd_driven, "command not driven to its end");
            command_.push_back(cmd);
            if (command_.size() == 48) receiving_ = false, quiet_ = 0, execute();
        } else if (cmd_oe_ || !cmd_bits_.empty()) {
            quiet_ = 0;
        }
        if (writing_) written(dat, dat_driven);
        else require(!dat_driven, "data driven without a write command");
    }

    // System cycles of a clock.
    unsigned least() const { return state_ <= kIdent ? o_.slow_cycles : high_ ? o_.high_cycles : o_.fast_cycles; }

    static uint8_t crc7(const std::vector<bool>& bits, size_t from, size_t to) {
        uint8_t crc = 0;
        for (size_t i = from; i < to; ++i) {
            const bool fb = bits[i] ^ (crc >> 6 & 1);
            crc = uint8_t((crc << 1 & 0x7f) ^ (fb ? 9 : 0));
        }
        return crc;
    }

    static uint32_t number(const std::vector<bool>& bits, size_t from, size_t to) {
        uint32_t value = 0;
        for (size_t i = from; i < to; ++i) value = value << 1 | bits[i];
        return value;
    }

    void execute() {
        require(command_[1], "transmission bit of a command is 0");
        require(crc7(command_, 0, 40) == number(command_, 40, 47), "CRC7 of a command is wrong");
        require(command_[47], "end bit of a command is 0");
        const unsigned index = number(command_, 2, 8);
        const uint32_t arg = number(command_, 8, 40);
        const bool app = app_;
        app_ = false;
        if (index != 0 && chance(o_.lost_response)) return;  // never received
        if (!perform(index, arg, app)) {
            require(o_.faults() || (index == 8 && !o_.version_2),
                    "CMD" + std::to_string(index) + " in state " + std::to_string(state_));
            illegal_ = true;
        }
    }

    bool perform(unsigned index, uint32_t arg, bool app) {
        const bool ours = arg >> 16 == rca_;
        switch (index) {
            case 0:
                require(quickest_ >= o_.slow_cycles, "CMD0 with more than 400 kHz");
                power_up(), reset_ = true, since_power_ = 100, quiet_ = 0;
                return true;
            case 8:
                if (!o_.version_2 || state_ != kIdle) return false;
                require(arg == 0x1aa, "CMD8 with another voltage or pattern");
                return seen_8_ = true, respond(8, arg);
            case 55:
                if (!ours) return false;
                app_ = true;
                return respond_r1(55);
            case 41: return app && state_ == kIdle && operate(arg);
            case 2:
                if (state_ != kReady) return false;
                state_ = kIdent;
                return respond_long({0x03, 'T', 'R', 'E', 'B', 'U', 'C', 'H', 1, 0, 0, 0, 1, 1, 0x9b});
            case 3:
                if (state_ != kIdent) return false;
                rca_ = 0x1234, state_ = kStby;
                return respond(3, uint32_t(rca_) << 16 | status() & 0x1fff);
            case 9: return state_ == kStby && ours && respond_long(csd());
            case 7:
                if (state_ != kStby || !ours) return false;
                respond_r1(7), state_ = kTran;
                return true;
            case 13: return ours && state_ >= kStby && respond_r1(13);
            case 16: return state_ == kTran && arg == 512 && respond_r1(16);
            case 6:
                if (state_ != kTran) return false;
                if (app) {
                    require(arg == 2 || arg == 0, "ACMD6 with another width");
                    respond_r1(6), four_ = arg == 2;
                    return true;
                }
                return o_.high_speed && change(arg);
            case 23: return app && state_ == kTran && respond_r1(23);
            case 18: case 25: return state_ == kTran && transfer(index, arg);
            case 12: return stop();
            default: return false;
        }
    }

    bool operate(uint32_t arg) {
        require(arg & 0x300000, "ACMD41 without 3.2 to 3.4 V");
        if (polls_) --polls_;
        // A high-capacity card stays busy for a host that does not support one.
        const bool ready = !polls_ && (!o_.high_capacity || arg >> 30 & 1);
        if (ready) state_ = kReady;
        const uint32_t ocr = 0xff8000 | (ready ? 1u << 31 | uint32_t(o_.high_capacity) << 30 : 0);
        return send(63, ocr, true);
    }

    bool change(uint32_t arg) {
        std::vector<uint8_t> bytes(64);
        const bool high = (arg & 15) == 1;
        bytes[1] = 100, bytes[13] = 3, bytes[16] = high ? 1 : 0;
        respond_r1(6);
        state_ = kData, reading_ = false, switching_ = high;
        block(bytes, o_.early ? 2 : unsigned(cmd_bits_.size()) + 2 + draw(std::min(o_.access, 200u)));
        return true;
    }

    unsigned access() { return o_.early ? 2 : unsigned(cmd_bits_.size()) + 2 + draw(o_.access); }

    bool transfer(unsigned index, uint32_t arg) {
        const uint64_t at = o_.high_capacity ? arg : arg / 512;
        require(o_.high_capacity || arg % 512 == 0, "address is no multiple of 512");
        if (at >= sectors()) return error_ = true, respond_r1(index);
        respond_r1(index);
        sector_ = at, reading_ = index == 18, writing_ = index == 25;
        state_ = reading_ ? kData : kRcv;
        if (reading_) next_block(access());
        else in_block_ = false, dat_quiet_ = 0;
        return true;
    }

    bool stop() {
        if (state_ != kData && state_ != kRcv) return false;
        require(!in_block_ || o_.faults(), "CMD12 within a block that is written");
        respond_r1(12);
        if (state_ == kData) cut_ = 2;
        else busy_ = draw(o_.busy), dat_oe_ = busy_ ? 1 : dat_oe_, dat_out_ = 14;
        reading_ = writing_ = in_block_ = false, state_ = kTran;
        return true;
    }

    uint64_t sectors() const { return contents_.sectors(); }

    // --- responses

    uint32_t status() {
        const uint32_t value = uint32_t(error_) << 31 | uint32_t(illegal_) << 22 | uint32_t(state_) << 9 | 1 << 8 | uint32_t(app_) << 5;
        error_ = illegal_ = false;
        return value | (late_fault_ ? 1u << 19 : 0);
    }
    bool respond_r1(unsigned index) {
        const bool fault = late_fault_;
        const uint32_t word = status();
        if (fault && index == 13) late_fault_ = false;
        return send(index, word, false);
    }
    bool respond(unsigned index, uint32_t word) { return send(index, word, false); }

    bool send(unsigned index, uint32_t word, bool plain) {
        std::vector<bool> bits = {false, false};
        for (int i = 5; i >= 0; --i) bits.push_back(index >> i & 1);
        for (int i = 31; i >= 0; --i) bits.push_back(word >> i & 1);
        const unsigned crc = plain ? 0x7f : crc7(bits, 0, 40);
        for (int i = 6; i >= 0; --i) bits.push_back(crc >> i & 1);
        bits.push_back(true);
        if (!plain && chance(o_.bad_response)) bits[8 + rng_() % 32].flip();
        return queue(bits);
    }
    bool respond_long(std::vector<uint8_t> bytes) {
        std::vector<bool> bits = {false, false, true, true, true, true, true, true};
        for (const uint8_t b : bytes) for (int i = 7; i >= 0; --i) bits.push_back(b >> i & 1);
        const unsigned crc = crc7(bits, 8, bits.size());
        for (int i = 6; i >= 0; --i) bits.push_back(crc >> i & 1);
        bits.push_back(true);
        return queue(bits);
    }
    bool queue(const std::vector<bool>& bits) {
        cmd_wait_ = 2 + unsigned(o_.response > 2 ? rng_() % (o_.response - 1) : 0);
        cmd_bits_.assign(bits.begin(), bits.end());
        return true;
    }

    std::vector<uint8_t> csd() const {
        std::vector<uint8_t> c(15);
        c[3] = 0x32, c[4] = o_.high_speed ? 0x5b : 0x1b, c[5] = 0x59;  // classes; READ_BL_LEN 9
        if (o_.high_capacity) {
            const uint32_t size = uint32_t(sectors() / 1024 - 1);
            c[0] = 0x40, c[7] = uint8_t(size >> 16 & 0x3f), c[8] = uint8_t(size >> 8), c[9] = uint8_t(size);
        } else {
            const uint32_t size = uint32_t(sectors() / 256 - 1), mult = 6;  // C_SIZE, C_SIZE_MULT
            c[6] = uint8_t(size >> 10 & 3), c[7] = uint8_t(size >> 2), c[8] = uint8_t(size << 6);
            c[9] = uint8_t(mult >> 1), c[10] = uint8_t(mult << 7);
        }
        return c;
    }

    // --- data

    static uint16_t crc16(uint16_t crc, bool bit) {
        const bool fb = bit ^ (crc >> 15);
        return uint16_t(crc << 1 ^ (fb ? 0x1021 : 0));
    }

    void block(const std::vector<uint8_t>& bytes, unsigned wait) {
        const unsigned lines = four_ ? 4 : 1;
        uint16_t crc[4] = {};
        dat_wait_ = wait, dat_bits_.clear(), dat_bits_.push_back(0);
        for (const uint8_t byte : bytes)
            for (int at = 8 - int(lines); at >= 0; at -= int(lines)) {
                const uint8_t symbol = byte >> at & (four_ ? 15 : 1);
                for (unsigned i = 0; i < lines; ++i) crc[i] = crc16(crc[i], symbol >> i & 1);
                dat_bits_.push_back(symbol);
            }
        for (int k = 15; k >= 0; --k) {
            uint8_t symbol = 0;
            for (unsigned i = 0; i < lines; ++i) symbol |= uint8_t((crc[i] >> k & 1) << i);
            dat_bits_.push_back(symbol);
        }
        dat_bits_.push_back(15);
    }

    void next_block(unsigned wait) {
        if (sector_ >= sectors()) { reading_ = false; return; }
        std::vector<uint8_t> bytes(512);
        const bool gone = !contents_.read(sector_, bytes.data());
        const bool bad = gone || (o_.dead_blocks ? sector_ * 2654435761u % 1000 < o_.bad_block : chance(o_.bad_block));
        block(bytes, wait);
        if (bad) dat_bits_[1 + rng_() % (dat_bits_.size() - 2)] ^= 1;
        if (chance(o_.bad_end)) dat_bits_.back() = 0;
        ++sector_;
    }

    // The edge at which the card's outputs change.
    void shift() {
        if (cmd_bits_.empty()) {
            cmd_oe_ = false, cmd_out_ = true;
        } else if (cmd_wait_) {
            --cmd_wait_;
        } else {
            cmd_oe_ = true, cmd_out_ = cmd_bits_.front(), cmd_bits_.pop_front();
        }
        if (cut_ && --cut_ == 0) dat_bits_.clear(), dat_oe_ = 0, dat_out_ = 15;
        if (busy_) {
            dat_oe_ = 1, dat_out_ = 14;
            if (--busy_ == 0) dat_oe_ = 0, dat_out_ = 15, dat_quiet_ = 0;
        } else if (dat_bits_.empty()) {
            dat_oe_ = 0, dat_out_ = 15;
        } else if (dat_wait_) {
            --dat_wait_;
        } else {
            const uint8_t lines = status_ ? 1 : four_ ? 15 : 1;
            dat_oe_ = lines, dat_out_ = uint8_t(dat_bits_.front() | (15 & ~lines)), dat_bits_.pop_front();
            if (!dat_bits_.empty()) return;
            if (status_) status_ = false, busy_ = draw(o_.busy);
            else if (reading_) data_clocks_ += 4096 / (four_ ? 4 : 1), next_block(draw(o_.gap));
            else if (state_ == kData && !cut_) state_ = kTran, high_ = high_ || switching_;
        }
    }

    void written(uint8_t dat, bool driven) {
        const unsigned lines = four_ ? 4 : 1;
        if (!in_block_) {
            if (!driven || dat & 1) return;
            require(cmd_bits_.empty() && !busy_ && dat_bits_.empty(), "block before response or busy has ended");
            require(dat_quiet_ > 2 && quiet_ >= 2, "block within 2 clocks (N_WR)");
            in_block_ = true, symbols_.clear();
            return;
        }
        symbols_.push_back(dat & (four_ ? 15 : 1));
        if (symbols_.size() < 4096 / lines + 17) return;
        in_block_ = false;
        uint16_t crc[4] = {};
        for (size_t k = 0; k + 1 < symbols_.size(); ++k)
            for (unsigned i = 0; i < lines; ++i) crc[i] = crc16(crc[i], symbols_[k] >> i & 1);
        bool good = symbols_.back() == (four_ ? 15 : 1);
        for (unsigned i = 0; i < lines; ++i) good = good && crc[i] == 0;
        require(good, "CRC16 or end bit of a block is wrong");
        if (chance(o_.refused)) good = false;
        if (chance(o_.late_error)) late_fault_ = true;
        if (good && sector_ < sectors()) {
            uint8_t bytes[512] = {};
            for (size_t k = 0; k < 512; ++k)
                for (unsigned s = 0; s < 8 / lines; ++s) bytes[k] = uint8_t(bytes[k] << lines | symbols_[k * (8 / lines) + s]);
            good = contents_.write(sector_, bytes);
            ++sector_, data_clocks_ += 4096 / lines;
        }
        status_ = true, dat_wait_ = 2;
        if (good) dat_bits_ = {0, 0, 1, 0, 1};
        else dat_bits_ = {0, 1, 0, 1, 1};
    }

    SdOptions o_;
    SdContents& contents_;
    std::mt19937_64 rng_;
    bool present_ = true, reset_ = false, clk_ = false, seen_8_ = false, cmd_past_ = true;
    uint8_t dat_past_ = 15;
    State state_ = kIdle;
    bool high_ = false, four_ = false, app_ = false, illegal_ = false, error_ = false, switching_ = false;
    bool late_fault_ = false;
    uint64_t total_ = 0, data_clocks_ = 0, since_edge_ = 1000, quickest_ = 1000, since_change_ = 1000, since_power_ = 0, quiet_ = 0, dat_quiet_ = 0;
    unsigned polls_ = 0, cmd_wait_ = 0, dat_wait_ = 0, busy_ = 0, cut_ = 0;
    uint32_t rca_ = 0;
    bool receiving_ = false, reading_ = false, writing_ = false, in_block_ = false, status_ = false;
    std::vector<bool> command_;
    std::deque<bool> cmd_bits_;
    std::deque<uint8_t> dat_bits_;
    std::vector<uint8_t> symbols_;
    uint64_t sector_ = 0;
    bool cmd_out_ = true, cmd_oe_ = false;
    uint8_t dat_out_ = 15, dat_oe_ = 0;
    std::deque<Pins> late_;
};

}  // namespace sim
