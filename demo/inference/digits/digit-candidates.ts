/**
 * Finds possible digits in the model's outputs on the device: cells with a sufficient score, each
 * with its digit and its box, so that the 230 KB of a photograph's maps are not copied to the host.
 */
import {
  type AnyTensor,
  type Device,
  type DeviceOp,
  type Tensor,
  f32,
  i32,
  input,
  kernel,
  output,
  value,
} from 'async-cuda';

import { CELLS, DIGIT, LABELS, LEAST_SCORE, NUMBERS, SCORE, SIDES } from './digit-decoding.js';

/**
 * The largest number of candidates of a photograph that are read at once. Digits have four to ten
 * each.
 */
const USUAL = 128;
const BLOCK = 256;

/**
 * A thread looks at one cell of the photograph blockIdx.y, which has a row of `found`: how many
 * there are, and the first `most` that came.
 */
const select = kernel(
  'digit_candidates',
  { found: output(f32), scores: input(f32), distances: input(f32), most: i32 },
  ({ found, scores, distances, most }, gpu) => {
    const cell = gpu.globalId.x;
    const photograph = gpu.blockIdx.y;
    const map = photograph * gpu.DIGITS * gpu.CELLS + cell;
    let best = scores[map]!;
    let digit = 0;
    for (let d = 1; d < gpu.DIGITS; d++) {
      const score = scores[map + d * gpu.CELLS]!;
      if (score > best) {
        best = score;
        digit = d;
      }
    }
    if (!(best >= gpu.LEAST_SCORE)) return;
    const row = photograph * (1 + gpu.NUMBERS * most);
    const place = gpu.i32(gpu.atomicAdd(found, row, 1));
    if (place >= most) return;
    const at = row + 1 + gpu.NUMBERS * place;
    found[at] = gpu.f32(cell);
    found[at + gpu.DIGIT] = gpu.f32(digit);
    found[at + gpu.SCORE] = best;
    for (let side = 0; side < 4; side++)
      found[at + gpu.SIDES + side] = distances[(photograph * 4 + side) * gpu.CELLS + cell]!;
  },
  {
    uses: {
      DIGITS: LABELS.length,
      CELLS: CELLS * CELLS,
      LEAST_SCORE,
      NUMBERS,
      DIGIT,
      SCORE,
      SIDES,
    },
    block: BLOCK,
  },
);

/**
 * Candidates of each of the first `photographs` of a batch, as `decodeDigits` takes them, as an
 * operation.
 *
 * @param scores [batch, digits, 64, 64]
 * @param distances [batch, 4, 64, 64]
 */
export function candidatesOf(
  device: Device,
  scores: AnyTensor,
  distances: AnyTensor,
  photographs: number,
): DeviceOp<readonly Float32Array[]> {
  const read = (most: number): DeviceOp<Float32Array> =>
    device.zeros(f32, [photographs * (1 + NUMBERS * most)]).andThen((found) =>
      select(
        {
          found,
          scores: scores as Tensor<'f32', number[]>,
          distances: distances as Tensor<'f32', number[]>,
          most,
        },
        { grid: [(CELLS * CELLS) / BLOCK, photographs] },
      ).andThen(() => found.read()),
    );
  const parts = (found: Float32Array, most: number): Float32Array[] =>
    Array.from({ length: photographs }, (_, i) => {
      const row = i * (1 + NUMBERS * most);
      return found.subarray(row + 1, row + 1 + NUMBERS * found[row]!);
    });
  return read(USUAL).andThen((found) => {
    const most = Math.max(
      ...Array.from({ length: photographs }, (_, i) => found[i * (1 + NUMBERS * USUAL)]!),
    );
    // Noise: all of them are read, so that the best are the same whichever came first.
    return most <= USUAL
      ? value(parts(found, USUAL))
      : read(CELLS * CELLS).map((all) => parts(all, CELLS * CELLS));
  });
}
