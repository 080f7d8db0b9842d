// The sum of the products of four signed bytes of each.
fn dot_bytes(a: u32, b: u32) -> i32 {
  return signed_byte(a, 0u) * signed_byte(b, 0u) + signed_byte(a, 1u) * signed_byte(b, 1u) +
         signed_byte(a, 2u) * signed_byte(b, 2u) + signed_byte(a, 3u) * signed_byte(b, 3u);
}
