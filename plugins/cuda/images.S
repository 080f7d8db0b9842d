/* The kernels, compiled by nvcc, as read-only data of the plugin. */
#include "images.inc"
#define BITNET_CUDA_IMAGE(name) image name;
        .section .rodata
        .macro image name
        .balign 64
        .globl bitnet_cuda_\name
        .hidden bitnet_cuda_\name
        .type bitnet_cuda_\name, %object
bitnet_cuda_\name:
        .incbin "\name\().fatbin"
        .size bitnet_cuda_\name, . - bitnet_cuda_\name
        .endm
BITNET_CUDA_IMAGES(BITNET_CUDA_IMAGE)
        .section .note.GNU-stack,"",%progbits
