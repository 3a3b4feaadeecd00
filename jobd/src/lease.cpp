#include "lease.h"

#include <charconv>

namespace model {

namespace {

constexpr uint16_t kHalf = 1u << 15;

std::pair<Status, std::string> failed(Status status, const std::string& why) {
    const std::string name = status_name(status);
    return {status, "error: " + name + (why.empty() ? "" : ": " + why) + "\n"};
}

}  // namespace

bool is_newer(uint16_t epoch, uint16_t other) {
    if (epoch == 0 || other == 0) return epoch != 0;
    const auto ahead = static_cast<uint16_t>(epoch - other);
    return ahead != 0 && ahead < kHalf;
}

bool Lease::refuses(uint16_t of_message) const {
    return guard && (of_message == 0 || of_message != epoch);
}

std::pair<Status, std::string> Lease::raise(std::string_view word) {
    uint16_t wanted = 0;
    const char* end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, wanted);
    if (error != std::errc() || stop != end || wanted == 0)
        return failed(Status::BAD_ARGUMENT, "the form is: lease [EPOCH|on|off]");
    if (!is_newer(wanted, epoch))
        return failed(Status::STALE, std::to_string(wanted) +
                                         " is not newer than the board's epoch " +
                                         std::to_string(epoch));
    epoch = wanted;
    guard = true;
    return {Status::OK, ""};
}

std::pair<Status, std::string> Lease::command(std::string_view line) {
    constexpr std::string_view kName = "lease";
    const bool ours = line == kName || line.starts_with("lease ");
    if (!ours) return failed(Status::UNKNOWN_COMMAND, "");
    if (line != kName) {
        const auto word = line.substr(kName.size() + 1);
        if (word == "on" || word == "off")
            guard = word == "on";
        else if (auto raised = raise(word); raised.first != Status::OK)
            return raised;
    }
    return {Status::OK, "lease " + std::to_string(epoch) + ", guard " + (guard ? "on" : "off") +
                            ", " + std::to_string(stale) + " stale messages\n"};
}

}  // namespace model
