// The sum of the products of four signed bytes of each, by one instruction where the device has it.
fn dot_bytes(a: u32, b: u32) -> i32 {
  return dot4I8Packed(a, b);
}
