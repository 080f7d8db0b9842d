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
};
extern const computing_variant variant;
