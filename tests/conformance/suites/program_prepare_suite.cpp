// Steps that the host announces before it runs them: binding_prepare.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>

#include "model/requests.hpp"
#include "model/tiny_model.hpp"
#include "suites/program.hpp"

namespace bitnet::conformance {
namespace {

// What a scheduler prepares: steps of one token for each of so many sequences.
TEST_F(program, steps_of_many_sequences_are_prepared) {
  if (device_.table().abi_minor < 2) GTEST_SKIP() << "it speaks ABI 0.1, which has no such member";
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  runner_options o = options();
  o.max_sequences = 4;
  o.buckets = {1, 2, 4};
  const std::vector<float> alone = logits_of(m, {11}, options());
  const uint64_t vocab = m.vocabulary();
  for (const uint32_t n : {1u, 3u, 4u}) {  // prepared, and between two that are
    SCOPED_TRACE(n);
    runner r(device_.table(), m, o);
    const auto prepared = [&](uint32_t tokens, uint32_t sequences) {
      return attempt([&](bitnet_error* e) {
        return prepare(device_.table(), r.binding, tokens, tokens, e, 0, sequences);
      });
    };
    for (const uint32_t bucket : o.buckets) {
      const outcome found = prepared(bucket, bucket);
      ASSERT_EQ(found.status, BITNET_OK) << bucket << " sequences: " << found.message;
    }
    const outcome past = prepared(4, o.max_sequences + 1);
    EXPECT_EQ(past.status, BITNET_INVALID_ARGUMENT) << "more sequences than the program runs";
    EXPECT_EQ(past.complaint, "");
    for (uint64_t at = 0; at < prompt.size(); ++at) {
      std::vector<token_in> in;
      for (uint32_t s = 0; s < n; ++s) in.push_back({prompt[at], static_cast<int32_t>(s)});
      const std::vector<float> rows = r.run(in);
      for (uint32_t s = 0; s < n; ++s)
        ASSERT_EQ(std::memcmp(&rows[s * vocab], &alone[at * vocab], vocab * sizeof(float)), 0)
            << "token " << at << " of sequence " << s;
    }
  }
}

// The struct of minor 1 is the beginning of that of minor 2, and what is reserved in it is 0.
TEST_F(program, a_prepare_request_of_minor_1_is_read) {
  const tiny_model m({});
  need(m);
  if (IsSkipped()) return;
  runner r(device_.table(), m, options());
  bitnet_prepare_request request{};
  request.struct_size = offsetof(bitnet_prepare_request, n_sequences);
  request.n_tokens = request.n_outputs = 1;
  request.n_sequences = request.reserved_1 = ~0u;  // behind what the host knows
  const auto prepared = [&] {
    return attempt(
        [&](bitnet_error* e) { return device_.table().binding_prepare(r.binding, &request, e); });
  };
  outcome found = prepared();
  EXPECT_EQ(found.status, BITNET_OK) << found.message;
  request.struct_size = sizeof request;
  request.n_sequences = 0;
  request.reserved_1 = 1;
  found = prepared();
  EXPECT_EQ(found.status, BITNET_UNSUPPORTED) << "reserved_1 is not 0: " << found.message;
  EXPECT_EQ(found.complaint, "");
}

}  // namespace
}  // namespace bitnet::conformance
