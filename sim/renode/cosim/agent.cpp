// Between Renode's co-simulated peripheral and the board without processor (harness/serve.cpp): a shared
// library that Renode loads, or a program that connects to Renode's two ports:
//
//   agent MAIN_PORT ASYNC_PORT ADDRESS
//
// Renode's side of the conversation is the integration library of the user's own Renode, compiled
// with this file; the gateware's is the Unix socket that $TREBUCHET_COSIM names. The gateware runs
// freely, at its own speed, as a board would beside a debugger; what Renode says of the passing of
// time is used to look at the interrupt lines.
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "src/buses/bus.h"
#include "src/renode_bus.h"

namespace {

// $TREBUCHET_IRQ: the number of the processor's interrupt that is forwarded.
uint8_t interrupt = 0;

class Board : public BaseTargetBus {
  public:
    Board() {
        const char* path = getenv("TREBUCHET_COSIM");
        const char* line = getenv("TREBUCHET_IRQ");
        line_ = line ? unsigned(atoi(line)) : 0;
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        strncpy(address.sun_path, path ? path : "", sizeof address.sun_path - 1);
        const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
            out_ = fd;
            in_ = fdopen(fd, "r");
        }
        evaluateModel = [] {};
    }

    void tick(bool, uint64_t) override {
        unsigned lines = 0;
        try {
            lines = ask("i\n");
        } catch (const char*) {
            return;  // the next access says so
        }
        interrupt = lines >> line_ & 1;
        agent->handleInterrupts();
    }

    uint64_t read(int width, uint64_t address) override {
        char line[64];
        snprintf(line, sizeof line, "r %x\n", unsigned(address & ~3ull));
        return ask(line) >> 8 * (address & 3) & (width < 4 ? (1u << 8 * width) - 1 : ~0u);
    }

    void write(int width, uint64_t address, uint64_t value) override {
        char line[64];
        const unsigned select = ((1u << width) - 1) << (address & 3);
        snprintf(line, sizeof line, "w %x %x %x\n", unsigned(address & ~3ull),
                 unsigned(value << 8 * (address & 3)), select & 15);
        ask(line);
    }

    // The gateware has no part in a restart of the processor.
    void reset() override {}
    void timeoutTick(uint8_t*, uint8_t, int) override {}

  protected:
    bool areSignalsConnected() override { return in_ != nullptr; }

  private:
    unsigned ask(const char* line) {
        std::lock_guard<std::mutex> lock(mutex_);
        char answer[64];
        if (!in_ || send(out_, line, strlen(line), MSG_NOSIGNAL) < 0 ||
            !fgets(answer, sizeof answer, in_))
            throw "the gateware is gone";
        if (answer[0] == 'e' && answer[1] == 'r') throw "the gateware's bus refused the access";
        return unsigned(strtoul(answer, nullptr, 16));
    }

    std::mutex mutex_;
    int out_ = -1;
    FILE* in_ = nullptr;
    unsigned line_ = 0;
};

RenodeAgent* make() {
    RenodeAgent* agent = new RenodeAgent;
    agent->addBus(new Board);
    agent->registerInterrupt(&interrupt, 0);
    return agent;
}

}  // namespace

// Called by Renode after it has loaded the library.
RenodeAgent* Init() {
    RenodeAgent* agent = make();
    agent->connectNative();
    return agent;
}

int main(int argc, char** argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: %s MAIN_PORT ASYNC_PORT ADDRESS\n", argv[0]);
        return 2;
    }
    RenodeAgent* agent = make();
    agent->connect(atoi(argv[1]), atoi(argv[2]), argv[3]);
    agent->simulate();
    return 0;
}
