// Clock, waves and end of a Verilated top, the same for every one of them.
#pragma once

#include <memory>

#include "Vtop.h"
#include "dut.h"
#include "verilated.h"
#if VM_TRACE_FST
#include "verilated_fst_c.h"
#endif

namespace sim {

class VerilatedTop : public Dut {
  public:
    bool finished() const override { return context_->gotFinish(); }
#if VM_TRACE_FST
    ~VerilatedTop() override {
        if (trace_) trace_->close();
    }
    void start_trace(const std::string& path) override {
        trace_ = std::make_unique<VerilatedFstC>();
        top_->trace(trace_.get(), 99);
        trace_->open(path.c_str());
    }
#endif

  protected:
    explicit VerilatedTop(const Options& options)
        : context_(new VerilatedContext), top_(new Vtop(context_.get())) {
        context_->randReset(0);
        context_->traceEverOn(true);
        half_period_ps_ = uint64_t(0.5e12 / options.clock_hz);
    }

    // After the inputs were set: the low half; outputs that follow inputs combinationally settle.
    void settle() { top_->eval(), dump(); }
    void dump() {
#if VM_TRACE_FST
        if (trace_) trace_->dump(half_periods_ * half_period_ps_);
        ++half_periods_;
#endif
    }

    std::unique_ptr<VerilatedContext> context_;
    std::unique_ptr<Vtop> top_;
    uint64_t half_period_ps_ = 0;
    uint64_t half_periods_ = 0;
#if VM_TRACE_FST
    std::unique_ptr<VerilatedFstC> trace_;
#endif
};

}  // namespace sim
