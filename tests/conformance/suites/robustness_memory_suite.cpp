// Memory that cannot be had, and weights, buffers and pools that cannot be, are rejected in words,
// and what follows works.

#include <algorithm>
#include <bit>
#include <chrono>

#include "bitnet/abi/answers.h"
#include "harness/allocations.hpp"
#include "model/recurrent_model.hpp"
#include "model/requests.hpp"
#include "model/tiny_model.hpp"
#include "suites/robustness.hpp"

namespace bitnet::conformance {
namespace {

bitnet_weights* create(const bitnet_backend_v0& t, bitnet_device* d, const model& m) {
  bitnet_weights* out = nullptr;
  const std::vector<bitnet_tensor_desc> descs = m.descs();
  must([&](bitnet_error* e) { return create_weights(t, d, descs, &out, e); });
  return out;
}

// A backend that is opened, computes three tokens and is closed again; "" or what it answered
// otherwise than it may.
std::string live_with_little_memory(const model& m, const std::vector<float>& expected) {
  try {
    opened_device d;
    runner_options o;
    o.opened = d.device;
    runner r(d.table(), m, o);
    if (!same_bits(expected, r.run({{1}, {2}, {3}}))) return "it computed something else";
  } catch (const call_failed& e) {
    if (e.status != BITNET_OUT_OF_MEMORY) return e.what();
    return e.complaint;
  }
  return "";
}

// Each request for memory that the plugin's own code makes fails once, the others do not: the call
// says so, or does without; what it had made already is taken back, and the next life is whole.
// There are more than can be tried where a life takes long: then every n-th.
TEST_F(robustness, host_allocation_failures) {
  if (!allocations::can_fail) GTEST_SKIP() << "a sanitizer has the allocator";
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  runner honest(table(), m, options());
  const std::vector<float> expected = honest.run({{1}, {2}, {3}});
  const auto begin = std::chrono::steady_clock::now();
  allocations::refuse(-1);
  ASSERT_EQ(live_with_little_memory(m, expected), "");
  const int64_t total = allocations::requests();
  if (total == 0) GTEST_SKIP() << "its own code never asks for memory";
  const auto one_life = std::chrono::steady_clock::now() - begin;
  constexpr int64_t fewest = 4;
  constexpr auto time_for_all = std::chrono::seconds(10);
  const int64_t affordable = std::max<int64_t>(fewest, time_for_all / one_life);
  const int64_t stride = total / affordable + 1;
  for (int64_t which = 0; which < total; which += stride) {
    SCOPED_TRACE("request for memory " + std::to_string(which) + " of " + std::to_string(total));
    allocations::refuse(which);
    const std::string problem = live_with_little_memory(m, expected);
    allocations::refuse(-1);
    ASSERT_EQ(problem, "");
  }
  EXPECT_EQ(live_with_little_memory(m, expected), "") << "and with enough of it again";
}

TEST_F(robustness, buffers_are_zeroed_aligned_and_stay) {
  const bitnet_device_info d = device_.info();
  for (const uint64_t bytes : {1u, 100u, 4096u, 1'000'003u}) {
    bitnet_buffer* b = nullptr;
    must([&](bitnet_error* e) { return create_buffer(table(), device_.device, bytes, &b, e); });
    void *data = nullptr, *again = nullptr;
    must([&](bitnet_error* e) { return table().buffer_map(b, &data, e); });
    must([&](bitnet_error* e) { return table().buffer_map(b, &again, e); });
    const char* wrong = bitnet_wrong_mapping(data, again, bytes, d.buffer_alignment_bytes);
    ASSERT_EQ(wrong, nullptr) << "buffer_map " << wrong;
    auto* const at = static_cast<uint8_t*>(data);
    EXPECT_TRUE(std::all_of(at, at + bytes, [](uint8_t x) { return x == 0; })) << "not zeroed";
    std::fill_n(at, bytes, uint8_t{0xff});
    table().buffer_destroy(b);
  }
}

TEST_F(robustness, buffers_too_large_are_rejected) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1} << 60, ~uint64_t{0}}) {
    bitnet_buffer* b = nullptr;
    expect_rejected(attempt([&](bitnet_error* e) {
                      return create_buffer(table(), device_.device, bytes, &b, e);
                    }),
                    "a buffer of exabytes or of nothing");
    if (b != nullptr) table().buffer_destroy(b);
  }
  bitnet_buffer* b = nullptr;
  must([&](bitnet_error* e) { return create_buffer(table(), device_.device, 64, &b, e); });
  table().buffer_destroy(b);
}

// Of one head of 32 halves, four tokens to a block.
bitnet_kv_config three_blocks() {
  return {
      sizeof(bitnet_kv_config), BITNET_DTYPE_F16, BITNET_DTYPE_F16, 1, 1, 32, 32, 4, 3, 0, 0, 0};
}

TEST_F(robustness, pools_too_large_or_strange_are_rejected) {
  const bitnet_kv_config good = three_blocks();
  const struct {
    const char* what;
    void (*spoil)(bitnet_kv_config& c);
  } rows[] = {
      {"a pool of exabytes",
       [](bitnet_kv_config& c) {
         c.n_layers = c.n_blocks = 1u << 20, c.head_dim_k = c.head_dim_v = 1u << 15;
       }},
      {"a pool whose product wraps",
       [](bitnet_kv_config& c) {
         c.n_layers = c.n_kv_heads = c.head_dim_k = c.head_dim_v = c.n_blocks = ~0u;
       }},
      {"keys of int8 without scales", [](bitnet_kv_config& c) { c.dtype_k = BITNET_DTYPE_I8; }},
      {"values of an unknown type", [](bitnet_kv_config& c) { c.dtype_v = 77; }},
      {"a pool without blocks", [](bitnet_kv_config& c) { c.n_blocks = 0; }},
      {"a pool without layers", [](bitnet_kv_config& c) { c.n_layers = 0; }},
      {"heads of 100 in blocks of 32",
       [](bitnet_kv_config& c) {
         c.dtype_k = BITNET_DTYPE_Q8_0, c.head_dim_k = c.head_dim_v = 100;
       }},
      {"heads of 80 in blocks of 32",
       [](bitnet_kv_config& c) {
         c.dtype_v = BITNET_DTYPE_Q4_0, c.head_dim_k = c.head_dim_v = 80;
       }},
      {"states of nothing", [](bitnet_kv_config& c) { c.n_states = 2; }},
      {"no states of something", [](bitnet_kv_config& c) { c.state_elements = 2; }},
      {"states of exabytes", [](bitnet_kv_config& c) { c.n_states = c.state_elements = 1u << 30; }},
      {"states that cannot be counted",
       [](bitnet_kv_config& c) { c.n_states = c.state_elements = ~0u; }},
  };
  for (const auto& row : rows) {
    bitnet_kv_config config = good;
    row.spoil(config);
    bitnet_kv_pool* pool = nullptr;
    expect_rejected(attempt([&](bitnet_error* e) {
                      return table().kv_pool_create(device_.device, &config, &pool, e);
                    }),
                    row.what);
    if (pool != nullptr) table().kv_pool_destroy(pool);
  }
}

TEST_F(robustness, blocks_of_a_pool_are_moved_whole_and_once) {
  const bitnet_kv_config good = three_blocks();
  bitnet_kv_pool* pool = nullptr;
  must([&](bitnet_error* e) { return table().kv_pool_create(device_.device, &good, &pool, e); });
  const uint64_t bytes = uint64_t{2} * 2 * 32 * 4;
  std::vector<uint8_t> block(bytes + 1, 7);
  bitnet_queue* queue = nullptr;
  must([&](bitnet_error* e) { return create_queue(table(), device_.device, &queue, e); });
  uint64_t signal = 0;
  const auto exported = [&](uint32_t index, uint64_t n) {
    ++signal;
    outcome o = attempt([&](bitnet_error* e) {
      return table().kv_export(queue, pool, &index, 1, block.data(), n, signal, e);
    });
    if (o.status != BITNET_OK) return o;
    return attempt(
        [&](bitnet_error* e) { return table().queue_wait(queue, signal, 60'000'000'000u, e); });
  };
  expect_rejected(exported(3, bytes), "a block that is not there");
  expect_rejected(exported(0, bytes - 1), "too little room for a block");
  expect_rejected(exported(0, bytes + 1), "too much room for a block");
  EXPECT_EQ(exported(2, bytes).status, BITNET_OK);
  EXPECT_EQ(block[bytes], 7) << "written past the block";
  const struct {
    uint32_t from[2], to[2];
    const char* what;
  } copies[] = {{{0, 1}, {2, 3}, "a copy to a block that is not there"},
                {{0, 1}, {1, 2}, "a copy from a block that is written"},
                {{0, 1}, {2, 2}, "two copies to one block"}};
  for (const auto& c : copies)
    expect_rejected(attempt([&](bitnet_error* e) {
                      return table().kv_copy(queue, pool, c.from, c.to, 2, signal + 1, e);
                    }),
                    c.what);
  const uint32_t twice[] = {1, 1};
  std::vector<uint8_t> two(2 * bytes);
  expect_rejected(attempt([&](bitnet_error* e) {
                    return table().kv_import(queue, pool, twice, 2, two.data(), two.size(),
                                             signal + 1, e);
                  }),
                  "two imports of one block");
  settle(table());
  uint64_t at = 0;
  must([&](bitnet_error* e) { return table().queue_poll(queue, &at, e); });
  EXPECT_EQ(at, signal) << "what was rejected moved the timeline";
  table().queue_destroy(queue);
  table().kv_pool_destroy(pool);
}

TEST_F(robustness, tensors_that_make_no_sense_are_rejected) {
  const float scale = 1;
  const auto desc = [&](uint32_t format, int64_t k, int64_t m, uint64_t bytes) {
    bitnet_tensor_desc d{};
    d.struct_size = sizeof d;
    d.format = format;
    d.rank = 2;
    d.ne[0] = k;
    d.ne[1] = m;
    d.ne[2] = d.ne[3] = 1;
    d.data_bytes = bytes;
    d.n_scales = format == BITNET_FORMAT_TERNARY2 ? 1 : 0;
    d.scales = &scale;
    return d;
  };
  const struct {
    const char* what;
    bitnet_tensor_desc desc;
  } rows[] = {
      {"an unknown format", desc(99, 128, 2, 64)},
      {"no format", desc(BITNET_FORMAT_NONE, 128, 2, 64)},
      {"no columns", desc(BITNET_FORMAT_F32, 0, 4, 0)},
      {"a product that wraps", desc(BITNET_FORMAT_F32, int64_t{1} << 62, int64_t{1} << 62, 0)},
      {"too few bytes", desc(BITNET_FORMAT_F32, 4, 4, 63)},
      {"too many bytes", desc(BITNET_FORMAT_TERNARY2, 128, 2, 65)},
      {"a part of a block", desc(BITNET_FORMAT_Q8_0, 33, 1, 34)},
  };
  for (const auto& row : rows) {
    bitnet_weight_plan plan{};
    plan.struct_size = sizeof plan;
    expect_rejected(attempt([&](bitnet_error* e) {
                      return table().weight_plan(device_.device, &row.desc, &plan, e);
                    }),
                    row.what);
    bitnet_weights* w = nullptr;
    expect_rejected(attempt([&](bitnet_error* e) {
                      return create_weights(table(), device_.device, {&row.desc, 1}, &w, e);
                    }),
                    row.what);
    if (w != nullptr) table().weights_destroy(w);
  }
}

TEST_F(robustness, plans_name_their_layout) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  for (const bitnet_tensor_desc& desc : m.descs()) {
    bitnet_weight_plan plan{};
    plan.struct_size = sizeof plan;
    must([&](bitnet_error* e) { return table().weight_plan(device_.device, &desc, &plan, e); });
    const char* wrong = bitnet_wrong_weight_plan(&plan);
    EXPECT_EQ(wrong, nullptr) << "weight_plan " << wrong;
  }
}

TEST_F(robustness, streams_cut_short_are_reported_and_thrown_away) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  const std::vector<uint8_t>& data = m.tensors[0].data;
  bitnet_weights* w = create(table(), device_.device, m);
  const auto write = [&](uint32_t index, uint64_t offset, uint64_t bytes) {
    return attempt([&](bitnet_error* e) {
      return table().weight_write(w, index, offset, data.data(), bytes, e);
    });
  };
  const auto seal = [&](uint32_t index) {
    return attempt([&](bitnet_error* e) { return table().weight_seal(w, index, e); });
  };
  expect_rejected(write(0, 8, 8), "a gap at the start");
  expect_rejected(write(0, 0, data.size() + 1), "more bytes than the tensor has");
  EXPECT_EQ(write(0, 0, 16).status, BITNET_OK);
  expect_rejected(write(0, 0, 16), "the same bytes again");
  expect_rejected(write(0, 16, ~uint64_t{0} - 8), "an end that wraps");
  expect_rejected(seal(0), "a tensor whose bytes are missing");
  expect_rejected(seal(9999), "a tensor that is not there");
  expect_rejected(write(9999, 0, 1), "a tensor that is not there");
  bitnet_program* program = nullptr;
  const std::vector<bitnet_port> ports = m.ports();
  const bitnet_graph graph = m.graph(ports);
  const bitnet_program_options o = least_options();
  const bitnet_build_request request = build_request(graph, {&w, 1}, o);
  expect_rejected(attempt([&](bitnet_error* e) {
                    return table().program_build(device_.device, &request, &program, e);
                  }),
                  "weights that are not sealed");
  if (program != nullptr) table().program_destroy(program);
  table().weights_destroy(w);  // half written
  runner r(table(), m, options());
  EXPECT_EQ(r.run({{1}}).size(), m.vocabulary());
}

// Weights of two objects are counted through: the graph does not know where they lie.
TEST_F(robustness, weights_may_come_in_several_objects) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  const std::vector<bitnet_tensor_desc> descs = m.descs();
  const std::size_t half = descs.size() / 2;
  bitnet_weights* parts[2] = {};
  for (std::size_t p = 0; p < 2; ++p) {
    const std::size_t first = p * half, n = p == 0 ? half : descs.size() - half;
    must([&](bitnet_error* e) {
      return create_weights(table(), device_.device, std::span(descs).subspan(first, n), &parts[p],
                            e);
    });
    for (std::size_t i = 0; i < n; ++i) {
      const std::vector<uint8_t>& data = m.tensors[first + i].data;
      const auto index = static_cast<uint32_t>(i);
      must([&](bitnet_error* e) {
        return table().weight_write(parts[p], index, 0, data.data(), data.size(), e);
      });
      must([&](bitnet_error* e) { return table().weight_seal(parts[p], index, e); });
    }
  }
  const std::vector<bitnet_port> ports = m.ports();
  const bitnet_graph graph = m.graph(ports);
  const bitnet_program_options o = least_options();
  bitnet_build_request request = build_request(graph, parts, o);
  bitnet_program* program = nullptr;
  const auto build = [&] {
    return attempt([&](bitnet_error* e) {
      return table().program_build(device_.device, &request, &program, e);
    });
  };
  const outcome built = build();
  EXPECT_EQ(built.status, BITNET_OK) << built.message;
  if (program != nullptr) table().program_destroy(program);
  program = nullptr;
  request.n_weights = 1;
  expect_rejected(build(), "a graph with tensors that no object has");
  if (program != nullptr) table().program_destroy(program);
  for (bitnet_weights* w : parts) table().weights_destroy(w);
}

TEST_F(robustness, buffers_are_aligned_as_they_are_wanted) {
  bitnet_buffer_request request{};
  request.struct_size = sizeof request;
  request.bytes = 100;
  for (const uint64_t alignment : {1u, 8u, 64u, 4096u, 65536u, 3u, 96u}) {
    SCOPED_TRACE(alignment);
    request.alignment_bytes = alignment;
    bitnet_buffer* b = nullptr;
    const outcome made = attempt(
        [&](bitnet_error* e) { return table().buffer_create(device_.device, &request, &b, e); });
    EXPECT_EQ(made.complaint, "");
    const bool possible = std::has_single_bit(alignment);
    EXPECT_TRUE(possible ? made.status == BITNET_OK || made.status == BITNET_UNSUPPORTED
                         : made.status == BITNET_INVALID_ARGUMENT)
        << made.message;
    if (b == nullptr) continue;
    void* data = nullptr;
    must([&](bitnet_error* e) { return table().buffer_map(b, &data, e); });
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % alignment, 0u);
    table().buffer_destroy(b);
  }
}

// Makes buffers of a MiB until one is rejected, six at most, and takes them back; how many it
// tried.
uint64_t buffers_until_rejected(const bitnet_backend_v0& t, bitnet_device* device, outcome& last) {
  constexpr uint64_t buffer_bytes = uint64_t{1} << 20;
  std::vector<bitnet_buffer*> buffers;
  do {
    buffers.push_back(nullptr);
    last = attempt([&](bitnet_error* e) {
      return create_buffer(t, device, buffer_bytes, &buffers.back(), e);
    });
  } while (last.status == BITNET_OK && buffers.size() < 6);
  for (bitnet_buffer* b : buffers)
    if (b != nullptr) t.buffer_destroy(b);
  return buffers.size();
}

// Each kind of thing that takes memory is made until no more may be, and again when that is gone.
TEST_F(robustness, a_device_holds_no_more_than_it_may) {
  const auto rejected = [](const outcome& o) {
    EXPECT_EQ(o.complaint, "");
    return o.status == BITNET_OUT_OF_MEMORY || o.status == BITNET_OUT_OF_DEVICE_MEMORY;
  };
  bitnet_device_request request{};
  request.struct_size = sizeof request;
  request.memory_bytes = uint64_t{4} << 20;
  bitnet_device* small = nullptr;
  const outcome opened = attempt(
      [&](bitnet_error* e) { return table().device_open(table().self, &request, &small, e); });
  if (opened.status == BITNET_UNSUPPORTED) GTEST_SKIP() << "it does not count: " << opened.message;
  ASSERT_EQ(opened.status, BITNET_OK) << opened.message;

  for (int round = 0; round < 2; ++round) {
    outcome last;
    const uint64_t tried = buffers_until_rejected(table(), small, last);
    EXPECT_TRUE(rejected(last)) << last.message;
    EXPECT_EQ(tried, 5u) << "of 1 MiB each there is room for 4";
  }

  const bitnet_kv_config blocks{
      sizeof(bitnet_kv_config), BITNET_DTYPE_F32, BITNET_DTYPE_F32, 1, 1, 32, 32, 64, 512, 0, 0, 0};
  bitnet_kv_pool* pool = nullptr;
  const outcome pooled =
      attempt([&](bitnet_error* e) { return table().kv_pool_create(small, &blocks, &pool, e); });
  EXPECT_TRUE(rejected(pooled)) << "8 MiB of keys and values: " << pooled.message;
  if (missing_ops(device_, recurrent_model()).empty()) {
    bitnet_kv_config states = blocks;
    states.n_blocks = 1;
    states.n_states = 2;
    states.state_elements = 1u << 20;
    const outcome made =
        attempt([&](bitnet_error* e) { return table().kv_pool_create(small, &states, &pool, e); });
    EXPECT_TRUE(rejected(made)) << "8 MiB of states: " << made.message;
  }

  model m;
  std::mt19937 random(3);
  m.ternary(4096, 8192, 0, random);
  const std::vector<bitnet_tensor_desc> descs = m.descs();
  bitnet_weights* weights = nullptr;
  const auto fill = [&](bitnet_error* e) {
    const bitnet_status s = create_weights(table(), small, descs, &weights, e);
    if (s != BITNET_OK) return s;
    return table().weight_write(weights, 0, 0, m.tensors[0].data.data(), m.tensors[0].data.size(),
                                e);
  };
  const outcome filled = attempt(fill);
  EXPECT_TRUE(rejected(filled)) << "8 MiB of weights: " << filled.message;
  if (weights != nullptr) table().weights_destroy(weights);
  table().device_close(small);
}

}  // namespace
}  // namespace bitnet::conformance
