// The memory behind a role: random latency, order and stalls, as awkward as cores/memory.py allows.
// It checks the requester's side of those rules; what an address may be used for is asked of `Access`.
#pragma once

#include <deque>
#include <optional>

#include "../harness/common.h"

namespace sim {

// A rule was broken by the design under test.
struct Fault : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct MemoryOptions {
    size_t bytes = 1 << 20;
    uint64_t latency_low = 40, latency_high = 40;
    double stall = 0;
    size_t outstanding = 16;
    bool reorder = false;
};

// Who may touch which byte now; throws Fault.
class Access {
  public:
    virtual ~Access() = default;
    virtual void read(uint64_t addr) = 0;
    virtual void write(uint64_t addr) = 0;
};

struct Burst {
    bool write = false;
    uint64_t addr = 0;
    size_t beats = 0;
    unsigned tag = 0;
    Cycle due = 0;
    Bytes data;
    std::vector<bool> strobe;
};

class RoleMemory {
  public:
    RoleMemory(const MemoryOptions& options, uint64_t seed, size_t lanes, Access& access)
        : options_(options), rng_(seed, "memory"), lanes_(lanes), access_(access),
          bytes_(options.bytes) {}

    uint8_t& operator[](uint64_t addr) { return bytes_[addr % bytes_.size()]; }
    bool busy() const { return unfinished_ != 0; }

    // What is offered to the requester in this cycle; call once a cycle, before its outputs settle.
    void offer(Cycle now) {
        now_ = now;
        cmd_ready = unfinished_ < options_.outstanding && !stalls();
        wdata_ready = !waiting_.empty() && !stalls();
        if (!reading_) {
            reading_ = pick(false);
            sent_ = 0;
        }
        if (!done_ && (done_ = pick(true))) apply(*done_);
        if (reading_ && !rdata_valid) rdata_valid = !stalls();
        if (rdata_valid) present();
        wdone_valid = done_.has_value();
        if (done_) wdone_tag = done_->tag;
    }

    void command(bool write, uint64_t addr, size_t beats, unsigned tag) {
        if (addr % lanes_) throw Fault("memory command at an unaligned address");
        Burst burst;
        burst.write = write, burst.addr = addr, burst.beats = beats, burst.tag = tag;
        ++unfinished_;
        if (write) {
            waiting_.push_back(std::move(burst));
            return;
        }
        for (size_t i = 0; i < beats; ++i) access_.read(addr + i * lanes_);
        burst.due = now_ + delay();
        pending_.push_back(std::move(burst));
    }

    void store(const uint8_t* data, uint64_t strobe, bool last) {
        Burst& burst = waiting_.front();
        for (size_t lane = 0; lane < lanes_; ++lane) {
            const bool used = strobe >> lane & 1;
            if (used) access_.write(burst.addr + burst.data.size());
            burst.strobe.push_back(used);
            burst.data.push_back(data[lane]);
        }
        const bool full = burst.data.size() == burst.beats * lanes_;
        if (last != full) throw Fault("wdata.last is wrong");
        if (!full) return;
        burst.due = now_ + delay();
        pending_.push_back(std::move(burst));
        waiting_.pop_front();
    }

    void rdata_taken() {
        rdata_valid = false;
        if (++sent_ == reading_->beats) reading_.reset(), --unfinished_;
    }
    void wdone_taken() { done_.reset(), --unfinished_; }

    // Is a write under way that touches [addr, addr + size)?
    bool writing(uint64_t addr, uint64_t size) const {
        const auto inside = [&](const Burst& b) {
            return b.write && b.addr < addr + size && addr < b.addr + b.beats * lanes_;
        };
        for (const auto& b : waiting_)
            if (inside(b)) return true;
        for (const auto& b : pending_)
            if (inside(b)) return true;
        return done_ && inside(*done_);
    }

    bool cmd_ready = false, wdata_ready = false;
    bool rdata_valid = false, rdata_last = false, wdone_valid = false;
    unsigned rdata_tag = 0, wdone_tag = 0;
    uint8_t rdata[16] = {};

  private:
    bool stalls() { return options_.stall > 0 && rng_.chance(options_.stall); }
    Cycle delay() { return rng_.between(options_.latency_low, options_.latency_high); }

    // A burst whose response may start now: the first of its kind and tag, in any order of tags.
    std::optional<Burst> pick(bool write) {
        uint64_t seen[4] = {};
        std::vector<size_t> ready;
        for (size_t i = 0; i < pending_.size(); ++i) {
            const Burst& b = pending_[i];
            uint64_t& word = seen[b.tag >> 6 & 3];
            const uint64_t bit = uint64_t(1) << (b.tag & 63);
            if (b.write != write || word & bit) continue;
            word |= bit;
            if (b.due <= now_) ready.push_back(i);
            if (!options_.reorder) break;
        }
        if (ready.empty()) return std::nullopt;
        const size_t i = ready[rng_.below(ready.size())];
        Burst chosen = std::move(pending_[i]);
        pending_.erase(pending_.begin() + long(i));
        return chosen;
    }

    void apply(const Burst& b) {
        for (size_t i = 0; i < b.data.size(); ++i)
            if (b.strobe[i]) (*this)[b.addr + i] = b.data[i];
    }

    void present() {
        const uint64_t addr = reading_->addr + sent_ * lanes_;
        access_.read(addr);
        for (size_t lane = 0; lane < lanes_; ++lane) rdata[lane] = (*this)[addr + lane];
        rdata_tag = reading_->tag;
        rdata_last = sent_ + 1 == reading_->beats;
    }

    MemoryOptions options_;
    Rng rng_;
    size_t lanes_;
    Access& access_;
    Bytes bytes_;
    Cycle now_ = 0;
    size_t unfinished_ = 0, sent_ = 0;
    std::deque<Burst> waiting_;  // writes that lack data
    std::vector<Burst> pending_;
    std::optional<Burst> reading_, done_;
};

}  // namespace sim
