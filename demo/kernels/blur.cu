// Separable Gaussian blur: one pass along the rows, one along the columns. Each block copies its
// pixels and a halo of RADIUS on both sides to shared memory once; every output is then 2 * RADIUS
// + 1 reads from there instead of from global memory. Past the image's border the nearest pixel is
// repeated.
//
// The sums run from the first tap to the last with one fused multiply-add (one rounding) per tap,
// so the result is defined to the last bit. The intermediate stays in f32: rounding to bytes
// happens once, at the end.
//
// RADIUS, the block shapes and COLUMNS_TILE_Y are known to demo/pipeline.ts too.

constexpr int RADIUS = 4;
constexpr int TAPS = 2 * RADIUS + 1;

// Rows: 64 x 4 threads, one output each.
constexpr int ROWS_X = 64;
constexpr int ROWS_Y = 4;

// Columns: 32 x 8 threads, four outputs each, so that the halo (8 rows) is small beside the tile
// (32 rows).
constexpr int COLUMNS_X = 32;
constexpr int COLUMNS_Y = 8;
constexpr int COLUMNS_TILE_Y = 32;

__device__ __forceinline__ int clamp(int value, int last) {
  return min(max(value, 0), last);
}

extern "C" __global__ void __launch_bounds__(ROWS_X * ROWS_Y) blur_rows(
    const unsigned char* __restrict__ in,  // height x width
    float* __restrict__ out,               // height x width
    const float* __restrict__ weights,     // TAPS
    int width, int height) {
  __shared__ float tile[ROWS_Y][ROWS_X + 2 * RADIUS];

  const int left = blockIdx.x * ROWS_X;
  const int x = left + threadIdx.x;
  const int y = blockIdx.y * ROWS_Y + threadIdx.y;
  const unsigned char* row = in + static_cast<size_t>(clamp(y, height - 1)) * width;

  for (int i = threadIdx.x; i < ROWS_X + 2 * RADIUS; i += ROWS_X)
    tile[threadIdx.y][i] = row[clamp(left - RADIUS + i, width - 1)];
  __syncthreads();  // every thread comes here, those outside the image too

  if (x >= width || y >= height) return;
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < TAPS; k++) sum = fmaf(weights[k], tile[threadIdx.y][threadIdx.x + k], sum);
  out[static_cast<size_t>(y) * width + x] = sum;
}

extern "C" __global__ void __launch_bounds__(COLUMNS_X * COLUMNS_Y) blur_columns(
    const float* __restrict__ in,       // height x width
    unsigned char* __restrict__ out,    // height x width
    const float* __restrict__ weights,  // TAPS
    int width, int height) {
  __shared__ float tile[COLUMNS_TILE_Y + 2 * RADIUS][COLUMNS_X];

  const int x = blockIdx.x * COLUMNS_X + threadIdx.x;
  const int top = blockIdx.y * COLUMNS_TILE_Y;
  const float* column = in + clamp(x, width - 1);

  for (int i = threadIdx.y; i < COLUMNS_TILE_Y + 2 * RADIUS; i += COLUMNS_Y)
    tile[i][threadIdx.x] = column[static_cast<size_t>(clamp(top - RADIUS + i, height - 1)) * width];
  __syncthreads();

  if (x >= width) return;
  for (int i = threadIdx.y; i < COLUMNS_TILE_Y && top + i < height; i += COLUMNS_Y) {
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < TAPS; k++) sum = fmaf(weights[k], tile[i + k][threadIdx.x], sum);
    // To nearest, ties to even; the weights' rounding errors may carry white a hair above 255.
    out[static_cast<size_t>(top + i) * width + x] = min(__float2uint_rn(sum), 255u);
  }
}
