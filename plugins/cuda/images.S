/* The kernels, compiled by nvcc, as read-only data of the plugin. */
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
        image rows
        image rows_one
        image elements
        image states
        image dense
        image dense_rounded
        image attention
        image attention_prompts
        image attention_rounded
        image attention_token
        image ternary
        image ternary_groups
        image ternary_groups_one
        image ternary_tiles
        image head
#ifdef BITNET_CUDA_WARP_GROUPS
        image ternary_warp_groups
        image ternary_warp_groups_factored
#endif
        .section .note.GNU-stack,"",%progbits
