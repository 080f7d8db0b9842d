// The SDK's helpers that no kernel test reaches: errors, negotiation, memory placement, formats.

#include <gtest/gtest.h>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <future>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "bitnet/sdk/interpreter.hpp"
#include "golden.hpp"

namespace bitnet::parity {
namespace {

TEST(guarded, turns_every_exception_into_a_status) {
  const struct {
    void (*thrower)();
    bitnet_status status;
    const char* message;
  } rows[] = {
      {[] { throw std::bad_alloc(); }, BITNET_OUT_OF_MEMORY,
       "the host has no memory left; end other programs, or use a smaller model, context or batch"},
      {[] { throw std::runtime_error("why"); }, BITNET_INTERNAL, "why"},
      {[] { throw 7; }, BITNET_INTERNAL,
       "an exception of an unknown type; report it to the backend's vendor"}};
  for (const auto& row : rows) {
    bitnet_error err{};
    err.struct_size = sizeof err;
    const auto body = [&](const sdk::reporter&) {
      row.thrower();
      return bitnet_status{BITNET_OK};
    };
    EXPECT_EQ(sdk::guarded(&err, "slot", body), row.status);
    EXPECT_EQ(err.code, row.status);
    EXPECT_STREQ(err.message, row.message);
    EXPECT_STREQ(err.where, "slot");
    EXPECT_EQ(sdk::guarded(nullptr, "slot", body), row.status) << "no error wanted";
  }
}

TEST(guarded, says_where_an_error_of_the_system_comes_from) {
  class own_category final : public std::error_category {
    const char* name() const noexcept override { return "a-category-with-a-long-name"; }
    std::string message(int) const override { return "own"; }
  };
  static const own_category own;
  const struct {
    std::error_code code;
    const char* domain;
  } rows[] = {{{ENOSPC, std::generic_category()}, "errno"},
              {{ENOSPC, std::system_category()}, "errno"},
              {{ENOSPC, own}, "a-category-with"},
              {std::make_error_code(std::future_errc::no_state), "future"}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.domain);
    bitnet_error err{};
    err.struct_size = sizeof err;
    const auto body = [&](const sdk::reporter&) -> bitnet_status {
      throw std::system_error(row.code, "writing");
    };
    EXPECT_EQ(sdk::guarded(&err, "slot", body), BITNET_INTERNAL);
    EXPECT_EQ(err.native_code, row.code.value());
    EXPECT_STREQ(err.domain, row.domain);
    EXPECT_NE(std::string(err.message).find("writing"), std::string::npos);
  }
}

TEST(reporter, names_the_origin_of_one_failure_only) {
  bitnet_error err{};
  err.struct_size = sizeof err;
  const sdk::reporter report(&err, "slot");
  EXPECT_EQ(report.from("vulkan", -4).fail(BITNET_DEVICE_LOST, "gone"), BITNET_DEVICE_LOST);
  EXPECT_EQ(err.native_code, -4);
  EXPECT_STREQ(err.domain, "vulkan");
  EXPECT_STREQ(err.where, "slot");
  report.fail(BITNET_INTERNAL, "another");
  EXPECT_EQ(err.native_code, 0);
  EXPECT_STREQ(err.domain, "");
}

TEST(kv_pool, has_only_the_types_that_its_author_has) {
  bitnet_error err{};
  err.struct_size = sizeof err;
  bitnet_kv_config config{
      sizeof config, BITNET_DTYPE_Q8_0, BITNET_DTYPE_F16, 2, 3, 64, 64, 4, 5, 0, 0, 0};
  const auto create = [&](uint32_t kv_dtypes, uint64_t* bytes = nullptr) {
    return sdk::guarded(&err, "kv_pool_create", [&](const sdk::reporter& report) {
      sdk::kv_pool pool;
      const bitnet_status s = pool.create(&config, kv_dtypes, nullptr, report);
      if (bytes) *bytes = pool.storage().block_bytes;
      return s;
    });
  };
  EXPECT_EQ(create(0), BITNET_UNSUPPORTED) << "without a declaration a device has f32 and f16";
  uint64_t bytes = 0;
  EXPECT_EQ(create(1u << BITNET_DTYPE_F16 | 1u << BITNET_DTYPE_Q8_0, &bytes), BITNET_OK);
  EXPECT_EQ(bytes, 2u * 4 * 3 * (2 * 34 + 64 * 2));
  config.dtype_k = BITNET_DTYPE_F32;
  EXPECT_EQ(create(1u << BITNET_DTYPE_F16 | 1u << BITNET_DTYPE_Q8_0), BITNET_UNSUPPORTED);
  config.dtype_k = BITNET_DTYPE_Q4_0;
  EXPECT_EQ(create(1u << BITNET_DTYPE_F16 | 1u << BITNET_DTYPE_Q8_0), BITNET_UNSUPPORTED);
  EXPECT_EQ(create(1u << BITNET_DTYPE_F16 | 1u << BITNET_DTYPE_Q4_0, &bytes), BITNET_OK);
  EXPECT_EQ(bytes, 2u * 4 * 3 * (2 * 18 + 64 * 2));
  config.head_dim_k = config.head_dim_v = 80;
  EXPECT_EQ(create(1u << BITNET_DTYPE_F16 | 1u << BITNET_DTYPE_Q4_0), BITNET_UNSUPPORTED);
  EXPECT_NE(std::string(err.message).find("q4_0"), std::string::npos) << err.message;
  config.head_dim_k = config.head_dim_v = 64;
  config.dtype_k = BITNET_DTYPE_F32;
  EXPECT_EQ(create(0), BITNET_OK);
}

#if defined(__linux__)
// How the system is to place the page at `at`: MPOL_DEFAULT 0, MPOL_PREFERRED 1, MPOL_INTERLEAVE 3;
// -1 where it does not say.
int policy_at(const uint8_t* at) {
  int how = -1;
  unsigned long mask[16] = {};
  constexpr unsigned long of_address = 2;
  return syscall(SYS_get_mempolicy, &how, mask, 1024UL, at, of_address) == 0 ? how : -1;
}

TEST(memory, is_placed_by_nodes) {
  // Node 0 twice, as two numbers would be rejected here.
  constexpr uint64_t bytes = uint64_t{4} << 20;
  sdk::budget several(0, {true, {0, 0}}), none;
  sdk::memory usual(bytes, &none);
  usual.place_rows(1024, 16);
  usual.spread();
  if (policy_at(usual.data()) != 0) GTEST_SKIP() << "the system reports no memory policies";
  sdk::nodes::mask first;
  first.add(0);
  if (syscall(SYS_mbind, (reinterpret_cast<uintptr_t>(usual.data()) + 65535) / 65536 * 65536,
              65536UL, sdk::nodes::preferred, first.words, 1025UL, 0UL) != 0)
    GTEST_SKIP() << "the system refuses mbind";
  sdk::memory rows(bytes, &several), all(bytes, &several), small(1000, &several);
  rows.place_rows(1024, 16);
  EXPECT_EQ(policy_at(rows.data() + bytes / 4), 1);
  EXPECT_EQ(policy_at(rows.data() + bytes / 4 * 3), 1);
  all.spread();
  EXPECT_EQ(policy_at(all.data() + bytes / 2), 3);
  small.place_rows(10, 1);
  EXPECT_EQ(policy_at(small.data()), 0) << "not worth it";
  rows.data()[bytes / 2] = 1;
  sdk::memory moved = std::move(rows);
  EXPECT_EQ(moved.data()[bytes / 2], 1);
}

// Of the block that holds `at`, the line of smaps that says what was advised.
std::string advice_at(const uint8_t* at) {
  std::ifstream file("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    unsigned long first = 0, last = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &first, &last) == 2)
      inside = first <= reinterpret_cast<uintptr_t>(at) && reinterpret_cast<uintptr_t>(at) < last;
    else if (inside && line.starts_with("VmFlags:"))
      return line + " ";
  }
  return "";
}

TEST(memory, asks_for_large_pages_or_for_none) {
  constexpr uint64_t bytes = uint64_t{16} << 20;
  sdk::budget large(0, {true, {}}), small(0, {false, {}});
  const sdk::memory with(bytes, &large), without(bytes, &small), usual(bytes);
  const std::string said = advice_at(with.data() + bytes / 2);
  if (said.find(" hg ") == said.npos) GTEST_SKIP() << "the system has no large pages";
  EXPECT_NE(advice_at(usual.data() + bytes / 2).find(" hg "), said.npos);
  EXPECT_NE(advice_at(without.data() + bytes / 2).find(" nh "), said.npos);
}
#endif

TEST(reporter, cuts_long_messages_and_respects_short_errors) {
  bitnet_error err{};
  err.struct_size = sizeof err;
  const std::string endless(5000, 'x');
  sdk::reporter(&err, "slot").fail(BITNET_INTERNAL, "%s", endless.c_str());
  EXPECT_EQ(std::strlen(err.message), sizeof err.message - 1);
  bitnet_error other{};
  other.struct_size = 8;
  sdk::reporter(&other, "slot").fail(BITNET_INTERNAL, "no room");
  EXPECT_EQ(other.code, 0);
}

TEST(reporter, cuts_messages_between_characters) {
  const struct {
    const char* character;
    const char* why;
  } rows[] = {{"\u00e9", "two bytes"}, {"\u20ac", "three bytes"}, {"\U0001f600", "four bytes"}};
  constexpr std::size_t room = sizeof(bitnet_error{}.message) - 1;
  for (const auto& row : rows) {
    const std::size_t length = std::strlen(row.character);
    // The character begins so late that 0 to `length` of its bytes fit.
    for (std::size_t fitting = 0; fitting <= length; ++fitting) {
      SCOPED_TRACE(std::string(row.why) + ", of which fit " + std::to_string(fitting));
      const std::string before(room - fitting, 'x');
      bitnet_error err{};
      err.struct_size = sizeof err;
      sdk::reporter(&err, "slot").fail(BITNET_INTERNAL, "%s%sx", before.c_str(), row.character);
      EXPECT_EQ(err.message, fitting == length ? before + row.character : before);
    }
  }
  bitnet_error err{};
  err.struct_size = sizeof err;
  const std::string no_text(room + 1, '\x80');
  sdk::reporter(&err, "slot").fail(BITNET_INTERNAL, "%s", no_text.c_str());
  EXPECT_EQ(err.message, no_text.substr(1)) << "bytes that belong to no character stay";
}

bitnet_host_v0 idle_host() {
  bitnet_host_v0 host{};
  host.struct_size = sizeof host;
  host.log = [](void*, uint32_t, bitnet_str, bitnet_str) {};
  host.parallel_width = [](void*) -> uint32_t { return 1; };
  host.parallel_run = [](void*, uint32_t, bitnet_task, void*) { return bitnet_status{BITNET_OK}; };
  host.cancelled = [](void*, uint64_t) -> uint32_t { return 0; };
  host.now_ns = [](void*) -> uint64_t { return 0; };
  return host;
}

TEST(fill_table, negotiates_and_stays_within_the_hosts_table) {
  const struct {
    uint32_t host_min, host_max, plugin_min, plugin_max;
    bitnet_status status;
    uint32_t chosen;
    const char* why;
  } rows[] = {{0, 0, 0, 0, BITNET_OK, 0, "the same"},
              {0, 3, 0, 1, BITNET_OK, 1, "an old plugin in a new host"},
              {0, 1, 0, 3, BITNET_OK, 1, "a new plugin in an old host"},
              {1, 2, 1, 2, BITNET_OK, 2, "the newest that both speak"},
              {2, 4, 0, 1, BITNET_INCOMPATIBLE, 0, "a plugin that is too old"},
              {0, 1, 2, 4, BITNET_INCOMPATIBLE, 0, "a plugin that is too new"}};
  const bitnet_host_v0 host = idle_host();
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    struct {
      bitnet_backend_v0 table{};
      uint64_t canary = 0x5a5a5a5a5a5a5a5a;
    } out;
    // A host that knows nothing past `close`.
    out.table.struct_size = offsetof(bitnet_backend_v0, device_count);
    bitnet_open_request request{};
    request.struct_size = sizeof request;
    request.abi_minor_min = row.host_min;
    request.abi_minor_max = row.host_max;
    bitnet_backend_v0 slots{};
    slots.close = [](bitnet_backend*) {};
    slots.device_close = [](bitnet_device*) {};
    const sdk::reporter report(nullptr, "entry");
    EXPECT_EQ(sdk::fill_table(&host, &request, &out.table, slots, {row.plugin_min, row.plugin_max},
                              report),
              row.status);
    EXPECT_EQ(out.table.need_minor_min, row.plugin_min);
    EXPECT_EQ(out.table.need_minor_max, row.plugin_max);
    EXPECT_EQ(out.table.device_close, nullptr);
    EXPECT_EQ(out.canary, 0x5a5a5a5a5a5a5a5a);
    if (row.status != BITNET_OK) continue;
    EXPECT_EQ(out.table.abi_minor, row.chosen);
    EXPECT_EQ(out.table.filled_size, out.table.struct_size);
    EXPECT_NE(out.table.close, nullptr);
  }
}

TEST(open_interpreter, gives_the_author_the_minor_that_was_agreed_on) {
  static uint32_t agreed;
  const bitnet_host_v0 host = idle_host();
  for (const uint32_t newest_of_host : {1u, 2u}) {
    bitnet_open_request request{};
    request.struct_size = sizeof request;
    request.abi_minor_min = 1;
    request.abi_minor_max = newest_of_host;
    bitnet_backend_v0 out{};
    out.struct_size = sizeof out;
    const auto describe = [](const bitnet_open_request&, sdk::definition& d) {
      agreed = d.abi_minor;
    };
    ASSERT_EQ(sdk::open_interpreter(&host, &request, &out, nullptr, describe, {1, 2}), BITNET_OK);
    EXPECT_EQ(agreed, newest_of_host);
    EXPECT_EQ(out.abi_minor, newest_of_host);
    out.close(out.self);
  }
}

TEST(fill_table, rejects_a_table_that_cannot_be_closed) {
  const bitnet_host_v0 host = idle_host();
  bitnet_open_request request{};
  request.struct_size = sizeof request;
  bitnet_error err{};
  err.struct_size = sizeof err;
  const sdk::reporter report(&err, "entry");
  const uint32_t whole = offsetof(bitnet_backend_v0, device_count);
  for (const uint32_t size : {0u, 24u, uint32_t{offsetof(bitnet_backend_v0, self)}, whole - 1}) {
    SCOPED_TRACE(size);
    bitnet_backend_v0 out{};
    out.struct_size = size;
    EXPECT_EQ(sdk::fill_table(&host, &request, &out, {}, {}, report), BITNET_INVALID_ARGUMENT);
    EXPECT_EQ(out.filled_size, 0u);
    EXPECT_NE(std::string(err.message).find(std::to_string(size) + " bytes"), std::string::npos)
        << err.message;
  }
  EXPECT_EQ(sdk::fill_table(&host, &request, nullptr, {}, {}, report), BITNET_INVALID_ARGUMENT);
}

TEST(fill_table, rejects_a_host_without_services) {
  bitnet_host_v0 host = idle_host();
  host.cancelled = nullptr;
  bitnet_open_request request{};
  request.struct_size = sizeof request;
  bitnet_backend_v0 out{};
  out.struct_size = sizeof out;
  const sdk::reporter report(nullptr, "entry");
  EXPECT_EQ(sdk::fill_table(&host, &request, &out, {}, {}, report), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(sdk::fill_table(nullptr, &request, &out, {}, {}, report), BITNET_INVALID_ARGUMENT);
}

// Runs f(team) as `size` workers.
template <class F>
void as_team(uint32_t size, F f) {
  sdk::barrier meeting(size, size, 0);
  std::vector<sdk::pieces> dealt(size);
  std::vector<std::future<void>> running;
  for (uint32_t i = 0; i < size; ++i)
    running.push_back(std::async(std::launch::async, [&, i] {
      sdk::team mine(i, size, meeting, dealt.data(), nullptr, nullptr);
      f(mine);
    }));
  for (auto& r : running) r.get();
}

TEST(host, runs_one_worker_too_where_workers_are_kept) {
  bitnet_host_v0 table = idle_host();
  uint32_t by_host = 0;
  table.self = &by_host;
  table.parallel_run = [](void* self, uint32_t n, bitnet_task task, void* arg) {
    ++*static_cast<uint32_t*>(self);
    task(arg, 0, n);
    return bitnet_status{BITNET_OK};
  };
  uint32_t ran = 0;
  auto work = [&](uint32_t worker, uint32_t n) noexcept { ran += worker == 0 && n == 1; };
  EXPECT_EQ(sdk::host(&table).parallel(1, work), BITNET_OK);
  EXPECT_EQ(ran, 1u);
  EXPECT_EQ(by_host, 1u);
}

TEST(team, deals_every_unit_once_and_in_grains) {
  for (const uint32_t size : {1U, 2U, 3U, 7U})
    for (const uint64_t units : {0U, 1U, 15U, 16U, 17U, 127U, 1000U, 4099U})
      for (const uint64_t grain : {1U, 16U}) {
        constexpr uint64_t deals = 3, fewest = 48;  // the last deal's
        std::vector<std::atomic<int>> taken(units * deals);
        std::atomic<bool> askew{false}, small{false};
        as_team(size, [&](sdk::team& mine) {
          for (uint64_t n = 0; n < deals; ++n) {  // without meeting between them
            const auto take = [&](const sdk::share& s) {
              if (s.first % grain != 0 || (s.last % grain != 0 && s.last != units)) askew = true;
              if (n == deals - 1 && units / size / grain * grain >= fewest)
                small = small || s.last - s.first < fewest;
              for (uint64_t i = s.first; i < s.last; ++i) ++taken[n * units + i];
            };
            mine.deal(units, grain, take, n == deals - 1 ? fewest : 0);
          }
        });
        EXPECT_FALSE(askew) << size << " workers, " << units << " units";
        EXPECT_FALSE(small) << size << " workers, " << units << " units";
        for (const auto& n : taken) ASSERT_EQ(n, 1) << size << " workers, " << units << " units";
      }
}

TEST(team, cuts_what_is_too_short_already) {
  std::atomic<int> pieces{0};
  as_team(2, [&](sdk::team& mine) { mine.deal(64, 1, [&](const sdk::share&) { ++pieces; }, 48); });
  EXPECT_EQ(pieces, 8);
}

TEST(team, takes_the_pieces_of_a_worker_that_does_not_come) {
  constexpr uint64_t units = 1600;
  std::atomic<uint64_t> by_others{0}, all{0};
  std::promise<void> done;
  const auto all_else_is_done = done.get_future().share();
  as_team(2, [&](sdk::team& mine) {
    mine.deal(units, 16, [&](const sdk::share& s) {
      // The first worker stays in its first piece until the other has found nothing more to do.
      if (mine.worker() == 0) all_else_is_done.wait();
      all += s.last - s.first;
      if (mine.worker() == 1) by_others += s.last - s.first;
    });
    if (mine.worker() == 1) done.set_value();
  });
  EXPECT_EQ(all, units);
  EXPECT_GE(by_others, units * 3 / 4);
}

// What is left to the last one sees what all have done, and is done before any worker goes on; once
// for each item that leaves something.
TEST(team, leaves_the_rest_to_the_last_worker) {
  static std::atomic<uint32_t> arrived, rests;
  static std::atomic<bool> early, late;
  static uint32_t team_of;
  constexpr uint32_t items = 50;
  for (const uint32_t size : {1U, 2U, 3U, 7U}) {
    arrived = rests = 0;
    early = late = false;
    team_of = size;
    as_team(size, [&](sdk::team& mine) {
      for (uint32_t i = 0; i < items; ++i) {
        const bool leaves = i % 3 != 0;
        ++arrived;
        if (leaves)
          mine.leave_to_last([](const sdk::call*, const sdk::roles&, sdk::team&) noexcept {
            early = early || arrived % team_of != 0;
            std::this_thread::yield();
            ++rests;
          });
        mine.end(nullptr, {});
        late = late || rests != i - i / 3;
        mine.sync();
      }
    });
    EXPECT_FALSE(early) << size << " workers: a worker had not done its part";
    EXPECT_FALSE(late) << size << " workers: a worker went on";
    EXPECT_EQ(rests, items - (items + 2) / 3);
  }
}

TEST(arena, values_that_live_together_never_share_a_byte) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<sdk::lifetime> values(1 + random() % 30);
    uint64_t total = 0;
    for (sdk::lifetime& v : values) {
      v.bytes = random() % 1000;
      v.first = random() % 20;
      v.last = v.first + random() % 8;
      total += (v.bytes + 63) / 64 * 64;
    }
    const uint64_t size = sdk::place(values);
    EXPECT_LE(size, total);
    for (const sdk::lifetime& a : values) {
      EXPECT_LE(a.offset + a.bytes, size);
      for (const sdk::lifetime& b : values) {
        const bool together = a.first <= b.last && b.first <= a.last;
        const bool overlap = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
        const bool two = &a != &b && a.bytes != 0 && b.bytes != 0;
        EXPECT_FALSE(two && together && overlap);
      }
    }
  }
}

TEST(arena, memory_is_reused) {
  std::vector<sdk::lifetime> chain;
  for (uint64_t i = 0; i < 100; ++i) chain.push_back({640, i, i + 1, 0});
  EXPECT_EQ(sdk::place(chain), 2 * 640u);
}

TEST(formats, golden_rows_decode_to_the_golden_matrix) {
  const auto t = golden_as<float>("ternary");
  const struct {
    uint32_t format;
    const char* name;
    double tolerance;
  } rows[] = {{BITNET_FORMAT_F16, "f16", 0},
              {BITNET_FORMAT_BF16, "bf16", 0},
              {BITNET_FORMAT_Q8_0, "q8_0", 1e-4},      // d is 0.25 / 127 as f16
              {BITNET_FORMAT_Q4_0, "q4_0", 0.03125}};  // -8 to 7: one of the extremes is cut off
  for (const auto& row : rows) {
    const std::vector<uint8_t> bytes = golden_bytes(row.name);
    std::vector<float> y(1024);
    sdk::decode(row.format, bytes.data(), 0, 1024, y.data());
    for (uint64_t i = 0; i < 1024; ++i)
      ASSERT_NEAR(y[i], 0.25f * t[i], row.tolerance) << row.name << i;
  }
}

TEST(formats, k_quants_decode_as_documented) {
  std::vector<uint8_t> q4(144, 0);
  const uint16_t one = 0x3c00, half = 0x3800;
  std::memcpy(q4.data(), &one, 2);
  std::memcpy(q4.data() + 2, &half, 2);
  q4[4 + 1] = 3;       // sub-block 1: scale 3
  q4[4 + 5] = 2;       // and minimum 2
  q4[4 + 8] = 0x21;    // sub-block 4: scale 1, minimum 2, low bits
  q4[4 + 0] |= 0x40;   // and the fifth bit of its scale
  q4[16] = 0x9f;       // elements 0 and 32
  q4[16 + 64] = 0x07;  // element 128
  std::vector<float> y(256);
  sdk::decode(BITNET_FORMAT_Q4_K, q4.data(), 0, 256, y.data());
  EXPECT_EQ(y[32], 3.0f * 9 - 0.5f * 2);
  EXPECT_EQ(y[128], 17.0f * 7 - 0.5f * 2);

  std::vector<uint8_t> q6(210, 0);
  std::memcpy(q6.data() + 208, &half, 2);
  for (uint64_t i = 0; i < 16; ++i) q6[192 + i] = static_cast<uint8_t>(i + 1);
  q6[0] = 0x5a;          // low nibble: element 0, high: element 64
  q6[128] = 0b11100100;  // quarters 0..3 get 0, 1, 2, 3
  sdk::decode(BITNET_FORMAT_Q6_K, q6.data(), 0, 256, y.data());
  EXPECT_EQ(y[0], 0.5f * 1 * (0x0a - 32));
  EXPECT_EQ(y[32], 0.5f * 3 * (0x10 - 32));
  EXPECT_EQ(y[64], 0.5f * 5 * (0x25 - 32));
  EXPECT_EQ(y[96], 0.5f * 7 * (0x30 - 32));
  EXPECT_EQ(y[128], 0.5f * 9 * -32);
}

TEST(formats, half_precision_round_trips_and_rounds_to_even) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float wide = sdk::f16_to_f32(half);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(sdk::f16_to_f32(sdk::f32_to_f16(wide))));
      continue;
    }
    ASSERT_EQ(sdk::f32_to_f16(wide), half);
    // Half way to the next one goes to the even neighbour, the bit beyond it up.
    if ((bits & 0x7fff) >= 0x7bff) continue;
    const float next = sdk::f16_to_f32(static_cast<uint16_t>(half + 1));
    const float middle = wide + (next - wide) / 2;
    ASSERT_EQ(sdk::f32_to_f16(middle), half % 2 == 0 ? half : half + 1) << bits;
    ASSERT_EQ(sdk::f32_to_f16(std::nextafter(middle, next)), half + 1) << bits;
  }
  EXPECT_EQ(sdk::f32_to_f16(65520.0f), 0x7c00) << "half way past the largest is infinity";
  EXPECT_EQ(sdk::f32_to_f16(65519.0f), 0x7bff);
}

}  // namespace
}  // namespace bitnet::parity
