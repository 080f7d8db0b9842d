# Reports the compiler, whose major version the package depends on: the driver must be of that version of CUDA or
# a newer one.
nvcc = $(shell sed -n 's/^BITNET_NVCC:[A-Z]*=//p' $(build)/CMakeCache.txt)
major = $(shell $(nvcc) --version | sed -n 's/.* release \([0-9]*\)\..*/\1/p')
options = $(if $(BITNET_CUDA_ARCHS),"-DBITNET_CUDA_ARCHS=$(BITNET_CUDA_ARCHS)")
report = echo "nvcc is $(nvcc):" && $(nvcc) --version
substitutions = -Vcuda:Major=$(major)
