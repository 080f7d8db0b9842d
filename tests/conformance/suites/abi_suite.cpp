// The entry and the facts: what a host relies on before it computes anything.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "bitnet/abi/answers.h"
#include "harness/identity.hpp"
#include "model/kv_types.hpp"
#include "reference/names.hpp"
#include "suites/abi.hpp"

namespace bitnet::conformance {
namespace {

constexpr uint32_t most_devices = BITNET_MOST_DEVICES, most_kernels = BITNET_MOST_KERNELS;

template <std::size_t N>
bool terminated(const char (&text)[N]) {
  return std::memchr(text, 0, N) != nullptr;
}

std::string text_of(const bitnet_str& s) {
  return s.data == nullptr ? "" : std::string(s.data, s.size);
}

void expect_failure(const outcome& o, bitnet_status status, const char* what) {
  EXPECT_EQ(o.status, status) << what;
  EXPECT_EQ(o.complaint, "") << what;
}

bitnet_device_info device_info(const bitnet_backend_v0& t, uint32_t index) {
  bitnet_device_info d{};
  d.struct_size = sizeof d;
  must([&](bitnet_error* e) { return t.device_info(t.self, index, &d, e); });
  return d;
}

TEST(abi, entry_may_be_called_again_and_again) {
  for (int i = 0; i < 3; ++i) const opened one;
  const opened first, second;
  EXPECT_NE(first.table().info, nullptr);
  EXPECT_NE(second.table().info, nullptr);
}

TEST(abi, table_is_filled_as_the_contract_says) {
  host_services host(1);
  guarded_table room;
  bitnet_backend_v0& t = room.get();
  const outcome o = call_entry(entry_of_plugin(), host.table(), t, {});
  ASSERT_EQ(o.status, BITNET_OK) << o.message;
  EXPECT_EQ(room.overrun(), 0u) << "bytes behind the host's table were written";
  EXPECT_EQ(t.struct_size, sizeof t);
  EXPECT_LE(t.filled_size, sizeof t);
  EXPECT_LE(t.abi_minor, BITNET_ABI_MINOR);
  EXPECT_EQ(t.reserved_0, 0u);
  for (const uint64_t feature : t.features_used) EXPECT_EQ(feature, 0u) << "none is defined";
  t.close(t.self);
}

// Every minor of this major, each alone: a plugin speaks it or says which ones it speaks.
TEST(abi, each_minor_is_spoken_or_rejected) {
  for (uint32_t minor = 0; minor <= BITNET_ABI_MINOR; ++minor) {
    SCOPED_TRACE(minor);
    host_services host(1);
    guarded_table room;
    bitnet_backend_v0& t = room.get();
    open_how how;
    how.change = [&](bitnet_open_request& r) { r.abi_minor_min = r.abi_minor_max = minor; };
    const outcome o = call_entry(entry_of_plugin(), host.table(), t, how);
    if (o.status == BITNET_OK) {
      EXPECT_EQ(t.abi_minor, minor);
      t.close(t.self);
      continue;
    }
    expect_failure(o, BITNET_INCOMPATIBLE, "a minor that it does not speak");
    EXPECT_LE(t.need_minor_min, t.need_minor_max);
    EXPECT_TRUE(minor < t.need_minor_min || minor > t.need_minor_max);
  }
}

// What readers of the file know before a byte of it runs is what the entry then says.
TEST(abi, the_note_has_the_minors_that_the_entry_speaks) {
  host_services host(1);
  guarded_table room;
  bitnet_backend_v0& t = room.get();
  const outcome o = call_entry(entry_of_plugin(), host.table(), t, {});
  ASSERT_EQ(o.status, BITNET_OK) << o.message;
  identity note = identity_of(reinterpret_cast<const void*>(entry_of_plugin()));
  EXPECT_EQ(note.fields["abi"],
            "0." + std::to_string(t.need_minor_min) + "-" + std::to_string(t.need_minor_max))
      << "need_minor_min and need_minor_max are " << t.need_minor_min << " and "
      << t.need_minor_max;
  t.close(t.self);
}

TEST(abi, minors_of_the_future_are_rejected) {
  host_services host(1);
  guarded_table room;
  bitnet_backend_v0& t = room.get();
  open_how how;
  constexpr uint32_t far = BITNET_ABI_MINOR + 100'000;
  how.change = [](bitnet_open_request& r) { r.abi_minor_min = far, r.abi_minor_max = far + 3; };
  const outcome o = call_entry(entry_of_plugin(), host.table(), t, how);
  expect_failure(o, BITNET_INCOMPATIBLE, "no minor in common");
  EXPECT_LE(t.need_minor_min, t.need_minor_max);
  EXPECT_LT(t.need_minor_max, far);
  EXPECT_TRUE(room.untouched(offsetof(bitnet_backend_v0, self)))
      << "slots of a rejection were filled";
}

TEST(abi, a_range_of_minors_is_narrowed) {
  open_how how;
  how.change = [](bitnet_open_request& r) { r.abi_minor_max = BITNET_ABI_MINOR + 1000; };
  host_services host(1);
  guarded_table room;
  const outcome o = call_entry(entry_of_plugin(), host.table(), room.get(), how);
  ASSERT_EQ(o.status, BITNET_OK) << o.message;
  EXPECT_GE(room.get().abi_minor, 0u);
  EXPECT_LE(room.get().abi_minor, room.get().need_minor_max);
  room.get().close(room.get().self);
}

// An older host has a shorter table, a later one a longer table.
TEST(abi, tables_of_other_hosts_are_respected) {
  const uint32_t sizes[] = {offsetof(bitnet_backend_v0, query_interface), sizeof(bitnet_backend_v0),
                            sizeof(bitnet_backend_v0) + 64};
  for (const uint32_t size : sizes) {
    SCOPED_TRACE(size);
    host_services host(1);
    guarded_table room(size);
    bitnet_backend_v0& t = room.get();
    const outcome o = call_entry(entry_of_plugin(), host.table(), t, {});
    ASSERT_EQ(o.status, BITNET_OK) << o.message;
    EXPECT_EQ(room.overrun(), 0u);
    EXPECT_EQ(t.struct_size, size);
    EXPECT_LE(t.filled_size, size);
    EXPECT_TRUE(room.untouched(t.filled_size)) << "more was written than filled_size says";
    t.close(t.self);
  }
}

TEST(abi, a_table_without_room_for_slots_is_rejected_or_left) {
  for (const uint32_t size : {24u, static_cast<uint32_t>(offsetof(bitnet_backend_v0, self))}) {
    SCOPED_TRACE(size);
    host_services host(1);
    guarded_table room(size);
    call_entry(entry_of_plugin(), host.table(), room.get(), {});
    EXPECT_EQ(room.overrun(), 0u) << "the entry wrote past a table of " << size << " bytes";
  }
}

TEST(abi, longer_structs_of_a_later_host_are_read) {
  struct later_request {
    bitnet_open_request request;
    uint64_t more[4];
  } later{};
  std::fill_n(later.more, 4, ~uint64_t{0});
  struct later_host {
    bitnet_host_v0 host;
    uint64_t more[4];
  } longer{};
  std::fill_n(longer.more, 4, ~uint64_t{0});
  host_services host(1);
  longer.host = *host.table();
  longer.host.struct_size = sizeof longer;
  later.request.struct_size = sizeof later;
  later.request.purpose = BITNET_PURPOSE_CONFORMANCE;
  later.request.abi_minor_min = BITNET_ABI_OLDEST_MINOR;
  later.request.abi_minor_max = BITNET_ABI_MINOR;
  later.request.generation = 1;
  guarded_table room;
  const outcome o = attempt([&](bitnet_error* e) {
    return entry_of_plugin()(&longer.host, &later.request, &room.get(), e);
  });
  ASSERT_EQ(o.status, BITNET_OK) << o.message;
  room.get().close(room.get().self);
}

TEST(abi, unknown_features_and_settings_are_ignored) {
  const std::string key = "x.conformance.unknown", value = "1";
  const bitnet_param params[] = {{{key.data(), key.size()}, {value.data(), value.size()}},
                                 {{key.data(), key.size()}, {nullptr, 0}}};
  open_how how;
  how.change = [&](bitnet_open_request& r) {
    std::fill_n(r.host_features, 4, ~uint64_t{0});
    r.n_params = 2;
    r.params = params;
  };
  const opened one(how);
  for (const uint64_t feature : one.table().features_used) EXPECT_EQ(feature, 0u);
}

TEST(abi, info_names_the_backend) {
  const opened one;
  const bitnet_backend_v0& t = one.table();
  bitnet_backend_info info{};
  info.struct_size = sizeof info;
  must([&](bitnet_error* e) { return t.info(t.self, &info, e); });
  EXPECT_EQ(info.struct_size, sizeof info);
  for (const bitnet_str& s : {info.name, info.version, info.vendor, info.license})
    EXPECT_TRUE(s.data != nullptr && s.size != 0 && s.size < 256) << "a name is missing";
  EXPECT_TRUE(info.driver.data != nullptr || info.driver.size == 0);
  constexpr uint32_t known = BITNET_LIFE_THREAD_FREE | BITNET_LIFE_UNLOADABLE |
                             BITNET_LIFE_HOT_SWAP | BITNET_LIFE_USES_HOST_POOL;
  EXPECT_EQ(info.life_flags & ~known, 0u) << "life flags that do not exist";
  identity note = identity_of(reinterpret_cast<const void*>(entry_of_plugin()));
  EXPECT_EQ(text_of(info.name), note.fields["name"]) << "the identity note has another name";
  EXPECT_EQ(text_of(info.version), note.fields["version"]) << "the note has another version";
  EXPECT_NE(note.build_id, "") << "link with --build-id";
}

TEST(abi, structs_of_an_older_host_are_not_overrun) {
  const opened one;
  const bitnet_backend_v0& t = one.table();
  struct {
    bitnet_backend_info info;
    uint64_t canary;
  } room{};
  room.canary = 0x5a5a5a5a5a5a5a5a;
  room.info.struct_size = offsetof(bitnet_backend_info, driver);
  attempt([&](bitnet_error* e) { return t.info(t.self, &room.info, e); });
  EXPECT_EQ(room.info.driver.data, nullptr) << "written behind the host's struct_size";
  EXPECT_EQ(room.info.driver.size, 0u) << "written behind the host's struct_size";
}

TEST(abi, device_info_of_an_older_host_is_not_overrun) {
  const opened one;
  const bitnet_backend_v0& t = one.table();
  if (device_count(t) == 0) GTEST_SKIP() << "there is no device";
  bitnet_device_info d{};
  d.struct_size = offsetof(bitnet_device_info, kv_dtypes);
  d.kv_dtypes = d.attention_flags = 0x5a5a5a5a;
  attempt([&](bitnet_error* e) { return t.device_info(t.self, 0, &d, e); });
  EXPECT_EQ(d.kv_dtypes, 0x5a5a5a5au) << "written behind the host's struct_size";
  EXPECT_EQ(d.attention_flags, 0x5a5a5a5au) << "written behind the host's struct_size";
}

TEST(abi, devices_are_possible_and_stay_the_same) {
  const opened one;
  const bitnet_backend_v0& t = one.table();
  const uint32_t n = device_count(t);
  ASSERT_LE(n, most_devices);
  EXPECT_EQ(device_count(t), n);
  if (n == 0) GTEST_SKIP() << "there is no device";
  for (uint32_t i = 0; i < n; ++i) {
    SCOPED_TRACE(i);
    const bitnet_device_info d = device_info(t, i);
    EXPECT_EQ(d.struct_size, sizeof d);
    EXPECT_NE(d.device_class, 0u);
    EXPECT_TRUE(terminated(d.name) && terminated(d.uuid) && terminated(d.pci_address) &&
                terminated(d.arch) && terminated(d.driver_version))
        << "a string has no end";
    EXPECT_NE(d.buffer_alignment_bytes, 0u);
    EXPECT_EQ(d.buffer_alignment_bytes & (d.buffer_alignment_bytes - 1), 0u) << "no power of two";
    uint32_t kv = 0;
    for (const kv_type& type : all_kv_types) kv |= 1u << type.dtype;
    EXPECT_EQ(d.kv_dtypes & ~kv, 0u);
    EXPECT_EQ(d.attention_flags & ~(BITNET_ATTENTION_WINDOW | BITNET_ATTENTION_LAYER_WINDOW), 0u);
    EXPECT_EQ(d.logits_flags & ~BITNET_LOGITS_LARGEST, 0u);
    EXPECT_EQ(d.reserved_0, 0u);
    const bitnet_device_info again = device_info(t, i);
    EXPECT_STREQ(d.uuid, again.uuid);
    EXPECT_STREQ(d.name, again.name);
    EXPECT_STREQ(d.arch, again.arch);
    EXPECT_EQ(d.device_class, again.device_class);
  }
  bitnet_device_info d{};
  d.struct_size = sizeof d;
  const outcome o = attempt([&](bitnet_error* e) { return t.device_info(t.self, n, &d, e); });
  EXPECT_NE(o.status, BITNET_OK) << "a device that is not there was described";
  EXPECT_EQ(o.complaint, "");
}

TEST(abi, what_a_device_does_is_possible) {
  {
    const opened one;
    if (one.table().device_status == nullptr) GTEST_SKIP() << "it has no device_status";
    if (device_count(one.table()) <= run_options().device) GTEST_SKIP() << "there is no device";
  }
  const opened_device d;
  const bitnet_backend_v0& t = d.table();
  const auto ask = [&] {
    bitnet_device_status s{};
    s.struct_size = sizeof s;
    must([&](bitnet_error* e) { return t.device_status(d.device, &s, e); });
    const char* wrong = bitnet_wrong_device_status(&s);
    if (wrong != nullptr) ADD_FAILURE() << "device_status " << wrong;
    return s;
  };
  const bitnet_device_status first = ask(), again = ask();
  constexpr uint32_t all = 2 * BITNET_STATUS_POOL_USE - 1;
  EXPECT_EQ(first.known & ~all, 0u) << "bits that this minor does not have";
  EXPECT_EQ(again.known & ~all, 0u) << "bits that this minor does not have";
  if ((first.known & again.known & BITNET_STATUS_MEMORY) != 0) {
    EXPECT_EQ(first.memory_total_bytes, again.memory_total_bytes) << "the total changed";
  }
  struct {
    bitnet_device_status status;
    uint64_t canary;
  } room{};
  room.status.struct_size = offsetof(bitnet_device_status, reserved_0);
  room.status.reserved_0 = 0x5a5a5a5a;
  room.canary = 0x5a5a5a5a5a5a5a5a;
  attempt([&](bitnet_error* e) { return t.device_status(d.device, &room.status, e); });
  EXPECT_EQ(room.status.reserved_0, 0x5a5a5a5au) << "written behind the host's struct_size";
  EXPECT_EQ(room.canary, 0x5a5a5a5a5a5a5a5au) << "written behind the host's struct_size";
}

// All kernels of a device, with one element more than asked for, to see that it stays.
std::vector<bitnet_kernel_info> list_kernels(const bitnet_backend_v0& t, uint32_t device) {
  uint32_t n = 0;
  must([&](bitnet_error* e) { return t.kernels(t.self, device, nullptr, 0, &n, e); });
  if (n > most_kernels) throw std::runtime_error(std::to_string(n) + " kernels");
  std::vector<bitnet_kernel_info> out(n + 1);
  out[n].op = 0x5a5a5a5a;
  uint32_t count = n;
  must([&](bitnet_error* e) {
    return t.kernels(t.self, device, out.data(), sizeof out[0], &count, e);
  });
  EXPECT_EQ(count, n) << "the number of kernels changed";
  EXPECT_EQ(out[n].op, 0x5a5a5a5au) << "more kernels were written than there was room for";
  out.pop_back();
  return out;
}

TEST(abi, kernels_are_possible_and_stay_the_same) {
  const opened one;
  const bitnet_backend_v0& t = one.table();
  const uint32_t devices = std::min(device_count(t), most_devices);
  for (uint32_t d = 0; d < devices; ++d) {
    const std::vector<bitnet_kernel_info> all = list_kernels(t, d), again = list_kernels(t, d);
    ASSERT_EQ(all.size(), again.size());
    std::set<std::string> seen;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bitnet_kernel_info& k = all[i];
      ASSERT_TRUE(terminated(k.id)) << "the id of kernel " << i << " has no end";
      SCOPED_TRACE(k.id);
      EXPECT_STREQ(k.id, again[i].id);
      EXPECT_NE(k.id[0], 0);
      EXPECT_NE(op_name(k.op).substr(0, 3), "op ") << "an op that does not exist: " << k.op;
      EXPECT_TRUE(k.level >= BITNET_LEVEL_REFERENCE && k.level <= BITNET_LEVEL_FUSED) << k.level;
      EXPECT_LE(k.format, BITNET_FORMAT_TERNARY2);
      EXPECT_LE(k.precision, BITNET_PRECISION_BF16);
      EXPECT_EQ(k.exact & ~(BITNET_EXACT_INTEGER | BITNET_EXACT_BATCH | BITNET_EXACT_RUN), 0u);
      EXPECT_TRUE(
          seen.insert(std::to_string(k.op) + "/" + std::to_string(k.format) + "/" + k.id).second)
          << "listed twice";
    }
    if (all.size() < 2) continue;
    // The capacity rule with less room than there is.
    std::vector<bitnet_kernel_info> some(2);
    some[1].op = 0x5a5a5a5a;
    uint32_t count = 1;
    must([&](bitnet_error* e) {
      return t.kernels(t.self, d, some.data(), sizeof some[0], &count, e);
    });
    EXPECT_EQ(count, all.size());
    EXPECT_STREQ(some[0].id, all[0].id);
    EXPECT_EQ(some[1].op, 0x5a5a5a5au) << "written past the capacity";
  }
}

// What a probe sees is what a load gets.
TEST(abi, purposes_see_the_same_devices) {
  std::vector<std::string> seen[2];
  for (const uint32_t purpose : {BITNET_PURPOSE_LOAD, BITNET_PURPOSE_PROBE}) {
    open_how how;
    how.purpose = purpose;
    const opened one(how);
    const uint32_t n = std::min(device_count(one.table()), most_devices);
    for (uint32_t i = 0; i < n; ++i) {
      const bitnet_device_info d = device_info(one.table(), i);
      seen[purpose == BITNET_PURPOSE_PROBE].push_back(
          std::string(d.uuid, strnlen(d.uuid, sizeof d.uuid)) + "/" +
          std::string(d.name, strnlen(d.name, sizeof d.name)));
    }
  }
  EXPECT_EQ(seen[0], seen[1]);
}

TEST(abi, unknown_interfaces_are_not_there) {
  const opened one;
  const bitnet_backend_v0& t = one.table();
  if (t.query_interface == nullptr) GTEST_SKIP() << "it has no optional interfaces";
  const std::string name = "x.conformance.no-such-interface";
  EXPECT_EQ(t.query_interface(t.self, {name.data(), name.size()}, 0), nullptr);
  EXPECT_EQ(t.query_interface(t.self, {nullptr, 0}, 0), nullptr);
  for (const std::string known : {"bitnet.packed-weights", "bitnet.tuning"}) {
    EXPECT_EQ(t.query_interface(t.self, {known.data(), known.size()}, 1'000'000), nullptr)
        << known << " of a version that does not exist";
    const bitnet_interface_header* h = t.query_interface(t.self, {known.data(), known.size()}, 1);
    if (h == nullptr) continue;
    const char* wrong =
        known == "bitnet.tuning"
            ? bitnet_wrong_tuning_interface(reinterpret_cast<const bitnet_tuning_v1*>(h))
            : bitnet_wrong_packed_interface(reinterpret_cast<const bitnet_packed_weights_v1*>(h));
    EXPECT_EQ(wrong, nullptr) << known << ": query_interface " << wrong;
  }
}

}  // namespace
}  // namespace bitnet::conformance
