// Sobel edges: the gradient's magnitude from a 3 x 3 neighbourhood, read through a shared-memory
// tile with a halo of one pixel. The gradients are integers, their squares' sum (at most 2 *
// 1020^2) is exact in f32, and sqrt is correctly rounded, so the result is the same byte on every
// device.
//
// The block shape is known to demo/pipeline.ts too.

constexpr int BLOCK_X = 32;
constexpr int BLOCK_Y = 8;
constexpr int TILE_X = BLOCK_X + 2;
constexpr int TILE_Y = BLOCK_Y + 2;

__device__ __forceinline__ int clamp(int value, int last) {
  return min(max(value, 0), last);
}

extern "C" __global__ void __launch_bounds__(BLOCK_X * BLOCK_Y) sobel(
    const unsigned char* __restrict__ in,  // height x width
    unsigned char* __restrict__ out,       // height x width
    int width, int height) {
  __shared__ unsigned char tile[TILE_Y][TILE_X];

  const int left = blockIdx.x * BLOCK_X;
  const int top = blockIdx.y * BLOCK_Y;
  for (int i = threadIdx.y * BLOCK_X + threadIdx.x; i < TILE_X * TILE_Y; i += BLOCK_X * BLOCK_Y) {
    const int x = clamp(left - 1 + i % TILE_X, width - 1);
    const int y = clamp(top - 1 + i / TILE_X, height - 1);
    tile[i / TILE_X][i % TILE_X] = in[static_cast<size_t>(y) * width + x];
  }
  __syncthreads();

  const int x = left + threadIdx.x;
  const int y = top + threadIdx.y;
  if (x >= width || y >= height) return;

  const auto at = [&](int dx, int dy) -> int {
    return tile[threadIdx.y + 1 + dy][threadIdx.x + 1 + dx];
  };
  const int gx = at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1);
  const int gy = at(-1, 1) + 2 * at(0, 1) + at(1, 1) - at(-1, -1) - 2 * at(0, -1) - at(1, -1);

  const float magnitude = __fsqrt_rn(static_cast<float>(gx * gx + gy * gy));
  out[static_cast<size_t>(y) * width + x] = min(__float2uint_rn(magnitude), 255u);
}
