// One board whose CPU can be debugged: `sim OPTION… [--debug PATH]`. The harness of the board top,
// which also serves a Unix socket at PATH: commands for the CPU's debug plugin (boards/sim_debug.py),
// done one after the other, one a clock cycle unless they wait. sim/gdb/port.py is the other end.
//
// A command is 8 bytes, numbers with their low byte first: kind, address, 0, 0, data (4 bytes).
// Answers are 4 bytes each, in the order of the commands.
//
// kind       number  what it does
// write      1       writes data to the plugin's register, when the plugin takes it
// read       2       answers with the plugin's register
// idle       3       waits until the pipeline is empty: instructions have done what they do
// halted     4       waits until the CPU is halted, or another command has come; answers with the flags
// rom        5       data 1: stores change the ROM; 0: they do not
//
// An unknown kind ends the connection. The CPU stays as it is when the connection ends, but the ROM
// is read-only again.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <vector>

#include "simulation.h"

// The board without debugger, from which ours is derived: its make_dut() makes room.
#define make_dut make_board
#include "dut_board.cpp"
#undef make_dut

namespace sim {

namespace {

constexpr Cycle kOften = 64;  // cycles between looks at the socket while there is nothing to do
constexpr size_t kCommandBytes = 8;

// The plugin's flags.
constexpr uint32_t kHalted = 1 << 1;
constexpr uint32_t kBusy = 1 << 2;

enum Kind : uint8_t { kWrite = 1, kRead, kIdle, kWaitHalted, kRom };

struct Command {
    uint8_t kind, address;
    uint32_t data;
};

std::string socket_path;  // empty: nobody debugs

}  // namespace

// The socket: bytes in and out, one client at a time. Never blocks.
class DebugSocket {
  public:
    explicit DebugSocket(const std::string& path);
    ~DebugSocket();
    // What has come since the last call is appended; false: there is no client, or it has gone.
    bool receive(Bytes& data);
    // Sends what the kernel takes, and removes it.
    void send(Bytes& data);
    void hang_up();

  private:
    std::string path_;
    int listener_ = -1, client_ = -1;
};

DebugSocket::DebugSocket(const std::string& path) : path_(path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) throw UserError("--debug: the path is too long");
    memcpy(address.sun_path, path.c_str(), path.size());
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener_ < 0 || bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) ||
        listen(listener_, 1))
        throw UserError("--debug " + path + ": " + strerror(errno));
}

DebugSocket::~DebugSocket() {
    hang_up();
    close(listener_);
    unlink(path_.c_str());
}

void DebugSocket::hang_up() {
    if (client_ >= 0) close(client_);
    client_ = -1;
}

bool DebugSocket::receive(Bytes& data) {
    if (client_ < 0) client_ = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client_ < 0) return false;
    uint8_t chunk[4096];
    for (;;) {
        const ssize_t n = ::read(client_, chunk, sizeof chunk);
        if (n > 0) {
            data.insert(data.end(), chunk, chunk + n);
        } else if (n < 0 && errno == EAGAIN) {
            return true;
        } else if (n == 0 || errno != EINTR) {
            hang_up();
            return false;
        }
    }
}

void DebugSocket::send(Bytes& data) {
    if (client_ < 0 || data.empty()) return;
    const ssize_t n = ::write(client_, data.data(), data.size());
    if (n > 0) data.erase(data.begin(), data.begin() + n);
}

class DutDebug : public DutBoard {
  public:
    explicit DutDebug(const Options& o) : DutBoard(o), socket_(socket_path) {}
    void cycle(bool tick) override;

  private:
    void exchange();
    void forget();
    void present();
    void advance(bool taken);
    void answer(uint32_t word);

    DebugSocket socket_;
    Bytes in_, out_;
    std::deque<Command> commands_;
    Cycle cycles_ = 0;
};

void DutDebug::cycle(bool tick) {
    if (cycles_++ % kOften == 0 || (commands_.empty() && !out_.empty())) exchange();
    present();
    bool taken = false;
    if (top_->debug_valid) {  // what is ready in this cycle can be seen before its edge only
        top_->sys_clk = 0;
        top_->eval();
        taken = top_->debug_ready;
    }
    DutBoard::cycle(tick);
    if (!commands_.empty()) advance(taken);
}

void DutDebug::exchange() {
    socket_.send(out_);
    if (!socket_.receive(in_)) return forget();
    size_t at = 0;
    for (; in_.size() - at >= kCommandBytes; at += kCommandBytes) {
        const uint8_t* p = &in_[at];
        const uint32_t data = uint32_t(p[4]) | uint32_t(p[5]) << 8 | uint32_t(p[6]) << 16 | uint32_t(p[7]) << 24;
        if (p[0] < kWrite || p[0] > kRom) {
            socket_.hang_up();
            return forget();
        }
        commands_.push_back({p[0], p[1], data});
    }
    in_.erase(in_.begin(), in_.begin() + long(at));
}

void DutDebug::forget() {
    in_.clear();
    out_.clear();
    commands_.clear();
    top_->debug_rom_write = 0;
}

// Without a command the address is that of the flags, so that these can be seen in every cycle.
void DutDebug::present() {
    top_->debug_valid = 0;
    top_->debug_write = 0;
    top_->debug_address = 0;
    if (commands_.empty()) return;
    const Command& c = commands_.front();
    if (c.kind == kRom) top_->debug_rom_write = c.data & 1;
    if (c.kind != kWrite && c.kind != kRead) return;
    top_->debug_valid = 1;
    top_->debug_write = c.kind == kWrite;
    top_->debug_address = c.address;
    top_->debug_data = c.data;
}

void DutDebug::advance(bool taken) {
    const uint32_t result = top_->debug_result;
    switch (commands_.front().kind) {
        case kWrite:
            if (!taken) return;
            break;
        case kRead:
            answer(result);
            break;
        case kIdle:
            if (result & kBusy) return;
            break;
        case kWaitHalted:
            if ((result & (kHalted | kBusy)) != kHalted && commands_.size() == 1) return;
            answer(result);
            break;
        default:
            break;
    }
    commands_.pop_front();
}

void DutDebug::answer(uint32_t word) {
    for (int k = 0; k < 4; ++k) out_.push_back(uint8_t(word >> 8 * k));
}

std::unique_ptr<Dut> make_dut(const Options& options) {
    if (socket_path.empty()) return make_board(options);
    return std::make_unique<DutDebug>(options);
}

}  // namespace sim

// As main.cpp's, with the one option more.
int main(int argc, char** argv) {
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, sim::request_stop);
    signal(SIGTERM, sim::request_stop);
    std::vector<char*> rest;
    for (int i = 0; i < argc; ++i) {
        if (!strcmp(argv[i], "--debug") && i + 1 < argc) sim::socket_path = argv[++i];
        else rest.push_back(argv[i]);
    }
    try {
        return sim::Simulation(sim::parse_options(int(rest.size()), rest.data())).run();
    } catch (const sim::UserError& error) {
        fprintf(stderr, "sim: %s\n", error.what());
        return sim::kUsage;
    }
}
