# The backend needs no driver. This lists what tests/fuzz/cpu links.
set(BITNET_cpu_FUZZED bitnet_cpu_kernels)
