#include "timeline/timeline.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "timeline/clock.hpp"

namespace bitnet::host::timeline {
namespace {

constexpr int64_t host_process = 1;
constexpr int64_t device_process = 2;
constexpr std::size_t most_tracks = 4096;  // of each kind; more names would need unlimited memory

std::string_view view_of(const bitnet_str& text) {
  return {text.data, text.size};
}

// Names come from backends and may contain anything.
std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string ended_of(bitnet_status status) {
  return status == BITNET_OK          ? R"("ok")"
         : status == BITNET_CANCELLED ? R"("cancelled")"
                                      : fmt::format(R"("failed with status {}")", status);
}

std::string named(std::string_view what, int64_t process, int64_t track, std::string_view name) {
  return fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":{}}}}})", what,
                     process, track, json_text(name));
}

std::string thread_name() {
  std::array<char, 16> name{};
  if (::pthread_getname_np(::pthread_self(), name.data(), name.size()) != 0) return "thread";
  return name.data();
}

struct place {
  int64_t process, track;
};

// An event with a measured begin and end.
std::string span(std::string_view name, const bitnet_trace_event& e, place at,
                 std::string_view args) {
  return fmt::format(R"({{"name":"{}","cat":"host","ph":"X","ts":{},"dur":{},"pid":{},"tid":{},)"
                     R"("args":{{"runner":{},"step":{}{}}}}})",
                     name, microseconds(e.begin_ns),
                     microseconds(e.end_ns - std::min(e.begin_ns, e.end_ns)), at.process, at.track,
                     e.runner, e.step, args);
}

std::string counts_of(const bitnet_trace_event& e) {
  return fmt::format(R"(,"sequences":{},"tokens":{},"rows":{},"ended":{})", e.n_sequences,
                     e.n_tokens, e.n_outputs, ended_of(e.status));
}

// A kernel's sum over a step, with the time of reading and without a duration.
std::string kernel(const bitnet_trace_event& e, place at) {
  std::string args = fmt::format(
      R"("sum_of":"step","runner":{},"step":{},"device":{},"op":{},"calls":{})", e.runner, e.step,
      json_text(view_of(e.device)), json_text(view_of(e.op)), e.calls);
  if (e.time_ns != 0) args += fmt::format(R"(,"time_ns":{})", e.time_ns);
  if (e.bytes != 0) args += fmt::format(R"(,"bytes":{})", e.bytes);
  return fmt::format(
      R"({{"name":{},"cat":"kernel","ph":"i","s":"t","ts":{},"pid":{},"tid":{},"args":{{{}}}}})",
      json_text(view_of(e.kernel)), microseconds(e.end_ns), at.process, at.track, args);
}

}  // namespace

result<std::unique_ptr<timeline>> timeline::open(const std::string& path, uint64_t most_bytes,
                                                 std::string_view version) {
  auto file = event_file::open(path, most_bytes);
  if (!file) return std::unexpected(std::move(file.error()));
  std::unique_ptr<timeline> out(new timeline(*std::move(file)));
  out->begin(version);
  return out;
}

void timeline::begin(std::string_view version) {
  file_->add(named("process_name", host_process, 0, "host threads"));
  file_->add(named("process_name", device_process, 0, "devices"));
  file_->add(fmt::format(R"({{"name":"begin of trace","ph":"i","s":"g","pid":1,"tid":1,"ts":{},)"
                         R"("args":{{"program":{},"process":{},"clock":"CLOCK_MONOTONIC"}}}})",
                         microseconds(now_ns()), json_text(fmt::format("bitnet {}", version)),
                         ::getpid()));
}

void timeline::on_event(void* user, const bitnet_trace_event* event) {
  static_cast<timeline*>(user)->note(*event);
}

void timeline::note(const bitnet_trace_event& e) {
  if (e.kind < BITNET_TRACE_STEP || e.kind > BITNET_TRACE_KERNEL) return file_->drop();
  const place host{host_process, ::gettid()};
  const bool of_device = e.kind == BITNET_TRACE_DEVICE || e.kind == BITNET_TRACE_KERNEL;
  const place at =
      of_device ? place{device_process, device_track(view_of(e.device), e.runner)} : host;
  if (at.track == 0 || (!of_device && !name_thread(at.track))) return file_->drop();
  const std::string device = fmt::format(R"(,"device":{})", json_text(view_of(e.device)));
  switch (e.kind) {
    case BITNET_TRACE_STEP:
      return file_->add(span("step", e, at, counts_of(e)));
    case BITNET_TRACE_SUBMIT:
      return file_->add(span("submit", e, at, device));
    case BITNET_TRACE_WAIT:
      return file_->add(span("wait", e, at, device));
    case BITNET_TRACE_DEVICE:
      return file_->add(
          span("step", e, at, device + R"(,"measured":"by the host")" + counts_of(e)));
    case BITNET_TRACE_SAMPLE:
      return file_->add(span("sample", e, at, ""));
    case BITNET_TRACE_KERNEL:
      return file_->add(kernel(e, at));
    default:  // checked above: from a newer library
      break;
  }
}

// Whether the thread has a track.
bool timeline::name_thread(int64_t thread) {
  const std::lock_guard lock(mutex_);
  if (threads_.contains(thread)) return true;
  if (threads_.size() >= most_tracks) return false;
  threads_.insert(thread);
  file_->add(named("thread_name", host_process, thread, thread_name()));
  return true;
}

int64_t timeline::device_track(std::string_view device, uint64_t runner) {
  const std::lock_guard lock(mutex_);
  const std::pair key(std::string(device), runner);
  if (const auto known = devices_.find(key); known != devices_.end()) return known->second;
  if (devices_.size() >= most_tracks) return 0;
  const auto track = static_cast<int64_t>(devices_.size()) + 1;
  devices_.emplace(key, track);
  file_->add(
      named("thread_name", device_process, track, fmt::format("{}, runner {}", device, runner)));
  return track;
}

}  // namespace bitnet::host::timeline
