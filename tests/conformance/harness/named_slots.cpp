#include "harness/named_slots.hpp"

#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "harness/channel.hpp"
#include "model/calls.hpp"

namespace bitnet::conformance {
namespace {

// The required slots, in the order of the table, and then the optional ones.
// clang-format off: it finds another form each time
#define BITNET_REQUIRED_SLOTS(X) \
  X(info) X(close) X(device_count) X(device_info) X(kernels) X(device_open) \
  X(device_close) X(buffer_create) X(buffer_map) X(buffer_destroy) X(weight_plan) \
  X(weights_create) X(weight_write) X(weight_alias) X(weight_seal) X(weights_destroy) \
  X(graph_query) X(program_build) X(program_bind) X(binding_prepare) X(binding_destroy) \
  X(program_stats) X(program_destroy) X(kv_pool_create) X(kv_copy) X(kv_export) \
  X(kv_import) X(kv_pool_destroy) X(queue_create) X(queue_submit) X(queue_wait) \
  X(queue_poll) X(queue_destroy) X(quiesce)
// clang-format on
#define BITNET_OPTIONAL_SLOTS(X) X(query_interface) X(device_status)

class running {
 public:
  explicit running(const char* slot) : before_(running_slot) {
    running_slot = called_slot = slot;
    last_slot = slot;
  }
  ~running() { running_slot = before_; }
  running(const running&) = delete;
  running& operator=(const running&) = delete;

 private:
  const char* before_;
};

// Tag makes one class for each slot; functions of the plugin are the same for each of its backends.
template <class Tag, class Function>
struct named;
template <class Tag, class Result, class... Args>
struct named<Tag, Result (*)(Args...)> {
  static inline Result (*real)(Args...) = nullptr;
  static Result call(Args... args) {
    const running now(Tag::name);
    return real(args...);
  }
};

template <class Tag, class Function>
void name_one(Function& slot) {
  using one = named<Tag, Function>;
  if (slot == nullptr || slot == one::call) return;
  if (one::real == nullptr) one::real = slot;
  if (one::real == slot) slot = one::call;
}

#define BITNET_TAG(slot)                       \
  struct tag_##slot {                          \
    static constexpr const char* name = #slot; \
  };
BITNET_REQUIRED_SLOTS(BITNET_TAG)
BITNET_OPTIONAL_SLOTS(BITNET_TAG)
#undef BITNET_TAG

// The call that crashed runs again once this returns, with the signal's usual end. A worker's crash
// is that of the slot that was called last. Builds with sanitizers leave signals to their run time.
[[maybe_unused]] void on_crash(int) {
  const char* slot = running_slot != nullptr ? running_slot : last_slot.load();
  if (slot != nullptr) channel::slot_of_crash(slot);
}

}  // namespace

void name_slots(bitnet_backend_v0& table) {
#define BITNET_REQUIRE(slot) \
  if (table.slot == nullptr) throw std::runtime_error("the slot " #slot " of its table is NULL");
  BITNET_REQUIRED_SLOTS(BITNET_REQUIRE)
#undef BITNET_REQUIRE
#define BITNET_NAME(slot) name_one<tag_##slot>(table.slot);
  BITNET_REQUIRED_SLOTS(BITNET_NAME)
  BITNET_OPTIONAL_SLOTS(BITNET_NAME)
#undef BITNET_NAME
}

void report_slot_of_crash() {
#if !defined(BITNET_SANITIZED)  // whose run time has handlers of its own
  static constexpr std::size_t stack_bytes = 64 * 1024;
  static stack_t own{};
  own.ss_sp = std::malloc(stack_bytes);  // for as long as the process lives
  own.ss_size = stack_bytes;
  if (own.ss_sp == nullptr || sigaltstack(&own, nullptr) != 0) return;
  struct sigaction action{};
  action.sa_handler = on_crash;
  action.sa_flags = SA_ONSTACK | static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(signal, &action, nullptr);
#endif
}

}  // namespace bitnet::conformance
