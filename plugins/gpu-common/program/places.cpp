// Where the memory of a command's bindings is.
#include "program.hpp"

namespace bitnet::gpu {

using sdk::failed;
using source = operand::source;

// Each kernel that takes tickets leaves them as it found them: as zeros.
bitnet_status steps_on::take_tickets(const sdk::reporter& report) {
  if (of_.plan_.tickets == 0) return BITNET_OK;
  const std::vector<uint32_t> none(of_.plan_.tickets);
  const uint64_t bytes = 4 * none.size();
  if (bitnet_status s = device_.pool.take(bytes, memory_place::device, tickets_, report); failed(s))
    return s;
  const std::scoped_lock lock(device_.lock);
  return device_.driver->upload(*tickets_.get(), 0, none.data(), bytes, report);
}

binding steps_on::place_of(const operand& o, const node& n, uint64_t part) const {
  switch (o.from) {
    case source::value:
      return values_[o.index];
    case source::tokens:
      return facts_[BITNET_PORT_TOKENS];
    case source::positions:
      return facts_[BITNET_PORT_POSITIONS];
    case source::sequences:
      return facts_[BITNET_PORT_SEQUENCES];
    case source::slots:
      return facts_[BITNET_PORT_SLOTS];
    case source::block_tables:
      return facts_[BITNET_PORT_BLOCK_TABLES];
    case source::output_rows:
      return facts_[BITNET_PORT_OUTPUT_ROWS];
    case source::states:
      return facts_[BITNET_PORT_STATES];
    case source::matrix:
      return n.weight->parts[part].place;
    case source::vector:
      return (n.vector ? n.vector : n.weight)->parts[0].place;
    case source::scales:
      return n.weight->scales;
    case source::keys:
      return pool_->keys(o.index);
    case source::values:
      return pool_->values(o.index);
    case source::state:
      return pool_->states();
    case source::head_codes:
      return n.weight->copy->codes();
    case source::head_norms:
      return n.weight->copy->norms();
    case source::head_states:
      return top_head_.states();
    case source::head_counts:
      return top_head_.counts();
    case source::head_bounds:
      return top_head_.bounds();
    case source::head_found:
      return top_head_.found();
    case source::largest:
      return facts_[BITNET_PORT_LARGEST];
    case source::parts:
      if (const binding& parts = values_[of_.graph_.values.size() + o.index]; parts.memory)
        return parts;
      [[fallthrough]];  // there are none, and the kernel does not touch them
    case source::tickets:
      return {tickets_.get(), 0, 4 * uint64_t{of_.plan_.tickets}};
    case source::rounded:
      return values_[of_.graph_.values.size() + of_.plan_.part_words.size() + o.index];
    case source::rotations:
      break;
  }
  const buffer* memory = rotations_[o.index].get();
  return {memory, 0, memory->size()};
}

}  // namespace bitnet::gpu
