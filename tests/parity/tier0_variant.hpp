// What plugins made of tier0_backend.cpp differ in.
#pragma once

struct tier0_variant {
  // What it calls itself.
  const char* name;
  // Loses its device after as many steps as its setting "steps" says; with the setting "poisoned"
  // its whole context.
  bool fragile = false;
  // Computes something else where no self-test looks: if attention finds several positions.
  bool wrong = false;
  // Does not declare that two copies of it may be open.
  bool single = false;
  // Keeps keys and values as f32 and f16 only.
  bool few_types = false;
  // Adds 100 to one logit, of token 7, in a head that is larger than that of any self-test.
  bool one_logit = false;
  // The same, but only behind the tokens that a reload compares: from position 16 on.
  bool late = false;
};
extern const tier0_variant tier0;
