#pragma once
// Where something that computes on one device is to go by a list of devices that its caller gives.

#include <string>

#include "api/objects.hpp"

namespace bitnet::api {

struct preference {
  select::request wanted;  // where it may go when its device is lost, from now on
  select::choice to;       // the first device of the list that can be used
  bool stays = false;      // it is there
};

// `here`: where it computes. `function` of bitnet.h is the call, and `what` is a word for the
// object: "session". A list whose first usable device comes behind one that has not answered is
// BITNET_TIMEOUT where that means to stay, else a warning in the log. The caller holds the
// runtime's backends steady.
result<preference> find_preference(bitnet_runtime& runtime, const select::choice& here,
                                   const char* list, const char* function, const char* what);

}  // namespace bitnet::api
