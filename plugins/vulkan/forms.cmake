# Compiles the kernels to SPIR-V when the plugin is built, each in its forms, and writes the table of them that
# shaders.hpp declares. The driver of a device chooses among the forms (forms.hpp).

# The forms of every kernel that kernel_list.hpp names: plain, and those with the abilities of some devices, which
# kernels/common.glsl describes.
set(vulkan_with_subgroups rms_norm act_quant linear_ternary linear_dense attn_paged delta_rule norm_quant glu_quant
  bit_linear)
set(vulkan_with_dot linear_ternary bit_linear)

# bitnet_vulkan_form(<file> <kernel> <form>): compiles one form and checks it. The file has its words, as text that C++
# includes.
function(bitnet_vulkan_form out kernel form)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/kernels/${kernel}.comp)
  set(spirv ${CMAKE_CURRENT_BINARY_DIR}/${kernel}.${form}.spv)
  set(defines)
  if(form MATCHES subgroups)
    list(APPEND defines -DSUBGROUPS)
  endif()
  if(form MATCHES dot)
    list(APPEND defines -DDOT)
  endif()
  file(GLOB parts CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/kernels/*.glsl)
  add_custom_command(OUTPUT ${spirv}.inc
    COMMAND ${BITNET_GLSLC} --target-env=vulkan1.1 -O -Werror ${defines} -o ${spirv} ${source}
    COMMAND ${BITNET_SPIRV_VAL} --target-env vulkan1.1 ${spirv}
    COMMAND ${BITNET_GLSLC} --target-env=vulkan1.1 -O -mfmt=num ${defines} -o ${spirv}.inc ${source}
    DEPENDS ${source} ${parts} VERBATIM)
  set(${out} ${spirv}.inc PARENT_SCOPE)
endfunction()

# bitnet_vulkan_forms(<images> <table>): the compiled forms of all kernels, and the source with their table.
function(bitnet_vulkan_forms images table)
  bitnet_gpu_kernels(kernels)
  set(files)
  set(words)
  set(rows)
  foreach(kernel IN LISTS kernels)
    set(forms plain)
    if(kernel IN_LIST vulkan_with_subgroups)
      list(APPEND forms subgroups)
    endif()
    if(kernel IN_LIST vulkan_with_dot)
      list(APPEND forms dot subgroups_dot)
    endif()
    foreach(form IN LISTS forms)
      bitnet_vulkan_form(file ${kernel} ${form})
      list(APPEND files ${file})
      set(subgroups false)
      if(form MATCHES subgroups)
        set(subgroups true)
      endif()
      set(dot false)
      if(form MATCHES dot)
        set(dot true)
      endif()
      string(APPEND words "constexpr uint32_t ${kernel}_${form}[] = {\n#include \"${kernel}.${form}.spv.inc\"\n};\n")
      string(APPEND rows "    {gpu::kernel_id::${kernel}, ${subgroups}, ${dot}, ${kernel}_${form}},\n")
    endforeach()
  endforeach()
  file(CONFIGURE OUTPUT code.cpp @ONLY CONTENT "#include \"vulkan/shaders.hpp\"

namespace bitnet::vulkan {
namespace {
${words}}  // namespace

const std::vector<shader>& shaders() {
  static const std::vector<shader> all = {
${rows}  };
  return all;
}

}  // namespace bitnet::vulkan
")
  set(${images} ${files} PARENT_SCOPE)
  set(${table} ${CMAKE_CURRENT_BINARY_DIR}/code.cpp PARENT_SCOPE)
endfunction()
