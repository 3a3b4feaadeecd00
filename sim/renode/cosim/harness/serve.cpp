// The board without its processor, whose accesses come through the Unix socket that
// $TREBUCHET_COSIM names, a line each:
//
//   r ADDRESS                  answered with the word's value
//   w ADDRESS VALUE [SELECT]   answered with "ok"
//   i                          answered with the interrupt lines
//
// Numbers are hexadecimal; an access that the bus refuses is answered with "error".
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "Vtop__Dpi.h"
// The class of the board top; it has the harness's make_dut.
#include "dut_board.cpp"
#include "port.inc"

namespace cosim {

namespace {

std::string answer(const char* line) {
    unsigned address = 0, value = 0, select = 15;
    char text[16] = "ok";
    try {
        if (line[0] == 'i') {
            snprintf(text, sizeof text, "%x", port().interrupts());
        } else if (sscanf(line, "r %x", &address) == 1) {
            snprintf(text, sizeof text, "%x", port().carry_out({false, address, 0, 15}));
        } else if (sscanf(line, "w %x %x %x", &address, &value, &select) >= 2) {
            port().carry_out({true, address, value, uint8_t(select)});
        } else {
            return "error";
        }
    } catch (const std::runtime_error&) {
        return "error";
    }
    return text;
}

void converse(int fd) {
    FILE* in = fdopen(fd, "r");
    char line[64];
    while (in && fgets(line, sizeof line, in)) {
        const std::string text = answer(line) + "\n";
        if (send(fd, text.data(), text.size(), MSG_NOSIGNAL) < 0) break;
    }
    if (in) fclose(in);
}

void serve(int listener) {
    for (;;) {
        const int fd = accept(listener, nullptr, nullptr);
        if (fd < 0) return;
        std::thread(converse, fd).detach();
    }
}

}  // namespace

void start() {
    const char* path = getenv("TREBUCHET_COSIM");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (!path || strlen(path) >= sizeof address.sun_path)
        throw sim::UserError("TREBUCHET_COSIM must be the path of a socket");
    strcpy(address.sun_path, path);
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) || listen(listener, 4))
        throw sim::UserError(std::string(path) + ": " + strerror(errno));
    std::thread(serve, listener).detach();
}

}  // namespace cosim
