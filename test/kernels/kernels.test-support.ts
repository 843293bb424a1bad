/** Kernels that several test files launch or simulate. */
import {
  bool,
  f16,
  f32,
  f64,
  i32,
  i64,
  inout,
  input,
  kernel,
  output,
  struct,
  u32,
  u8,
} from 'async-cuda';

export const saxpy = kernel(
  'saxpy',
  { y: inout(f32), a: f32, x: input(f32) },
  ({ y, a, x }, gpu) => {
    const i = gpu.globalId.x;
    if (i < y.length) y[i] = a * x[i]! + y[i]!;
  },
);

export const transpose = kernel(
  'transpose',
  { out: output(f32, 2), x: input(f32, 2) },
  ({ out, x }, gpu) => {
    const { x: column, y: row } = gpu.globalId;
    if (row < out.shape[0] && column < out.shape[1]) out[row]![column] = x[column]![row]!;
  },
);

/** Sums of blocks, through shared memory. */
export const Body = struct({ x: f32, id: i64, alive: bool });
export const bodies = kernel(
  'bodies',
  { all: inout(Body), offset: Body, factor: f64, half: f16, small: u8, on: bool, count: u32 },
  ({ all, offset, factor, half, small, on, count }, gpu) => {
    const i = gpu.globalId.x;
    if (i >= all.length || !on) return;
    const body = all[i]!;
    body.x = body.x * gpu.f32(factor) + offset.x + half + small + gpu.f32(count);
    body.id += offset.id;
    body.alive = !body.alive;
  },
);

export const reversed = kernel('reversed', { out: output(i32) }, ({ out }, gpu) => {
  const scratch = gpu.dynamicShared.i32();
  const t = gpu.threadIdx.x;
  scratch[t] = t * t;
  gpu.block.sync();
  out[t] = scratch[gpu.blockDim.x - 1 - t]!;
});
