#include "plan.h"

#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

namespace sim {

namespace {

double number(const std::string& name, const std::string& text) {
    char* end = nullptr;
    const double value = strtod(text.c_str(), &end);
    if (text.empty() || *end || !(value >= 0))
        throw UserError(name + " must be a number of at least 0, not '" + text + "'");
    return value;
}

void set_both(LinkOptions& o, const std::string& key, double value) {
    const bool down = key.rfind("down_", 0) == 0;
    ImpairRates& r = down ? o.down : o.up;
    const std::string name = key.substr(key.find('_') + 1);
    if (name == "delay") r.delay = Cycle(value);
    else if (name == "loss") r.loss = value;
    else if (name == "duplicate") r.duplicate = value;
    else if (name == "reorder") r.reorder = value;
    else if (name == "corrupt") r.corrupt = value;
    else throw UserError("a port has no option '" + key + "'");
}

}  // namespace

LinkOptions parse_port(const std::string& text) {
    LinkOptions o;
    std::istringstream words(text);
    words >> o.name;
    std::string word;
    while (words >> word) {
        const size_t equals = word.find('=');
        if (equals == std::string::npos) throw UserError("'" + word + "' must be KEY=VALUE");
        const std::string key = word.substr(0, equals);
        const double value = number(key, word.substr(equals + 1));
        if (key == "rate") o.rate = value;
        else if (key == "queue") o.queue = uint64_t(value);
        else if (key == "ecn_min") o.ecn_min = uint64_t(value);
        else if (key == "ecn_max") o.ecn_max = uint64_t(value);
        else if (key == "ecn_chance") o.ecn_chance = value;
        else if (key == "lossless") o.lossless = uint8_t(value);
        else if (key == "xoff") o.xoff = uint64_t(value);
        else if (key == "xon") o.xon = uint64_t(value);
        else set_both(o, key, value);
    }
    if (o.name.empty() || !(o.rate > 0)) throw UserError("a port needs a name and a rate");
    return o;
}

Plan read_plan(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw UserError("cannot read '" + path + "'");
    Plan plan;
    Options& o = plan.options;
    std::string line;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::string what, first, second, ip, mac;
        if (!(words >> what)) continue;
        if (what == "port") {
            plan.ports.push_back(parse_port(line.substr(5)));
            continue;
        }
        words >> first >> second >> ip >> mac;
        if (what == "seed") o.seed = uint64_t(number(what, first));
        else if (what == "cycles") o.cycles = Cycle(number(what, first));
        else if (what == "control") o.control_fd = int(number(what, first));
        else if (what == "idle_sleep") o.idle_sleep = true;
        else if (what == "progress") o.progress = line.substr(9);
        else if (what == "tap") o.tap = first, o.address = second;
        else if (what == "board") plan.boards.push_back({first, second, ip, mac});
        else if (what == "time" && first == "wall") o.tick_wall = true;
        else if (what == "time" && first.rfind("cycles:", 0) == 0)
            o.tick_cycles = Cycle(number(what, first.substr(7)));
        else throw UserError("a plan has no item '" + line + "'");
    }
    if (plan.ports.size() != plan.boards.size() + 1)
        throw UserError("a plan needs a port for the host and one for each board");
    return plan;
}

}  // namespace sim
