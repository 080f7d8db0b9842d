#pragma once
// What an author says beforehand about results: lines of a file NAME.conformance.
//
//   # a comment
//   unsupported    SUITE.TEST            REASON...
//   unsteady       SUITE.TEST            REASON...   (unsupported, and passes at times)
//   known-failure  SUITE.TEST YYYY-MM-DD REASON...
//
// The date is the first day on which the failure is no longer accepted.

#include <string>
#include <vector>

#include "harness/supervise.hpp"

namespace bitnet::conformance {

struct expectation {
  bool permanent = false;  // unsupported
  bool unsteady = false;   // unsupported where it fails
  std::string test, expiry, reason;
};

struct expectations {
  std::vector<expectation> rows;
  std::string problem;  // not empty: the file cannot be read, in words

  // Changes the results: what fails as expected is no failure, what passes against them is one.
  // `today` as YYYY-MM-DD; `whole`: every suite ran, so that a row about no test is a mistake.
  void apply(std::vector<test_result>& tests, const std::string& today, bool whole) const;
};

expectations parse_expectations(const std::string& text);
expectations read_expectations(const std::string& file);

}  // namespace bitnet::conformance
