// Histogram equalisation in three kernels: count the grey levels, turn the counts into a look-up
// table, apply it. All of it is integer arithmetic, and additions of integers commute, so the order
// in which the atomics happen to run leaves no trace in the result.

constexpr int LEVELS = 256;

// Every block counts its share of the pixels in shared memory, where atomics are cheap, and adds
// its 256 counts to the global histogram once. Any grid will do: the loop strides over the whole
// image. Blocks have 256 threads.
extern "C" __global__ void __launch_bounds__(LEVELS) histogram(
    const unsigned char* __restrict__ in,  // count
    unsigned* __restrict__ bins,           // LEVELS, zero at the start
    unsigned count) {
  __shared__ unsigned local[LEVELS];
  local[threadIdx.x] = 0;
  __syncthreads();

  for (unsigned i = blockIdx.x * LEVELS + threadIdx.x; i < count; i += gridDim.x * LEVELS)
    atomicAdd(&local[in[i]], 1u);
  __syncthreads();

  if (local[threadIdx.x] != 0) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

// One block of 256 threads, one per grey level: an inclusive scan (Hillis and Steele) makes the
// cumulative distribution, and the table spreads it over 0 to 255. The darkest level present goes
// to 0, the brightest to 255.
extern "C" __global__ void __launch_bounds__(LEVELS) equalise_table(
    const unsigned* __restrict__ bins,     // LEVELS
    unsigned char* __restrict__ table,     // LEVELS
    unsigned count) {
  __shared__ unsigned scan[2][LEVELS];
  __shared__ unsigned darkest;  // how many pixels have the darkest level present

  const unsigned level = threadIdx.x;
  if (level == 0) darkest = count;
  scan[0][level] = bins[level];
  __syncthreads();

  int from = 0;
  for (unsigned step = 1; step < LEVELS; step *= 2) {
    const unsigned below = level >= step ? scan[from][level - step] : 0;
    scan[1 - from][level] = scan[from][level] + below;
    from = 1 - from;
    __syncthreads();
  }

  const unsigned cumulative = scan[from][level];
  if (cumulative != 0) atomicMin(&darkest, cumulative);
  __syncthreads();

  // 64 bits: 255 * count passes 2^32 at 17 megapixels. An image of one single level is left as it
  // is.
  const unsigned range = count - darkest;
  const unsigned above = cumulative > darkest ? cumulative - darkest : 0;
  table[level] = range == 0 ? level : (255ull * above + range / 2) / range;
}

extern "C" __global__ void equalise(
    const unsigned char* __restrict__ in,     // count
    const unsigned char* __restrict__ table,  // LEVELS
    unsigned char* __restrict__ out,          // count
    unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = table[in[i]];
}
