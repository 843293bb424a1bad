/** Long texts of CUDA C++, written as programs usually are. */

const DEVICE_FUNCTIONS = [
  (i: number): string => `// The ${i}th of the functions; it doesn't matter what it computes.
__device__ __forceinline__ float activate${i}(float x, float slope) {
  if (x > 0.0f) {
    return x;
  } else {
    return slope * x / (1.0f + expf(-x)); // smooth below zero
  }
}
`,
  (i: number): string => `/*
 * Sums a warp's values: "lane 0" has the result.
 */
template <typename T>
__device__ T warpSum${i}(T value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    value += __shfl_down_sync(0xffffffff, value, offset);
  }
  return value;
}
`,
];

const KERNELS = [
  (i: number): string => `// y = a * x + y, once more
extern "C" __global__ void saxpy${i}(float* y, const float* __restrict__ x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    y[i] = a * x[i] + y[i];
  }
}
`,
  (i: number): string => `extern "C" __global__ void __launch_bounds__(256, 2)
reduce${i}(
    float* __restrict__ sums,      // one for each block
    const __half* __restrict__ in, // count of them
    unsigned long long count,
    const Options${Math.floor(i / 8)} options) {
  __shared__ float partial[TILE];
  float sum = 0.0f;
  unsigned step = gridDim.x * blockDim.x; /* grid-stride loop */
  for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    sum += __half2float(in[i]) * options.scale;
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) {
      partial[threadIdx.x] += partial[threadIdx.x + s];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = partial[0];
#ifdef VERBOSE
    printf("block %d: %f\\n", blockIdx.x, partial[0]);
#endif
  }
}
`,
];

const HEAD = `#include <cuda_fp16.h>
#define TILE 256
#define SQUARE(x) ((x) * (x))

`;

/** Returns a text of at least `lines` lines, and the number of its kernels. */
export function longSource(lines: number): {
  readonly text: string;
  readonly lines: number;
  readonly kernels: number;
} {
  let text = HEAD;
  let kernels = 0;
  for (let i = 0; count(text) < lines; i++) {
    if (i % 8 === 0)
      text +=
        `struct Options${i / 8} {\n  float scale;  // of every element\n  int flags[4];\n` +
        '};\n\n';
    text += `${DEVICE_FUNCTIONS[i % 2]!(i)}\n${KERNELS[0]!(i)}\n${KERNELS[1]!(i)}\n`;
    kernels += 2;
  }
  return { text, lines: count(text), kernels };
}

/**
 * Returns a text with `comments` comments, of both kinds and with quotes and braces in them,
 * before, in and after a kernel.
 */
export function manyComments(comments: number): string {
  const some = (n: number, indent: string): string =>
    Array.from(
      { length: n },
      (_, i) =>
        indent +
        (i % 3 === 0
          ? `/* { "${i}" */\n`
          : `// it's } number ${i} of extern "C" __global__ void no(int x) {\n`),
    ).join('');
  const third = Math.ceil(comments / 3);
  return (
    `${some(third, '')}extern "C" __global__ void commented(float* y, int n) ` +
    `{\n${some(third, '  ')}  y[n] = 1;\n}\n${some(third, '')}`
  );
}

function count(text: string): number {
  return text.split('\n').length - 1;
}
