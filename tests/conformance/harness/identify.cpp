// The first look, before any suite: what breaks here would break every one of them.

#include <sys/resource.h>

#include <algorithm>
#include <exception>
#include <string>

#include "harness/channel.hpp"
#include "harness/child.hpp"
#include "harness/identity.hpp"
#include "harness/plugin.hpp"
#include "model/requests.hpp"

namespace bitnet::conformance {
namespace {

std::string text_of(const bitnet_str& s) {
  constexpr uint64_t longest = 4096;
  return s.data == nullptr ? "" : std::string(s.data, std::min(s.size, longest));
}
template <std::size_t N>
std::string text_of(const char (&text)[N]) {
  return {text, strnlen(text, N)};
}

// A failure of the first look, as a test of the suite abi.
int reject(const std::string& why) {
  channel::say({{"ended", "abi.opens"}, {"status", "failed"}, {"text", why}});
  channel::say({{"done", 1}});
  return 1;
}

void stage(const char* name) {
  channel::say({{"stage", name}});
}

// Why there is no device to compute on; "" if there is one.
std::string look_at_device(const bitnet_backend_v0& t, const options& o) {
  stage("device_count");
  uint32_t count = 0;
  const outcome counted =
      attempt([&](bitnet_error* e) { return t.device_count(t.self, &count, e); });
  if (counted.status == BITNET_UNAVAILABLE) return counted.message;
  if (counted.status != BITNET_OK) throw call_failed(counted);
  channel::say({{"fact", {{"devices", count}}}});
  if (count == 0) return "the backend has no device here";
  if (o.device >= count)
    return "there is no device " + std::to_string(o.device) + ": the backend has " +
           std::to_string(count);
  stage("device_info");
  bitnet_device_info d{};
  d.struct_size = sizeof d;
  must([&](bitnet_error* e) { return t.device_info(t.self, o.device, &d, e); });
  channel::say({{"fact",
                 {{"device", text_of(d.name)},
                  {"arch", text_of(d.arch)},
                  {"driver_version", text_of(d.driver_version)}}}});
  stage("device_open");
  bitnet_device* device = nullptr;
  const outcome o_opened =
      attempt([&](bitnet_error* e) { return open_device(t, o.device, &device, e); });
  if (o_opened.status == BITNET_UNAVAILABLE) return o_opened.message;
  if (o_opened.status != BITNET_OK) throw call_failed(o_opened);
  stage("device_close");
  t.device_close(device);
  return "";
}

// The whole table, since a plugin that breaks a rule of it cannot be asked anything.
std::string table_complaint(const bitnet_backend_v0& t) {
  if (t.struct_size != sizeof t) return "it changed the table's struct_size";
  if (t.filled_size > sizeof t)
    return "filled_size is " + std::to_string(t.filled_size) + ", the host's table has " +
           std::to_string(sizeof t);
  if (t.filled_size < offsetof(bitnet_backend_v0, query_interface))
    return "filled_size is " + std::to_string(t.filled_size) + ": required slots are missing";
  using slot = void (*)();
  for (std::size_t at = offsetof(bitnet_backend_v0, info);
       at < offsetof(bitnet_backend_v0, query_interface); at += sizeof(slot)) {
    slot one = nullptr;
    std::memcpy(static_cast<void*>(&one), reinterpret_cast<const char*>(&t) + at, sizeof one);
    if (one == nullptr) return "the required slot at byte " + std::to_string(at) + " is NULL";
  }
  return "";
}

}  // namespace

int identify(const options& o) {
  try {
    stage("dlopen");
    const bitnet_backend_entry entry = entry_of_plugin();
    const identity note = identity_of(reinterpret_cast<const void*>(entry));
    channel::say({{"fact", {{"build_id", note.build_id}}}});
    stage("entry");
    host_services host(2);
    guarded_table room;
    bitnet_backend_v0& t = room.get();
    const outcome o_entry = call_entry(entry, host.table(), t, {});
    if (room.overrun() != 0) return reject("the entry wrote past the table that the host gave it");
    if (o_entry.status == BITNET_UNAVAILABLE) {
      channel::say({{"fact", {{"unavailable", o_entry.message}, {"opens", false}}}});
      channel::say({{"done", 0}});
      return 0;
    }
    if (o_entry.status != BITNET_OK)
      return reject("the entry failed with status " + std::to_string(o_entry.status) + ": " +
                    o_entry.message);
    if (const std::string why = table_complaint(t); !why.empty()) return reject(why);
    stage("info");
    bitnet_backend_info info{};
    info.struct_size = sizeof info;
    must([&](bitnet_error* e) { return t.info(t.self, &info, e); });
    channel::say({{"fact",
                   {{"backend", text_of(info.name)},
                    {"version", text_of(info.version)},
                    {"vendor", text_of(info.vendor)},
                    {"driver", text_of(info.driver)},
                    {"abi_minor", t.abi_minor},
                    {"life_flags", info.life_flags}}}});
    const std::string unavailable = look_at_device(t, o);
    if (!unavailable.empty()) channel::say({{"fact", {{"unavailable", unavailable}}}});
    stage("close");
    bitnet_error err{};
    err.struct_size = sizeof err;
    constexpr uint64_t patience_ns = 10'000'000'000;
    t.quiesce(t.self, patience_ns, &err);
    t.close(t.self);
    host.forbid("close");
    stage("exit");
    channel::say({{"done", 0}});
    return 0;
  } catch (const std::exception& e) {
    return reject(e.what());
  } catch (...) {
    return 1;  // thrown over the boundary, which is said already
  }
}

}  // namespace bitnet::conformance
