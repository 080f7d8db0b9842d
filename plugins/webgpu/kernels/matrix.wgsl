// Elements of a row of matrix_in that begins at word `at`. Formats as in plugins/gpu-common/kernels.hpp.

// Bytes 4 to 15 of the block are the packed scales.
fn scale_byte(block: u32, n: u32) -> u32 {
  return byte_at(matrix_in[block + 1u + n / 4u], n % 4u);
}

fn q4_k_element(block: u32, i: u32) -> f32 {
  let j = i / 32u;  // sub-block
  let halves = matrix_in[block];
  var scale: u32;
  var minimum: u32;
  if (j < 4u) {
    scale = scale_byte(block, j) & 63u;
    minimum = scale_byte(block, j + 4u) & 63u;
  } else {
    scale = (scale_byte(block, j + 4u) & 15u) | ((scale_byte(block, j - 4u) >> 6u) << 4u);
    minimum = (scale_byte(block, j + 4u) >> 4u) | ((scale_byte(block, j) >> 6u) << 4u);
  }
  let n = j / 2u * 32u + i % 32u;
  let nibbles = byte_at(matrix_in[block + 4u + n / 4u], n % 4u);
  let q = select(nibbles & 15u, nibbles >> 4u, (j & 1u) != 0u);
  let step_ = rounded(from_half(halves & 0xffffu) * f32(scale));
  let offset = rounded(from_half(halves >> 16u) * f32(minimum));
  return rounded(rounded(step_ * f32(q)) - offset);
}

fn q6_k_element(block: u32, i: u32) -> f32 {
  let half_ = i / 128u;
  let quarter = i % 128u / 32u;
  let n = i % 32u;
  let l = 64u * half_ + 32u * (quarter % 2u) + n;
  let low = byte_at(matrix_in[block + l / 4u], l % 4u);
  let h = 32u * half_ + n;
  let high = byte_at(matrix_in[block + 32u + h / 4u], h % 4u);
  let four = select(low >> 4u, low & 15u, quarter < 2u);
  let q = i32(four | (((high >> (2u * quarter)) & 3u) << 4u)) - 32;
  let s = 8u * half_ + 2u * quarter + n / 16u;
  let scale = signed_byte(matrix_in[block + 48u + s / 4u], s % 4u);
  let step_ = rounded(from_half(matrix_in[block + 52u] & 0xffffu) * f32(scale));
  return rounded(step_ * f32(q));
}

// An element without the scale of ternary rows.
fn matrix_element(format: u32, at: u32, i: u32) -> f32 {
  switch format {
    case FORMAT_F32: {
      return number(matrix_in[at + i]);
    }
    case FORMAT_F16: {
      return from_half((matrix_in[at + i / 2u] >> (16u * (i & 1u))) & 0xffffu);
    }
    case FORMAT_BF16: {
      return number((matrix_in[at + i / 2u] >> (16u * (i & 1u))) << 16u);
    }
    case FORMAT_Q8_0: {
      let block = at + i / 32u * 9u;
      let n = i % 32u;
      let q = signed_byte(matrix_in[block + 1u + n / 4u], n % 4u);
      return rounded(from_half(matrix_in[block] & 0xffffu) * f32(q));
    }
    case FORMAT_Q4_0: {
      let block = at + i / 32u * 5u;
      let n = i % 32u;
      let q = four_bits(matrix_in[block + 1u + n % 16u / 4u], n);
      return rounded(from_half(matrix_in[block] & 0xffffu) * f32(q));
    }
    case FORMAT_Q4_K: {
      return q4_k_element(at + i / 256u * 36u, i % 256u);
    }
    case FORMAT_Q6_K: {
      return q6_k_element(at + i / 256u * 53u, i % 256u);
    }
    default: {
      let n = i % 128u;
      let codes = byte_at(matrix_in[at + i / 128u * 8u + n % 32u / 4u], n % 4u);
      return f32(i32((codes >> (6u - 2u * (n / 32u))) & 3u) - 1);
    }
  }
}
