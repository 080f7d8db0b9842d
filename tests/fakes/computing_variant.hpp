// What plugins made of computing_backend.cpp differ in.
#pragma once

struct computing_variant {
  const char* name;
  bool wrong_quick = false;  // the optimised product, where it runs
  bool wrong_plain = false;  // the other one
  bool quick_alone = false;  // there is no other one
  bool fused = false;        // a composite is made of whichever product runs
  bool crashes = false;      // in either product
  bool throws = false;       // in its entry
  bool boasts = false;       // that what it computes plainly is optimised
  bool leaves_out = false;   // the optimised product, of its list, once a device was opened
  bool opens_not = false;    // ... which then takes 0.4 s, prints 5 bytes and fails
  bool loud = false;         // four threads log 100 other warnings each while it is opened
  bool is_gpu = false;       // one that each backend with this member shows
  bool instant = false;      // a large product, which is only timed, is left out
  bool slow = false;         // a large product takes a fifth of a second more
};
extern const computing_variant variant;
