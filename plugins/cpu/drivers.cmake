# It needs no driver; what tests/fuzz/cpu links is all that there is to say.
set(BITNET_cpu_FUZZED bitnet_cpu_kernels)
