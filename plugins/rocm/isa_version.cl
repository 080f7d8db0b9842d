// What AMD's device libraries have in one object for each target: 1000 times the major number, 100
// times the minor one, and the stepping. BITNET_ROCM_ISA_VERSION is it.
const __constant int __oclc_ISA_version = BITNET_ROCM_ISA_VERSION;
