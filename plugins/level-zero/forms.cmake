# The forms of kernels that the plugin carries, and their compilation. forms.hpp defines a form.
# Constants 1 to 4 are those of plugins/gpu-common/kernels.hpp. Constant 0, threads of a group, is
# 64; 32 of them share a row of a matrix, as plugins/gpu-common/plan/plan.cpp plans for groups of 64.

# All rows of bitnet_level_zero_form: "kernel c1 c2 c3 c4 loose specialised".
function(bitnet_level_zero_rows out)
  bitnet_gpu_kernels(kernels)
  set(of_embed_gather)
  set(of_linear_dense)
  foreach(format RANGE 1 8) # BITNET_FORMAT_*; ternary2 is the last
    list(APPEND of_embed_gather "${format} 0 0 0 0 0")
    if(format LESS 8)
      foreach(tokens IN ITEMS 1 2 4)
        list(APPEND of_linear_dense "32 ${tokens} ${format} 0 2 0")
      endforeach()
    endif()
  endforeach()
  set(of_linear_ternary)
  foreach(tokens IN ITEMS 1 2 4)
    list(APPEND of_linear_ternary "32 ${tokens} 4 0 2 0") # one scale
    foreach(factor IN ITEMS 0 32 64 128) # a scale for each group, and elements to a factor
      list(APPEND of_linear_ternary "1 ${tokens} 4 ${factor} 2 0")
    endforeach()
  endforeach()
  set(of_hadamard "512 0 0 0 0 0" "1024 0 0 0 0 0" "2048 0 0 0 0 0" "4096 0 0 0 0 0")
  set(of_kv_write)
  set(of_attn_paged)
  foreach(keys IN ITEMS 1 2 5 6) # BITNET_DTYPE_* of f32, f16, q8_0 and q4_0
    foreach(values IN ITEMS 1 2 5 6)
      list(APPEND of_kv_write "${keys} ${values} 0 0 0 0" "${keys} ${values} 1 0 0 0")
      foreach(kept IN ITEMS 2 4 8) # heads of 128, 256 and 512 elements
        list(APPEND of_attn_paged "${keys} ${values} ${kept} 0 3 0")
      endforeach()
    endforeach()
  endforeach()
  set(of_elementwise)
  foreach(op IN ITEMS 9 10 11 12 18 19 20) # BITNET_OP_ADD MUL RELU2 SILU GELU SCALE SIGMOID
    list(APPEND of_elementwise "${op} 0 0 0 0 0")
  endforeach()
  set(of_glu_quant)
  foreach(op IN ITEMS 11 12 18)
    list(APPEND of_glu_quant "${op} 0 0 0 0 0" "${op} 1 0 0 0 0")
  endforeach()
  set(of_bit_linear)
  # Words of a row of codes. The last two are the most that fit into 32 and 64 KiB of a group's
  # memory beside the kernel's other data (plan/fusion.cpp), in rows of whole groups of 128 elements.
  foreach(room IN ITEMS 1024 2048 4096 7904 16096)
    list(APPEND of_bit_linear "32 0 4 ${room} 4 0" "32 1 4 ${room} 4 0")
  endforeach()
  set(of_short_conv "32 0 0 0 1 1")
  set(of_delta_rule "256 0 0 0 1 1")
  set(rows)
  foreach(kernel IN LISTS kernels)
    if(NOT DEFINED of_${kernel})
      set(of_${kernel} "0 0 0 0 0 0")
    endif()
    list(TRANSFORM of_${kernel} PREPEND "${kernel} ")
    list(APPEND rows ${of_${kernel}})
  endforeach()
  set(${out} ${rows} PARENT_SCOPE)
endfunction()

# Adds a command that makes <spirv> of a kernel's text. Only the driver's compiler optimises it:
# LLVM's passes leave instructions that llvm-spirv cannot translate (freeze), and an order of blocks
# that spirv-val rejects. The first drivers of Level Zero take SPIR-V 1.1.
function(bitnet_level_zero_compile spirv kernel c1 c2 c3 c4 loose specialised)
  set(defines -DT=64 -DC2=${c2} -DC3=${c3} -DC4=${c4} -DNAME=bitnet_${kernel} -DEXACT_DIVISION=0 -DDOUBLES=0
              -DDOT_PRODUCT=0)
  if(specialised)
    list(APPEND defines -DSPECIALISED -DROOM=${c1})
  else()
    list(APPEND defines -DC1=${c1})
  endif()
  set(texts ${CMAKE_CURRENT_SOURCE_DIR}/../gpu-common/opencl-c)
  file(GLOB parts CONFIGURE_DEPENDS ${texts}/*.cl)
  add_custom_command(OUTPUT ${spirv}
    COMMAND ${BITNET_CLANG_FOR_SPIRV} -c -x cl -cl-std=CL1.2 -target spir64 -Xclang -finclude-default-header -O2 -Xclang -disable-llvm-passes
            -emit-llvm ${defines} -include ${CMAKE_CURRENT_SOURCE_DIR}/constant.cl
            -o ${spirv}.bc ${texts}/${kernel}.cl
    COMMAND ${BITNET_LLVM_SPIRV} --spirv-max-version=1.1 --spirv-fp-contract=off -o ${spirv} ${spirv}.bc
    COMMAND ${BITNET_SPIRV_VAL} --target-env opencl2.2 ${spirv}
    DEPENDS ${parts} ${CMAKE_CURRENT_SOURCE_DIR}/constant.cl
    COMMENT "Compiling ${kernel} to SPIR-V" VERBATIM)
endfunction()

# bitnet_level_zero_forms(<images> <table>): writes an assembler file with all SPIR-V, and a C++
# file with its table.
function(bitnet_level_zero_forms images table)
  bitnet_level_zero_rows(rows)
  set(code)
  set(names)
  set(lines)
  set(all)
  foreach(row IN LISTS rows)
    separate_arguments(row)
    list(GET row 0 kernel)
    list(JOIN row "_" name)
    set(spirv ${CMAKE_CURRENT_BINARY_DIR}/spirv/${name}.spv)
    bitnet_level_zero_compile(${spirv} ${row})
    list(APPEND all ${spirv})
    set(symbol bitnet_level_zero_${name})
    string(APPEND code "        image ${symbol} \"${spirv}\"\n")
    string(APPEND names "extern const unsigned char ${symbol}[], ${symbol}_end[];\n")
    list(SUBLIST row 1 4 constants)
    list(JOIN constants ", " constants)
    list(GET row 5 loose)
    list(GET row 6 specialised)
    string(APPEND lines
      "    {gpu::kernel_id::${kernel}, {64, ${constants}}, ${loose}, ${specialised} != 0, ${symbol}, ${symbol}_end},\n")
  endforeach()
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/spirv)
  configure_file(images.S.in ${CMAKE_CURRENT_BINARY_DIR}/images.S @ONLY)
  configure_file(table.cpp.in ${CMAKE_CURRENT_BINARY_DIR}/table.cpp @ONLY)
  set_source_files_properties(${CMAKE_CURRENT_BINARY_DIR}/images.S PROPERTIES OBJECT_DEPENDS "${all}")
  set(${images} ${CMAKE_CURRENT_BINARY_DIR}/images.S PARENT_SCOPE)
  set(${table} ${CMAKE_CURRENT_BINARY_DIR}/table.cpp PARENT_SCOPE)
endfunction()
