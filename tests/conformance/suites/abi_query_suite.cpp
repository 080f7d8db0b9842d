// graph_query and what a later host asks: rejected or passed over, never taken for something else.

#include <gtest/gtest.h>

#include "model/one_op.hpp"
#include "model/requests.hpp"
#include "suites/abi.hpp"

namespace bitnet::conformance {
namespace {

TEST(abi, graph_query_answers_unknown_ops_with_none) {
  const opened one;
  if (device_count(one.table()) <= run_options().device) GTEST_SKIP() << "there is no device";
  const opened_device d;
  for (const uint32_t id : {200u, BITNET_PRIVATE, BITNET_PRIVATE + 4711u})
    EXPECT_EQ(d.level(id, BITNET_FORMAT_NONE), BITNET_LEVEL_NONE) << id;
}

// What graph_query is asked about a model of one op.
struct question {
  model m;
  std::vector<bitnet_port> ports;
  bitnet_graph graph{};
  bitnet_program_options options = least_options();
  bitnet_query_request request{};

  explicit question(const model& known) : m(known), ports(known.ports()) {}

  // Makes the structs of the rest, which may have changed; what is reserved in them stays.
  void make() {
    const uint32_t of_graph = graph.reserved_0, of_request = request.reserved_0;
    graph = m.graph(ports);
    graph.reserved_0 = of_graph;
    request = query_request(graph, {}, options);
    request.reserved_0 = of_request;
  }
};

struct answer {
  outcome said;
  uint32_t level = BITNET_LEVEL_NONE;
};

answer ask(const opened_device& d, question& q) {
  q.make();
  answer out;
  bitnet_graph_estimate estimate{};
  estimate.struct_size = sizeof estimate;
  out.said = attempt([&](bitnet_error* e) {
    return d.table().graph_query(d.device, &q.request, &out.level, &estimate, e);
  });
  return out;
}

// A later host means something by what it appends and by what is reserved now.
TEST(abi, graph_query_rejects_what_it_does_not_understand) {
  const opened one;
  if (device_count(one.table()) <= run_options().device) GTEST_SKIP() << "there is no device";
  const opened_device d;
  const model known = one_op_model(BITNET_OP_ADD, BITNET_FORMAT_NONE);
  if (d.levels(known)[0] == BITNET_LEVEL_NONE) GTEST_SKIP() << "graph_query answers none for add";
  const struct {
    const char* what;
    void (*change)(question& a);
  } rows[] = {
      {"nothing unknown", [](question&) {}},
      {"an attribute that ADD does not have", [](question& a) { a.m.ops[0].ints[0] = 1; }},
      {"a factor that ADD does not have", [](question& a) { a.m.ops[0].floats[3] = 30; }},
      {"a dtype of later", [](question& a) { a.m.values[0].dtype = 77; }},
      {"a dimension of later", [](question& a) { a.m.values[0].dims[0] = -3; }},
      {"reserved_0 of a value", [](question& a) { a.m.values[0].reserved_0 = 1; }},
      {"a role of later", [](question& a) { a.ports[0].role = 99; }},
      {"a private role", [](question& a) { a.ports[0].role = BITNET_PRIVATE + 1; }},
      {"reserved_0 of the graph", [](question& a) { a.graph.reserved_0 = 1; }},
      {"reserved_0 of the options", [](question& a) { a.options.reserved_0 = 1; }},
      {"reserved_0 of the request", [](question& a) { a.request.reserved_0 = 1; }},
      {"a flag that must be understood", [](question& a) { a.options.flags = 0x80000000u; }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    question a(known);
    row.change(a);
    const answer found = ask(d, a);
    const bool none = found.said.status == BITNET_OK && found.level == BITNET_LEVEL_NONE;
    if (&row == &rows[0])
      EXPECT_TRUE(found.said.status == BITNET_OK && !none) << found.said.message;
    else
      EXPECT_TRUE(found.said.status == BITNET_UNSUPPORTED || none)
          << "status " << found.said.status << ", level " << found.level << ": "
          << found.said.message;
    EXPECT_EQ(found.said.complaint, "");
  }
  // The low half of flags is for hints.
  question hinted(known);
  hinted.options.flags = 0x8000;
  const answer found = ask(d, hinted);
  if (found.said.status != BITNET_OK) throw call_failed(found.said);
  EXPECT_NE(found.level, BITNET_LEVEL_NONE) << "a hint that it does not know was not ignored";
}

// Structs and elements of a later host are longer: zeros mean nothing, anything else is unknown.
TEST(abi, what_a_later_host_appends_is_read_if_it_is_zero) {
  const opened one;
  if (device_count(one.table()) <= run_options().device) GTEST_SKIP() << "there is no device";
  const opened_device d;
  const model m = one_op_model(BITNET_OP_ADD, BITNET_FORMAT_NONE);
  if (d.levels(m)[0] == BITNET_LEVEL_NONE) GTEST_SKIP() << "graph_query answers none for add";
  struct later_op {
    bitnet_op op;
    uint64_t more;
  } op = {m.ops[0], 0};
  struct later_graph {
    bitnet_graph graph;
    uint64_t more[2];
  } graph = {{}, {}};
  struct later_request {
    bitnet_query_request request;
    uint64_t more;
  } request = {{}, 0};
  const std::vector<bitnet_port> ports = m.ports();
  const bitnet_program_options options = least_options();
  const auto ask = [&] {
    graph.graph = m.graph(ports);
    graph.graph.struct_size = sizeof graph;
    graph.graph.ops = &op.op;
    graph.graph.op_size = sizeof op;
    request.request = query_request(graph.graph, {}, options);
    request.request.struct_size = sizeof request;
    uint32_t level = BITNET_LEVEL_NONE;
    bitnet_graph_estimate estimate{};
    estimate.struct_size = sizeof estimate;
    return attempt([&](bitnet_error* e) {
      return d.table().graph_query(d.device, &request.request, &level, &estimate, e);
    });
  };
  const outcome plain = ask();
  EXPECT_EQ(plain.status, BITNET_OK) << "zeros behind what it knows: " << plain.message;
  for (uint64_t* more : {&op.more, &graph.more[1], &request.more}) {
    *more = 1;
    const outcome o = ask();
    EXPECT_EQ(o.status, BITNET_UNSUPPORTED) << o.message;
    EXPECT_EQ(o.complaint, "");
    *more = 0;
  }
}

}  // namespace
}  // namespace bitnet::conformance
