// What plugins made of tier0_backend.cpp differ in.
#pragma once

struct tier0_variant {
  // The backend's name.
  const char* name;
  // Loses its device after as many steps as its setting "steps" says; with the setting "poisoned"
  // its whole context.
  bool fragile = false;
  // Computes something else where no self-test looks: in attention, if several positions have
  // weight.
  bool wrong = false;
  // Does not declare that two copies of it may be open.
  bool single = false;
  // Keeps keys and values as f32 and f16 only.
  bool few_types = false;
  // Adds 100 to one logit, of token 7, in a head that is larger than that of any self-test.
  bool one_logit = false;
  // Reverses the result of such attention, but only from position 16 on: behind the tokens that a
  // reload compares.
  bool late = false;
};
extern const tier0_variant tier0;
