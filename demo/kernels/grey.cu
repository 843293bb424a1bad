// RGB to grey. One thread per pixel; the weights are BT.601's, in 1/256ths, so that the result is
// the same integer on every device: 77 + 150 + 29 = 256, hence white stays 255 and no clamp is
// needed.

extern "C" __global__ void grey(
    const unsigned char* __restrict__ rgb,  // count packed RGB pixels
    unsigned char* __restrict__ out,        // count bytes
    unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;

  const unsigned r = rgb[3 * i + 0];
  const unsigned g = rgb[3 * i + 1];
  const unsigned b = rgb[3 * i + 2];
  out[i] = (77 * r + 150 * g + 29 * b + 128) >> 8;
}
