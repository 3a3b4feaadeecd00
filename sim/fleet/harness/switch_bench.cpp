// The switch alone, for its tests: `bench SEED < SCRIPT`. Lines of the script: `port NAME KEY=VALUE …`
// (plan.h) for each port, then `CYCLE PORT HEX [bad]` for each frame that a device sends, in order of
// time, and at last `CYCLE end`. Printed: `CYCLE PORT HEX [bad]` for each frame that reaches a device,
// and the statistics as JSON.
#include <cstdio>
#include <iostream>
#include <sstream>

#include "plan.h"
#include "switch.h"

namespace {

sim::Frame parse(const std::string& hex) {
    sim::Frame frame;
    for (size_t k = 0; k + 1 < hex.size(); k += 2)
        frame.data.push_back(uint8_t(std::stoul(hex.substr(k, 2), nullptr, 16)));
    return frame;
}

void advance(sim::Switch& device, sim::Cycle& now, sim::Cycle until) {
    for (sim::Frame frame; now < until; ++now) {
        device.step(now);
        for (size_t k = 0; k < device.ports(); ++k) {
            while (device.get(k, frame, now)) {
                printf("%llu %zu ", static_cast<unsigned long long>(now), k);
                for (uint8_t byte : frame.data) printf("%02x", byte);
                printf("%s\n", frame.bad_fcs ? " bad" : "");
            }
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    try {
        sim::Switch device(argc > 1 ? std::stoull(argv[1]) : 1);
        sim::Cycle now = 0;
        for (std::string line; std::getline(std::cin, line);) {
            if (line.rfind("port ", 0) == 0) {
                device.add_port(sim::parse_port(line.substr(5)));
                continue;
            }
            std::istringstream words(line);
            unsigned long long at;
            std::string port, hex, bad;
            words >> at >> port >> hex >> bad;
            advance(device, now, at);
            if (port == "end") break;
            sim::Frame frame = parse(hex);
            frame.bad_fcs = bad == "bad";
            device.put(std::stoul(port), std::move(frame), now);
        }
        printf("%s\n", device.json().str().c_str());
        return 0;
    } catch (const sim::UserError& error) {
        fprintf(stderr, "%s\n", error.what());
        return 2;
    }
}
