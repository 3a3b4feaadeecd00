#include "registry.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace jobd {

namespace {

// An idle node has nothing to say: what can be read is the end, or no answer to anything.
bool is_usable(int descriptor) {
    char byte;
    return ::recv(descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

}  // namespace

Registry::~Registry() {
    for (const auto& node : idle_) ::close(node.descriptor);
}

void Registry::put(IdleNode node) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(node));
    remove_unusable();
}

std::vector<IdleNode> Registry::take(size_t most) {
    const std::lock_guard lock(mutex_);
    remove_unusable();
    std::vector<IdleNode> taken;
    while (!idle_.empty() && taken.size() < most) {
        taken.push_back(std::move(idle_.front()));
        idle_.pop_front();
    }
    return taken;
}

void Registry::remove_withdrawn() {
    const std::lock_guard lock(mutex_);
    remove_unusable();
}

void Registry::remove_unusable() {
    std::erase_if(idle_, [](const IdleNode& node) {
        if (is_usable(node.descriptor) && !node.origin->withdrawn) return false;
        ::close(node.descriptor);
        if (node.origin->ended) node.origin->ended();
        return true;
    });
}

Status Registry::acquire(const void* user, const ConfigurationBytes& wanted) {
    const std::lock_guard lock(mutex_);
    const bool others = holders_.size() > holders_.count(user);
    if (others && *configuration_ != *wanted) return Status::BUSY;
    configuration_ = wanted;
    holders_.insert(user);
    return Status::OK;
}

void Registry::release(const void* user) {
    const std::lock_guard lock(mutex_);
    holders_.erase(user);
}

}  // namespace jobd
