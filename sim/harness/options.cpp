#include "options.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

namespace sim {

namespace {

uint64_t parse_count(const std::string& name, const std::string& text) {
    char* end = nullptr;
    const unsigned long long value = strtoull(text.c_str(), &end, 0);
    if (text.empty() || *end || text[0] == '-')
        throw UserError(name + " must be a whole number, not '" + text + "'");
    return value;
}

double parse_real(const std::string& name, const std::string& text) {
    char* end = nullptr;
    const double value = strtod(text.c_str(), &end);
    if (text.empty() || *end || !(value >= 0))
        throw UserError(name + " must be a number of at least 0, not '" + text + "'");
    return value;
}

// "3%" or "0.03".
double parse_chance(const std::string& name, std::string text) {
    const bool percent = !text.empty() && text.back() == '%';
    if (percent) text.pop_back();
    const double value = parse_real(name, text) / (percent ? 100 : 1);
    if (value > 1) throw UserError(name + " must be at most 1 (or 100%), not '" + text + "'");
    return value;
}

void parse_time(Options& o, const std::string& text) {
    if (text == "wall") {
        o.tick_wall = true;
        o.tick_cycles = 0;
    } else if (text.rfind("cycles:", 0) == 0) {
        o.tick_wall = false;
        o.tick_cycles = parse_count("--time", text.substr(7));
    } else if (text == "soc") {
        o.tick_wall = false;
        o.tick_cycles = 0;
    } else {
        throw UserError("--time must be wall, soc or cycles:N, not '" + text + "'");
    }
}

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw UserError("cannot read '" + path + "'");
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

struct Option {
    std::string argument, help;
    std::function<void(const std::string&)> set;
};

using Table = std::map<std::string, Option>;

// An impairment option for both directions, and one for each (prefix rx-: to the board, tx-: from it).
void add_link(Table& t, Options& o, const std::string& name, const std::string& argument,
              const std::string& help,
              const std::function<void(ImpairRates&, const std::string&)>& set) {
    t["--" + name] = {argument, help + ", both ways", [=, &o](const std::string& v) {
                          set(o.to_board, v);
                          set(o.from_board, v);
                      }};
    t["--rx-" + name] = {argument, help + ", to the board",
                         [=, &o](const std::string& v) { set(o.to_board, v); }};
    t["--tx-" + name] = {argument, help + ", from the board",
                         [=, &o](const std::string& v) { set(o.from_board, v); }};
}

void link_options(Table& t, Options& o) {
    add_link(t, o, "loss", "P", "chance (0.03 or 3%) that a frame is lost",
             [](ImpairRates& r, const std::string& v) { r.loss = parse_chance("--loss", v); });
    add_link(t, o, "duplicate", "P", "chance that a frame comes twice",
             [](ImpairRates& r, const std::string& v) { r.duplicate = parse_chance("--duplicate", v); });
    add_link(t, o, "reorder", "P", "chance that later frames pass a frame",
             [](ImpairRates& r, const std::string& v) { r.reorder = parse_chance("--reorder", v); });
    add_link(t, o, "corrupt", "P", "chance that a bit of a frame flips",
             [](ImpairRates& r, const std::string& v) { r.corrupt = parse_chance("--corrupt", v); });
    add_link(t, o, "delay", "CYCLES", "time a frame is under way",
             [](ImpairRates& r, const std::string& v) { r.delay = parse_count("--delay", v); });
}

void load_options(Table& t, Options& o) {
    LoadOptions& l = o.load;
    auto count = [&t](const char* name, auto& field, const char* help) {
        t[name] = {"N", help, [name, &field](const std::string& v) {
                       const uint64_t value = parse_count(name, v);
                       field = std::decay_t<decltype(field)>(value);
                       if (field != value)
                           throw UserError(std::string(name) + " is too large: '" + v + "'");
                   }};
    };
    t["--load"] = {"MODE", "built-in TCP clients: http, echo, discard, messages or hostile",
                   [&l](const std::string& v) {
                       if (v != "http" && v != "echo" && v != "discard" && v != "messages" && v != "hostile")
                           throw UserError("--load must be http, echo, discard, messages or hostile, not '" + v + "'");
                       l.mode = v;
                   }};
    count("--port", l.port, "TCP port to load (default 80, 7 or 9, by mode)");
    count("--clients", l.clients, "concurrent clients");
    count("--transactions", l.transactions, "transactions to measure");
    count("--warmup", l.warmup, "transactions before them");
    count("--ramp", l.ramp, "clients that start in one tick (default all)");
    count("--min-bytes", l.min_bytes, "smallest transfer");
    count("--max-bytes", l.max_bytes, "largest transfer");
    count("--inflight", l.inflight, "unacknowledged bytes a client sends at most");
    count("--window", l.window, "receive buffer of a client, at most 65535");
    count("--mss", l.mss, "maximum segment size that clients announce and use");
    count("--rto", l.rto_ms, "first retransmission time-out of clients, in ticks");
    count("--drain", l.drain_ms, "ticks to go on after the last transaction");
    count("--idle", l.idle, "connections more that are opened first, do nothing, and are closed last");
    count("--idle-port", l.idle_port, "the port of those (default 9)");
    count("--attack", l.attack_percent, "hostile: attack frames per 100 honest ones");
    t["--pause"] = {"P", "chance, per arrival, that a client stops reading for a while",
                    [&l](const std::string& v) { l.pause = parse_chance("--pause", v); }};
    t["--abort"] = {"P", "messages: chance, per message, of a RST somewhere in it",
                    [&l](const std::string& v) { l.abort = parse_chance("--abort", v); }};
    t["--messages"] = {"FILE", "messages: what clients send and must get (see loadgen.cpp)",
                       [&l](const std::string& v) { l.messages = v; }};
    t["--request"] = {"FILE", "http: what clients send",
                      [&l](const std::string& v) { l.request = read_file(v); }};
    t["--expect"] = {"FILE", "http: the exact answer",
                     [&l](const std::string& v) { l.expect = read_file(v); }};
}

void flash_options(Table& t, Options& o) {
    t["--flash"] = {"FILE", "board: contents of its SPI flash, kept; made when it is not there",
                    [&o](const std::string& v) { o.flash = v; }};
    t["--flash-protect"] = {"", "board: the flash cannot be written",
                            [&o](const std::string&) { o.flash_protect = true; }};
    t["--flash-stop"] = {"N", "board: power fails after N programmed bytes; the flash stays so",
                         [&o](const std::string& v) {
                             o.flash_stops = true;
                             o.flash_stop = parse_count("--flash-stop", v);
                         }};
}

// "N" or "N+COUNT".
void parse_bad(Options& o, const std::string& text) {
    const size_t plus = text.find('+');
    o.drive_bad = parse_count("--drive-bad", text.substr(0, plus));
    o.drive_bad_count = plus == std::string::npos ? 1 : parse_count("--drive-bad", text.substr(plus + 1));
}

void drive_options(Table& t, Options& o) {
    t["--drive"] = {"FILE", "board: the sectors of its drive; protected if the file is",
                    [&o](const std::string& v) { o.drive = v; }};
    t["--drive-latency"] = {"CYCLES", "board: from a command to the first data (default 1000)",
                            [&o](const std::string& v) { o.drive_latency = parse_count("--drive-latency", v); }};
    t["--drive-rate"] = {"BYTES", "board: that the drive moves in a cycle (default 1)",
                         [&o](const std::string& v) {
                             o.drive_rate = parse_real("--drive-rate", v);
                             if (o.drive_rate <= 0) throw UserError("--drive-rate must be more than 0");
                         }};
    t["--drive-bad"] = {"LBA[+N]", "board: sectors of the drive that cannot be read",
                        [&o](const std::string& v) { parse_bad(o, v); }};
    t["--sd"] = {"FILE", "board: the sectors of the card in its slot; protected if the file is",
                 [&o](const std::string& v) { o.sd = v; }};
}

Table option_table(Options& o) {
    Table t;
    auto text = [&t](const char* name, const char* argument, std::string& field, const char* help) {
        t[name] = {argument, help, [&field](const std::string& v) { field = v; }};
    };
    const auto add = [&t, &o](const std::string& name, const char* argument, const char* help,
                              const std::function<void(Options&, const std::string&)>& set) {
        t[name] = {argument, help, [&o, set](const std::string& v) { set(o, v); }};
    };
    const auto count = [&add](const char* name, const char* help, auto Options::* field) {
        add(name, "N", help, [=](Options& o, const std::string& v) {
            o.*field = std::decay_t<decltype(o.*field)>(parse_count(name, v));
        });
    };
    const auto real = [&add](const char* name, const char* argument, const char* help,
                             double Options::* field) {
        add(name, argument, help,
            [=](Options& o, const std::string& v) { o.*field = parse_real(name, v); });
    };
    count("--seed", "of everything random (default 1)", &Options::seed);
    count("--cycles", "stop after so many clock cycles", &Options::cycles);
    count("--trace-from", "first cycle in the waves", &Options::trace_from);
    count("--control", "inherited socket for commands; its end ends the simulation",
          &Options::control_fd);
    real("--seconds", "S", "stop after so much wall time", &Options::seconds);
    real("--clock-hz", "HZ", "virtual clock frequency, for time stamps", &Options::clock_hz);
    real("--max-rate", "HZ", "simulate no more cycles a second", &Options::max_rate);
    real("--line-rate", "BYTES",
         "fabric: bytes a cycle that the wire carries each way, preamble, FCS and gap included",
         &Options::line_rate);
    add("--stall", "P", "fabric: chance of a gap or back-pressure in a cycle",
        [](Options& o, const std::string& v) { o.stall = parse_chance("--stall", v); });
    add("--idle-sleep", "", "sleep between bursts while nothing happens",
        [](Options& o, const std::string&) { o.idle_sleep = true; });
    add("--time", "MODE", "millisecond ticks: wall, cycles:N or soc (its own divider)", parse_time);
    text("--until", "TEXT", o.until, "stop in the cycle in which the UART has printed this");
    text("--uart", "WHERE", o.uart, "none, stdout, stdio, pty or file:PATH");
    text("--tap", "NAME", o.tap, "connect the link to this TAP device");
    text("--address", "IP/LEN", o.address, "of the TAP device (default 192.0.2.1/24), or none");
    text("--board-ip", "IP", o.board_ip, "of the board, for the load generator (default 192.0.2.2)");
    text("--board-mac", "MAC", o.board_mac, "of the board (default 02:00:00:00:00:02)");
    text("--pcap", "FILE", o.pcap, "capture what passes the board's port");
    text("--trace", "FILE", o.trace, "write waves (FST); needs the traced build");
    text("--events", "FILE", o.events, "write what the Verilog prints here, not to standard output");
    text("--progress", "FILE", o.progress, "publish the cycles simulated so far here (progress.h)");
    text("--stats", "FILE", o.stats, "write statistics as JSON ('-': standard output)");
    flash_options(t, o);
    drive_options(t, o);
    link_options(t, o);
    load_options(t, o);
    return t;
}

[[noreturn]] void help(const Table& table) {
    printf("options:\n");
    for (const auto& [name, option] : table)
        printf("  %-24s %s\n", (name + " " + option.argument).c_str(), option.help.c_str());
    exit(0);
}

void check(Options& o) {
    LoadOptions& l = o.load;
    if (!l.mode.empty() && !o.tap.empty() && !o.load.port)
        throw UserError("--load and --tap exclude each other (except in the wire top, with --port)");
    if (l.clients < 1 || l.clients > 60000) throw UserError("--clients must be 1 to 60000");
    if (l.idle > 1000000) throw UserError("--idle must be 0 to 1000000");
    if (l.mss < 64 || l.mss > 1460) throw UserError("--mss must be 64 to 1460");
    if (l.window < 1 || l.window > 65535) throw UserError("--window must be 1 to 65535");
    if (l.min_bytes < 1 || l.min_bytes > l.max_bytes)
        throw UserError("--min-bytes must be 1 to --max-bytes");
    if (o.clock_hz < 1) throw UserError("--clock-hz must be at least 1");
    if (l.inflight < 1) throw UserError("--inflight must be at least 1");
    if (!l.mode.empty() && !o.tick_wall && !o.tick_cycles)
        throw UserError("--load needs --time wall or --time cycles:N");
    if (!l.port) l.port = l.mode == "http" ? 80 : l.mode == "discard" ? 9 : l.mode == "messages" ? 4000 : 7;
}

}  // namespace

Options parse_options(int argc, char** argv) {
    Options o;
    const Table table = option_table(o);
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (name == "--help") help(table);
        const auto found = table.find(name);
        if (found == table.end()) throw UserError("unknown option '" + name + "' (see --help)");
        const bool has_value = !found->second.argument.empty();
        if (has_value && ++i == argc) throw UserError("option " + name + " needs a value");
        found->second.set(has_value ? argv[i] : "");
    }
    check(o);
    return o;
}

}  // namespace sim
