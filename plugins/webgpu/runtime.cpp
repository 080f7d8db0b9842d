#include "runtime.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <thread>
#include <vector>

namespace bitnet::webgpu {
namespace {

void take_scope(uint32_t status, uint32_t type, string_view message, void* userdata, void*) {
  const std::shared_ptr<answer> to = answer::take(userdata);
  to->status = status;
  to->type = type;
  to->message = line_of(message);
  to->given = true;
}

void take_device(uint32_t status, device_handle device, string_view message, void* userdata,
                 void*) {
  const std::shared_ptr<answer> to = answer::take(userdata);
  to->status = status;
  to->handle = device;
  to->message = line_of(message);
  to->given = true;
}

}  // namespace

std::string line_of(string_view text) {
  if (!text.data) return "";
  constexpr size_t most = 160;
  std::string out(text.data, text.length == SIZE_MAX ? strnlen(text.data, 4 * most) : text.length);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  out.erase(
      std::unique(out.begin(), out.end(), [](char a, char b) { return a == ' ' && b == ' '; }),
      out.end());
  if (out.size() > most) out.resize(most);
  return out;
}

runtime::~runtime() {
  if (instance) wgpu.InstanceRelease(instance);
}

bitnet_status runtime::start(const sdk::reporter& report) {
  const std::scoped_lock held(lock);
  native_instance_extras extras;
  instance_descriptor wanted;
  if (!wgpu.version.empty()) wanted.nextInChain = &extras.chain;
  instance = wgpu.CreateInstance(&wanted);
  if (instance) return BITNET_OK;
  return report.fail(BITNET_UNAVAILABLE, "%s gives no instance; update it", wgpu.file.c_str());
}

bool runtime::wait(const answer& to) const {
  using namespace std::chrono_literals;
  const auto until = std::chrono::steady_clock::now() + 60s;
  for (auto pause = 1us;; pause = std::min<std::chrono::microseconds>(2 * pause, 1000us)) {
    {
      const std::scoped_lock held(lock);
      if (to.given) return true;
      wgpu.InstanceProcessEvents(instance);
      if (to.given) return true;
    }
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(pause);
  }
}

connection::~connection() {
  const std::scoped_lock held(on.lock);
  if (queue) wgpu().QueueRelease(queue);
  if (!device) return;
  wgpu().DeviceDestroy(device);
  wgpu().DeviceRelease(device);
  wgpu().InstanceProcessEvents(on.instance);  // to deliver pending callbacks
}

// A few bytes for each opened device. They stay reachable, so they are no leak.
connection::said& connection::made_for_ever() {
  static std::mutex lock;
  static auto& all = *new std::vector<std::unique_ptr<said>>;
  const std::scoped_lock held(lock);
  return *all.emplace_back(std::make_unique<said>());
}

void connection::lose(const device_handle*, uint32_t, string_view message, void* userdata, void*) {
  said& to = *static_cast<said*>(userdata);
  const std::scoped_lock held(to.lock);
  to.lost = true;
  if (to.message.empty()) to.message = line_of(message);
}

void connection::complain(const device_handle*, uint32_t type, string_view message, void* userdata,
                          void*) {
  said& to = *static_cast<said*>(userdata);
  const std::scoped_lock held(to.lock);
  if (to.type != error_none) return;
  to.type = type;
  to.message = line_of(message);
}

bitnet_status connection::open(adapter_handle adapter, const limits& wanted, bool subgroups,
                               bool timestamps, const sdk::reporter& report) {
  uint32_t features[2] = {};
  device_descriptor asked;
  if (subgroups) features[asked.requiredFeatureCount++] = feature_subgroups;
  if (timestamps) features[asked.requiredFeatureCount++] = feature_timestamp_query;
  asked.requiredFeatures = features;
  asked.requiredLimits = &wanted;
  asked.deviceLostCallbackInfo.callback = lose;
  asked.deviceLostCallbackInfo.userdata1 = &said_;
  asked.uncapturedErrorCallbackInfo.callback = complain;
  asked.uncapturedErrorCallbackInfo.userdata1 = &said_;
  const auto made = std::make_shared<answer>();
  request_device_callback_info call;
  call.callback = take_device;
  call.userdata1 = answer::give(made);
  {
    const std::scoped_lock held(on.lock);
    wgpu().AdapterRequestDevice(adapter, &asked, call);
  }
  if (!on.wait(*made) || made->status != status_success || !made->handle)
    return report.from("webgpu", made->status)
        .fail(BITNET_UNAVAILABLE, "%s gives no device: %s; update %s or the driver", name.c_str(),
              made->given ? made->message.c_str() : "no answer in 60 s", wgpu().file.c_str());
  const std::scoped_lock held(on.lock);
  device = static_cast<device_handle>(made->handle);
  queue = wgpu().DeviceGetQueue(device);
  return BITNET_OK;
}

bitnet_status connection::health(const sdk::reporter& report) const {
  const std::scoped_lock held(said_.lock);
  if (said_.lost)
    return report.fail(BITNET_DEVICE_LOST, "%s is lost: %s; open the device again", name.c_str(),
                       said_.message.c_str());
  if (said_.type == error_none) return BITNET_OK;
  return fail("an earlier call", said_.type, said_.message, report);
}

bitnet_status connection::fail(const char* call, uint32_t type, const std::string& message,
                               const sdk::reporter& report) const {
  const sdk::reporter to = report.from("webgpu", type);
  if (type == error_out_of_memory)
    return to.fail(BITNET_OUT_OF_DEVICE_MEMORY,
                   "%s: %s finds no memory (%s); use a smaller model, context or batch, or "
                   "request another device",
                   name.c_str(), call, message.c_str());
  return to.fail(BITNET_INTERNAL, "%s: %s failed: %s; report it with the version of %s",
                 name.c_str(), call, message.c_str(), wgpu().file.c_str());
}

namespace {
// wgpu-native aborts on a filter for internal errors. They arrive at complain() like all others.
constexpr uint32_t filters[] = {filter_out_of_memory, filter_validation};
}  // namespace

void connection::open_scopes() const {
  for (const uint32_t filter : filters) wgpu().DevicePushErrorScope(device, filter);
}

bitnet_status connection::close_scopes(const char* call, const sdk::reporter& report) const {
  bitnet_status first = BITNET_OK;
  for (size_t i = 0; i < std::size(filters); ++i) {
    const auto found = std::make_shared<answer>();
    pop_error_scope_callback_info ask;
    ask.callback = take_scope;
    ask.userdata1 = answer::give(found);
    wgpu().DevicePopErrorScope(device, ask);
    if (!on.wait(*found))
      return report.fail(BITNET_DEVICE_LOST, "%s: %s gets no answer in 60 s", name.c_str(), call);
    if (first == BITNET_OK && found->status == status_success && found->type > error_none)
      first = fail(call, found->type, found->message, report);
  }
  return first != BITNET_OK ? first : health(report);
}

}  // namespace bitnet::webgpu
