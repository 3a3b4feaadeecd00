// Command lines of the programs: `--name value` and `--name`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "worker.h"

namespace jobd {

// Wrong usage, in one line for the user.
struct UsageError {
    std::string line;
};

// What to do with an option's value. Options in `flags` have none.
struct OptionTable {
    std::map<std::string, std::function<void(const std::string&)>> values;
    std::map<std::string, std::function<void()>> flags;

    // Throws UsageError.
    void parse(int count, char** words) const;
};

// A whole number; throws UsageError if it is none or not from `least` to `most`.
uint64_t to_number(const std::string& text, uint64_t least, uint64_t most);
// HOST:PORT. Names are looked up once, here.
asio::ip::tcp::endpoint to_endpoint(const std::string& text);

// As many descriptors as this user may have: two a connection, two a pipe.
void raise_descriptor_limit();

// Of a file: a node a line, as --node; what is behind a # is a comment. Throws UsageError.
std::vector<PassiveNode> read_node_list(const std::string& path);

Options parse_options(int count, char** words);

}  // namespace jobd
