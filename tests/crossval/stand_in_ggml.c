/* A stand-in for the libggml.so of bitnet.cpp, which has such a name, and llama.cpp has none. */
__attribute__((visibility("default"))) int quantize_i2_s(void) {
  return 0;
}
