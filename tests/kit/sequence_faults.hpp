// Faults that a step of one sequence does not show: the setting "structure" names one, NAME:N,
// which is there in steps of more than N sequences. Included by saboteur.cpp behind faults.hpp.

namespace {

using structured_kernel = void (*)(const call& c, const share& s,
                                   bitnet::sdk::primitive_kernel sound);

// Runs the op with facts of the step changed. `change` may keep what it makes in the two lists.
template <class Change>
void with_facts(const call& c, const share& s, bitnet::sdk::primitive_kernel sound, Change change) {
  bitnet::sdk::step_view step = *c.step;
  std::vector<int32_t> facts;
  change(step, facts);
  call changed = c;
  changed.step = &step;
  sound(changed, s);
}

// Of a sequence that is shorter than the longest, its last block is that of the longest.
void reads_another_block(const call& c, const share& s, bitnet::sdk::primitive_kernel sound) {
  with_facts(c, s, sound, [](bitnet::sdk::step_view& v, std::vector<int32_t>& tables) {
    uint32_t longest = 0;
    int32_t rows = 0;
    for (uint32_t t = 0; t < v.n_tokens; ++t) {
      if (v.positions[t] > v.positions[longest]) longest = t;
      rows = std::max(rows, v.sequences[t] + 1);
    }
    const auto at = [&](uint32_t t, int32_t block) {
      return static_cast<uint64_t>(v.sequences[t]) * v.max_blocks + static_cast<uint64_t>(block);
    };
    tables.assign(v.block_tables, v.block_tables + static_cast<uint64_t>(rows) * v.max_blocks);
    const auto size = static_cast<int32_t>(v.block_tokens);
    for (uint32_t t = 0; t < v.n_tokens; ++t)
      if (const int32_t last = v.positions[t] / size; last < v.positions[longest] / size)
        tables[at(t, last)] = v.block_tables[at(longest, last)];
    v.block_tables = tables.data();
  });
}

// Each token is where the first of the step is, if it is not before that.
void takes_another_position(const call& c, const share& s, bitnet::sdk::primitive_kernel sound) {
  with_facts(c, s, sound, [](bitnet::sdk::step_view& v, std::vector<int32_t>& positions) {
    positions.assign(v.positions, v.positions + v.n_tokens);
    for (int32_t& p : positions) p = std::min(p, positions[0]);
    v.positions = positions.data();
  });
}

void counts_to_64(const call& c, const share& s, bitnet::sdk::primitive_kernel sound) {
  with_facts(c, s, sound, [](bitnet::sdk::step_view& v, std::vector<int32_t>& sequences) {
    sequences.assign(v.sequences, v.sequences + v.n_tokens);
    for (int32_t& x : sequences) x %= 64;
    v.sequences = sequences.data();
  });
}

// A sequence writes its first block, too, which others may have.
void writes_a_shared_block(const call& c, const share& s, bitnet::sdk::primitive_kernel sound) {
  sound(c, s);
  const auto& kv = c.step->kv;
  for (uint64_t t = s.first; t < s.last; ++t)
    if (static_cast<uint32_t>(c.step->positions[t]) >= c.step->block_tokens) {
      const auto slot = static_cast<uint64_t>(c.step->blocks_of(t)[0]) * c.step->block_tokens;
      *kv.k(static_cast<uint64_t>(c.ints[0]), slot, 0) ^= 1;
    }
}

void keeps_the_state_of_its_row(const call& c, const share& s,
                                bitnet::sdk::primitive_kernel sound) {
  with_facts(c, s, sound, [](bitnet::sdk::step_view& v, std::vector<int32_t>& states) {
    int32_t rows = 0;
    for (uint32_t t = 0; t < v.n_tokens; ++t) rows = std::max(rows, v.sequences[t] + 1);
    for (int32_t r = 0; r < rows; ++r) states.push_back(r);
    v.states = states.data();
  });
}

void gathers_in_order(const call& c, const share& s, bitnet::sdk::primitive_kernel sound) {
  with_facts(c, s, sound, [](bitnet::sdk::step_view& v, std::vector<int32_t>& rows) {
    rows.assign(v.output_rows, v.output_rows + v.n_outputs);
    std::sort(rows.begin(), rows.end());
    v.output_rows = rows.data();
  });
}

struct structure_fault {
  const char* name;
  uint32_t op;
  structured_kernel run;
};
const structure_fault structure_faults[] = {
    {"another-block", BITNET_OP_ATTN_PAGED, reads_another_block},
    {"another-position", BITNET_OP_ATTN_PAGED, takes_another_position},
    {"sixty-four", BITNET_OP_ATTN_PAGED, counts_to_64},
    {"shared-block", BITNET_OP_KV_WRITE, writes_a_shared_block},
    {"state-of-row", BITNET_OP_SHORT_CONV, keeps_the_state_of_its_row},
    {"rule-of-row", BITNET_OP_DELTA_RULE, keeps_the_state_of_its_row},
    {"ordered-rows", BITNET_OP_GATHER_ROWS, gathers_in_order},
};
const structure_fault* structured = nullptr;  // none is planted
uint64_t structured_beyond = 0;               // sequences of a step
bitnet::sdk::primitive_kernel structured_sound = nullptr;

bool read_structure(const std::string& text) {
  const auto colon = text.find(':');
  if (colon == std::string::npos) return false;
  structured_beyond = std::strtoull(text.c_str() + colon + 1, nullptr, 10);
  for (const structure_fault& f : structure_faults)
    if (text.substr(0, colon) == f.name) structured = &f;
  return structured != nullptr;
}

void run_structured(const call& c, const share& s) noexcept {
  uint64_t sequences = 1;  // the tokens of one stand together
  for (uint32_t t = 1; t < c.step->n_tokens; ++t)
    sequences += c.step->sequences[t] != c.step->sequences[t - 1] ? 1 : 0;
  if (sequences > structured_beyond)
    structured->run(c, s, structured_sound);
  else
    structured_sound(c, s);
}

void describe_with_structure(bitnet::sdk::definition& d) {
  if (structured == nullptr) return;
  for (bitnet::sdk::primitive& p : d.primitives)
    if (p.op == structured->op) {
      structured_sound = p.run;
      p.run = run_structured;
    }
}

}  // namespace
