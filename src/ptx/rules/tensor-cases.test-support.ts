// Test only: tensor maps and boxes at random, and kernels that copy one box.

import * as fc from '../../../test/fast-check.js';
import { TENSOR_TYPES, isFloatTensor, tensorTypeBytes } from '../tensor-map.js';
import type { TensorMap, TensorType } from '../tensor-map.js';
import type { TensorMode } from './tensor-model.test-support.js';

/** The bytes of shared memory that the kernels have for boxes. */
export const REGION = 12288;
const MOST_BOX = 8192;
const SPANS = [128, 32, 64, 128, 96];

export interface TensorCase {
  map: TensorMap;
  mode: TensorMode;
  coordinates: number[];
  offsets: number[];
  /** The bytes of the tensor. */
  bytes: number;
  /** Where in the region the box begins: a multiple of 128. */
  at: number;
}

type Draw = (low: number, high: number) => number;

const upTo = (value: number, step: number): number => Math.ceil(value / step) * step;

interface Wanted {
  mode?: TensorMode;
  types?: readonly TensorType[];
  interleave?: number;
  /** Only what stores and reductions take. */
  stores?: boolean;
  /** Only the swizzles of compute capability 9.0. */
  hopper?: boolean;
}

/** The elements of the innermost dimension of a box. */
function innerBox(draw: Draw, size: number, slice: number, swizzle: number): number {
  // That of slices counts them, and is a multiple of 16 bytes all the same (H200, driver 580).
  if (slice) return (16 * draw(1, 3)) / size;
  const most = Math.min(swizzle ? SPANS[swizzle]! : 256, 256 * size);
  return (16 * draw(1, Math.min(8, Math.floor(most / 16)))) / size;
}

/** A case whose numbers `draw` chooses. */
export function tensorCase(draw: Draw, wanted: Wanted = {}): TensorCase {
  const mode = wanted.mode ?? 'tile';
  const types = wanted.types ?? TENSOR_TYPES;
  const type = types[draw(0, types.length - 1)]!;
  const size = tensorTypeBytes(type);
  const interleave = wanted.interleave ?? 0;
  const rank = mode === 'rows' ? 2 : draw(mode === 'im2col' || interleave ? 3 : 1, 5);
  const swizzle = draw(0, wanted.hopper ? 3 : 4);
  const atomicity =
    swizzle === 3 && !wanted.hopper ? [0, 1, 3, 2][draw(0, wanted.stores ? 2 : 3)]! : 0;
  const slice = interleave ? 8 << interleave : 0;
  const inner = innerBox(draw, size, slice, swizzle);
  const unit = interleave === 2 ? 32 : 16;
  const dims = [draw(1, 2 * inner), ...Array.from({ length: rank - 1 }, () => draw(1, 7))];
  const strides: number[] = [];
  for (let axis = 1; axis < rank; axis++) {
    const least = dims[axis - 1]! * (axis === 1 ? slice || size : strides[axis - 2]!);
    strides.push(upTo(least, unit) + unit * draw(0, 2));
  }
  const steps = Array.from({ length: rank }, (_, axis) =>
    axis === 0 && !slice ? draw(1, 8) : draw(1, 3),
  );
  const box = [inner];
  const rowBytes = slice
    ? slice * Math.ceil(inner / steps[0]!)
    : upTo(inner * size, swizzle ? SPANS[swizzle]! : 16);
  let rows = 1;
  for (let axis = 1; axis < rank; axis++) {
    const count =
      mode === 'tile' ? draw(1, Math.min(6, Math.floor(MOST_BOX / rowBytes / rows))) : 1;
    rows *= count;
    box.push(mode === 'rows' ? 1 : count * steps[axis]! - draw(0, steps[axis]! - 1));
  }
  const spatial = mode === 'im2col' ? rank - 2 : 0;
  // W, H and D are above the channels, of which interleaved tensors have no dimension.
  const first = slice ? 0 : 1;
  const lower = dims
    .slice(first, first + spatial)
    .map((dim, axis) =>
      wanted.stores ? draw(0, Math.min(1, dim - 1, dims[axis + 1]! - 1)) : draw(-3, 1),
    );
  const upper = lower.map((corner, axis) =>
    draw(corner - Math.min(dims[axis + first]!, dims[axis + 1]!) + 1, wanted.stores ? 0 : 2),
  );
  const negative = (low: number): number => (wanted.stores && mode !== 'rows' ? 0 : low);
  const coordinates = dims.map((dim, axis) => {
    const pixel = axis - first;
    if (pixel >= 0 && pixel < spatial) return draw(lower[pixel]!, dim - 1 + upper[pixel]!);
    if (axis === 0 && !slice) return (16 / size) * draw(negative(-2), 3);
    return draw(negative(-6), dim + 2);
  });
  if (mode === 'rows') coordinates.push(...Array.from({ length: 3 }, () => draw(-1, dims[1]!)));
  return {
    map: {
      kind: mode === 'im2col' ? 'im2col' : 'tile',
      type,
      address: 0,
      dims,
      strides,
      box: mode === 'im2col' ? [] : box,
      steps,
      interleave,
      swizzle,
      atomicity,
      fill: isFloatTensor(type) ? draw(0, 1) : 0,
      promotion: 0,
      lower,
      upper,
      channels: inner,
      pixels: draw(1, Math.min(50, Math.floor(MOST_BOX / (slice || rowBytes)))),
    },
    mode,
    coordinates,
    offsets: Array.from({ length: spatial }, () => draw(0, 3)),
    bytes: rank > 1 ? strides.at(-1)! * dims.at(-1)! : upTo(dims[0]! * size, 16),
    at: 128 * draw(0, 9),
  };
}

/** The same as an arbitrary of fast-check. */
export const tensorCases = (wanted: Wanted = {}): fc.Arbitrary<TensorCase> =>
  fc
    .gen()
    .map((g) =>
      tensorCase((low, high) => g(fc.integer, { min: Math.min(low, high), max: high }), wanted),
    );

const RANK: Readonly<Record<TensorMode, (map: TensorMap) => string>> = {
  tile: ({ dims }) => `${dims.length}d`,
  im2col: ({ dims }) => `${dims.length}d`,
  rows: () => '2d',
};

/**
 * The body of a kernel of one thread: shared memory is read from `in`, the box is copied, and
 * shared memory is written to `out`, followed by a word: whether the box's bytes were counted.
 */
export function tensorKernel(
  { map, mode, coordinates, offsets }: TensorCase,
  operation: string,
  { wait = false }: { wait?: boolean } = {},
): string {
  const list = coordinates.map((_, axis) => `%c${axis}`).join(', ');
  const tensor = `[%map, {${list}}]`;
  const rank = RANK[mode](map);
  const loads = operation === 'load';
  const how = {
    tile: 'tile',
    im2col: loads ? 'im2col' : 'im2col_no_offs',
    rows: loads ? 'tile::gather4' : 'tile::scatter4',
  }[mode];
  const info = offsets.length ? `, {${offsets.map((_, axis) => `%o${axis}`).join(', ')}}` : '';
  const copy = loads
    ? `cp.async.bulk.tensor.${rank}.shared::cluster.global.${how}` +
      `.mbarrier::complete_tx::bytes [%s], ${tensor}, [%m]${info};`
    : operation === 'store'
      ? `cp.async.bulk.tensor.${rank}.global.shared::cta.${how}.bulk_group ${tensor}, [%s];`
      : `cp.reduce.async.bulk.tensor.${rank}.global.shared::cta.${operation}.${how}.bulk_group ` +
        `${tensor}, [%s];`;
  // On a GPU the copies take their time; a kernel that hangs there hangs the suite, so it gives up.
  const filled = wait
    ? `mbarrier.arrive.expect_tx.shared.b64 %state, [%m+8], %r;
      filling: mbarrier.try_wait.shared.b64 %p, [%m+8], %state; @!%p bra filling;`
    : '';
  const done = wait
    ? loads
      ? `mov.u32 %r, 0;
      waiting: mbarrier.try_wait.shared.b64 %p, [%m], %state; @%p bra came;
      add.u32 %r, %r, 1; setp.lt.u32 %p, %r, 100000; @%p bra waiting; setp.ne.u32 %p, 0, 0;
      came: mov.u32 %r, ${REGION};`
      : 'cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;'
    : '';
  const end = wait ? 'cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;' : '';
  return `.reg .b64 %map, %in, %out, %state; .reg .b32 %s, %a, %m, %n, %r, %c<5>;
  .reg .b16 %o<3>; .reg .pred %p; .shared .align 8 .b8 bar[16];
  mov.b64 %map, map; cvta.param.u64 %map, %map; ld.param.u64 %in, [in]; ld.param.u64 %out, [out];
  ${coordinates.map((_, axis) => `ld.param.s32 %c${axis}, [c${axis}];`).join(' ')}
  ${offsets.map((_, axis) => `ld.param.u16 %o${axis}, [o${axis}];`).join(' ')}
  ld.param.u32 %s, [at]; ld.param.u32 %n, [bytes]; mov.u32 %a, area; add.u32 %s, %s, %a;
  mov.u32 %m, bar; mbarrier.init.shared.b64 [%m], 1; mbarrier.init.shared.b64 [%m+8], 1;
  mov.u32 %r, ${REGION};
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%a], [%in], %r, [%m+8];
  ${filled}
  ${copy}
  mbarrier.arrive${loads ? '.expect_tx' : ''}.shared.b64 %state, [%m]${loads ? ', %n' : ''};
  mbarrier.test_wait.shared.b64 %p, [%m], %state; ${done} selp.u32 %n, 1, 0, %p;
  cp.async.bulk.global.shared::cta.bulk_group [%out], [%a], %r; ${end}
  st.global.u32 [%out+${REGION}], %n; ret;`;
}

export const TENSOR_PARAMS =
  '.param .align 64 .b8 map[128], .param .u64 in, .param .u64 out, ' +
  '.param .u32 c0, .param .u32 c1, .param .u32 c2, .param .u32 c3, .param .u32 c4, ' +
  '.param .u16 o0, .param .u16 o1, .param .u16 o2, .param .u32 at, .param .u32 bytes';
export const TENSOR_SHARED = '.extern .shared .align 1024 .b8 area[];';
