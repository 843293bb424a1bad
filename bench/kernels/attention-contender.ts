/**
 * Attention as a contender. The package is an argument, so that a test runs it from the sources.
 */
import type { DeviceOp, Tensor } from 'async-cuda';

import type { Contender } from '../benchmark.js';
import type { Conditions, Package } from './product-contenders.js';

export interface AttentionCase {
  readonly batch: number;
  readonly heads: number;
  /** The number of queries, and of keys. */
  readonly length: number;
  readonly channels: number;
  readonly causal: boolean;
  /** Whether one added mask, of queries and keys, is for all heads. */
  readonly masked?: boolean;
}

export const SAMPLES = 3;
/** Runs between two events. */
export const RUNS = 5;

type Operand = Tensor<'bf16', number[]>;

/** The numbers of rows that are proved. */
const provedRows = (length: number): number[] =>
  [0, 1, 77, length >> 1, length - 130, length - 1].filter((row) => row >= 0 && row < length);

/**
 * @param mask is added to scores; none in place of undefined
 * @throws Error where a row of the last head of the result is wrong
 */
export async function proveAttention(
  operands: readonly [q: Operand, k: Operand, v: Operand, out: Operand],
  causal: boolean,
  mask?: Operand,
): Promise<void> {
  const [batch, heads, length, channels] = operands[0].shape as [number, number, number, number];
  const [queries, keys, values, results] = (await Promise.all(
    operands.map((each) => each.slice(batch - 1, heads - 1).read()),
  )) as [Float32Array, Float32Array, Float32Array, Float32Array];
  const added = (await mask?.read()) as Float32Array | undefined;
  for (const row of provedRows(length)) {
    const count = causal ? row + 1 : length;
    const scores = Array.from({ length: count }, (_, key) => {
      let dot = 0;
      for (let c = 0; c < channels; c++)
        dot += queries[row * channels + c]! * keys[key * channels + c]!;
      return dot / Math.sqrt(channels) + (added?.[row * length + key] ?? 0);
    });
    const most = scores.reduce((x, y) => Math.max(x, y));
    const shares = scores.map((score) => Math.exp(score - most));
    const weight = shares.reduce((x, y) => x + y);
    for (let c = 0; c < channels; c += 7) {
      const sum = shares.reduce((all, share, key) => all + share * values[key * channels + c]!, 0);
      const got = results[row * channels + c]!;
      if (!(Math.abs(got - sum / weight) <= 0.02))
        throw new Error(`element [${row}][${c}] is ${got}, not ${sum / weight}`);
    }
  }
}

export async function startAttention(
  { root, library }: Package,
  { device, count }: Conditions,
  given: AttentionCase,
): Promise<Contender> {
  const { batch, heads, length, channels, causal } = given;
  const [q, k, v] = (await Promise.all(
    [1, 2, 3].map((seed) =>
      library.randomNormal(device, root.bf16, [batch, heads, length, channels], { seed }),
    ),
  )) as unknown as [Operand, Operand, Operand];
  const mask = await maskOf({ root, library }, device, given);
  const op = library.attention(q, k, v, { causal, ...(mask && { mask }) });
  const prove = (first: Operand) => proveAttention([q, k, v, first], causal, mask);
  return timed(device, count, op, prove, [q, k, v, ...(mask ? [mask] : [])]);
}

/** The mask of a case, if it has one. */
async function maskOf(
  { root, library }: Package,
  device: Conditions['device'],
  { length, masked = false }: AttentionCase,
): Promise<Operand | undefined> {
  if (!masked) return undefined;
  const mask: unknown = await library.randomNormal(device, root.bf16, [length, length], {
    seed: 5,
  });
  return mask as Operand;
}

export interface PackedCase {
  /** The numbers of positions, of queries and of keys, of each sequence. */
  readonly lengths: readonly number[];
  readonly heads: number;
  readonly channels: number;
}

/** Causal attention of packed sequences. */
export async function startPackedAttention(
  { root, library }: Package,
  { device, count }: Conditions,
  { lengths, heads, channels }: PackedCase,
): Promise<Contender> {
  const ends = lengths.map((_, at) => lengths.slice(0, at + 1).reduce((a, b) => a + b));
  const [total, first] = [ends.at(-1)!, ends.at(-2) ?? 0];
  const [q, k, v] = (await Promise.all(
    [1, 2, 3].map((seed) =>
      library.randomNormal(device, root.bf16, [total, heads, channels], { seed }),
    ),
  )) as unknown as [Operand, Operand, Operand];
  const offsets = await root.Device.of(device).tensor(root.i32, [0, ...ends]);
  const op = library.packedAttention(q, k, v, offsets, offsets, { causal: true });
  // The last sequence.
  const own = (each: Operand): Operand =>
    each.slice([first, total]).transpose(0, 1).unsqueeze(0) as never;
  const prove = (out: Operand) => proveAttention([own(q), own(k), own(v), own(out)], true);
  return timed(device, count, op, prove, [q, k, v, offsets]);
}

/**
 * The operation, each of whose results is closed once it is queued: the next takes its memory.
 *
 * @param out the existing tensor that the operation writes and gives, if any: it stays open
 */
export function timed<T extends { close(): void }>(
  device: Conditions['device'],
  count: Conditions['count'],
  op: DeviceOp<T>,
  prove: (first: T) => Promise<void>,
  operands: readonly { close(): void }[],
  out?: Tensor,
): Contender {
  const { stream } = device;
  const once: DeviceOp<unknown> =
    out === undefined
      ? op.map((result) => {
          result.close();
        })
      : op;
  const runs = device.kind === 'cpu' ? 1 : RUNS;
  return {
    async round() {
      await out?.fill(0).runOn(stream);
      const first = await op.runOn(stream);
      await prove(first);
      if (out === undefined) first.close();
      const samples: number[] = [];
      for (let turn = 0; turn < count(SAMPLES); turn++) {
        const [begin, end] = [device.createEvent(), device.createEvent()];
        stream.record(begin);
        const queued = Array.from({ length: runs }, () => once.runOn(stream));
        stream.record(end);
        samples.push(((await begin.elapsed(end)) * 1000) / runs);
        await Promise.all(queued);
        begin.close();
        end.close();
      }
      return { samples };
    },
    close() {
      for (const each of operands) each.close();
      out?.buffer.close();
      return Promise.resolve();
    },
  };
}

interface Gradients {
  readonly dq: Operand;
  readonly dk: Operand;
  readonly dv: Operand;
}

/**
 * Proves rows of the gradients of the last head.
 *
 * @throws Error where a row is wrong
 */
export async function proveGradients(
  operands: readonly [q: Operand, k: Operand, v: Operand, out: Operand, dOut: Operand],
  logSums: Tensor<'f32', number[]>,
  { dq, dk, dv }: Gradients,
  causal: boolean,
  mask?: Operand,
): Promise<void> {
  const [batch, heads, length, channels] = dq.shape as [number, number, number, number];
  const [q, k, v, out, dOut, logs, ...found] = (await Promise.all(
    [...operands, logSums, dq, dk, dv].map((each) => each.slice(batch - 1, heads - 1).read()),
  )) as [Float32Array, Float32Array, Float32Array, Float32Array, Float32Array, Float32Array];
  const dot = (a: Float32Array, i: number, b: Float32Array, j: number): number => {
    let sum = 0;
    for (let c = 0; c < channels; c++) sum += a[i * channels + c]! * b[j * channels + c]!;
    return sum;
  };
  const scale = 1 / Math.sqrt(channels);
  const added = (await mask?.read()) as Float32Array | undefined;
  // The share of a key, and the gradient of its score.
  const termOf = (query: number, key: number): [share: number, slope: number] => {
    if (causal && key > query) return [0, 0];
    const score = dot(q, query, k, key) * scale + (added?.[query * length + key] ?? 0);
    const share = Math.exp(score - logs[query]!);
    return [share, share * scale * (dot(dOut, query, v, key) - dot(dOut, query, out, query))];
  };
  const check = (which: number, row: number, sums: Float64Array): void => {
    for (let c = 0; c < channels; c++) {
      const got = (found as unknown as Float32Array[])[which]![row * channels + c]!;
      if (!(Math.abs(got - sums[c]!) <= 0.02 + 0.02 * Math.abs(sums[c]!)))
        throw new Error(`element [${row}][${c}] of gradient ${which} is ${got}, not ${sums[c]!}`);
    }
  };
  for (const row of provedRows(length)) {
    const sums = [0, 1, 2].map(() => new Float64Array(channels)) as [
      Float64Array,
      Float64Array,
      Float64Array,
    ];
    for (let other = 0; other < length; other++) {
      const [, slopeOfQuery] = termOf(row, other);
      const [share, slope] = termOf(other, row);
      for (let c = 0; c < channels; c++) {
        sums[0][c]! += slopeOfQuery * k[other * channels + c]!;
        sums[1][c]! += slope * q[other * channels + c]!;
        sums[2][c]! += share * dOut[other * channels + c]!;
      }
    }
    sums.forEach((each, which) => {
      check(which, row, each);
    });
  }
}

/** The backward pass alone, of the results of one forward pass. */
export async function startAttentionBackward(
  { root, library }: Package,
  { device, count }: Conditions,
  given: AttentionCase,
): Promise<Contender> {
  const { batch, heads, length, channels, causal } = given;
  const [q, k, v, dOut] = (await Promise.all(
    [1, 2, 3, 4].map((seed) =>
      library.randomNormal(device, root.bf16, [batch, heads, length, channels], { seed }),
    ),
  )) as unknown as [Operand, Operand, Operand, Operand];
  const mask = await maskOf({ root, library }, device, given);
  const options = { causal, ...(mask && { mask }) };
  const forward = await library.attentionForward(q, k, v, options);
  const out = forward.out as Operand;
  const { logSums } = forward;
  return timed(
    device,
    count,
    library.attentionBackward(dOut, q, k, v, out, logSums, options),
    (first) => proveGradients([q, k, v, out, dOut], logSums, first as Gradients, causal, mask),
    [q, k, v, dOut, forward, ...(mask ? [mask] : [])],
  );
}
