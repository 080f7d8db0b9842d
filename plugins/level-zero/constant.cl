// Before each text: C1 where the driver is given its value, as constant 1 of the SPIR-V. llvm-spirv
// knows the function by this name; the second argument is the value without one.
#ifdef SPECIALISED
__attribute__((overloadable, const)) uint __spirv_SpecConstant(int id, uint otherwise);
#define C1 __spirv_SpecConstant(1, (uint)ROOM)
#endif
