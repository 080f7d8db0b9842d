# Of the cuda backend: which compiler it was. A driver of its major version of CUDA or a newer one can load what
# was compiled.
nvcc = $(shell sed -n 's/^BITNET_NVCC:[A-Z]*=//p' $(build)/CMakeCache.txt)
major = $(shell $(nvcc) --version | sed -n 's/.* release \([0-9]*\)\..*/\1/p')
options = $(if $(BITNET_CUDA_ARCHS),"-DBITNET_CUDA_ARCHS=$(BITNET_CUDA_ARCHS)")
report = echo "nvcc is $(nvcc):" && $(nvcc) --version
substitutions = -Vcuda:Major=$(major)
