/**
 * A product of two square matrices of f16, summed in f32, compared with cuBLAS: both timed by the
 * device's events.
 */
import type { Benchmark, Contender, Setup } from '../benchmark.js';
import { core, library, root } from '../library.js';

const { f16 } = core;
const SIDE = 4096;
const SAMPLES = 5;
/** Products between two events. */
const PRODUCTS = 20;

/**
 * Bits of an element, as in bench/peers/c/cublas.c: of either sign, with magnitudes from 1/2 to 1.
 * A GPU's clock depends on the values that it multiplies.
 */
export function elementBits(index: number): number {
  const bits = Math.imul(index + 1, 2654435761);
  return 0x3800 | ((bits >>> 16) & 0x3ff) | ((bits >>> 31) << 15);
}

const valueOf = (bits: number): number => (bits >> 15 ? -1 : 1) * (0.5 + (bits & 0x3ff) / 2048);

/** The two factors on the device. */
export async function factors(device: Setup['device'], side: number) {
  const made = [0, 7].map((from) => {
    const tensor = root.Tensor.of(device.alloc(f16, side * side), [side, side]);
    return {
      tensor,
      bits: Uint16Array.from({ length: side * side }, (_, i) => elementBits(i + from)),
    };
  });
  for (const { tensor, bits } of made) await tensor.writeBits(bits);
  return made.map(({ tensor }) => tensor) as [
    (typeof made)[0]['tensor'],
    (typeof made)[0]['tensor'],
  ];
}

/** @throws Error where an element of the product is wrong */
export function prove(product: ArrayLike<number>, side: number): void {
  for (const [row, column] of [
    [1, 3],
    [side - 1, side - 1],
    [side >> 1, 7],
  ] as const) {
    let sum = 0;
    for (let k = 0; k < side; k++)
      sum += valueOf(elementBits(row * side + k)) * valueOf(elementBits(k * side + column + 7));
    const got = product[row * side + column]!;
    if (!(Math.abs(got - sum) <= 0.1 + 1e-3 * Math.abs(sum)))
      throw new Error(`element [${row}][${column}] of the product is ${got}, not ${sum}`);
  }
}

async function start({ device, count }: Setup): Promise<Contender> {
  const [a, b] = await factors(device, SIDE);
  const op = library.matmul(a, b);
  const { stream } = device;
  return {
    async round() {
      const first = await op.runOn(stream);
      prove(await first.read(), SIDE);
      first.close();
      const samples: number[] = [];
      for (let k = 0; k < count(SAMPLES); k++) {
        const [begin, end] = [device.createEvent(), device.createEvent()];
        stream.record(begin);
        const made = Array.from({ length: PRODUCTS }, () => op.runOn(stream));
        stream.record(end);
        samples.push(((await begin.elapsed(end)) * 1000) / PRODUCTS);
        for (const each of made) (await each).close();
        begin.close();
        end.close();
      }
      return { samples };
    },
    close() {
      a.buffer.close();
      b.buffer.close();
      return Promise.resolve();
    },
  };
}

export const matrixProduct: Benchmark = {
  area: 'kernels',
  name: 'matrix product 4096³ of f16, in TypeScript',
  unit: 'µs',
  statistic: 'median',
  rounds: 5,
  // At least half of its speed.
  peers: [
    {
      name: 'cuBLAS',
      bar: '<= 2',
      program: 'cuBLAS',
      request: ({ count }) => `product ${count(SAMPLES)} ${SIDE} ${SIDE} ${SIDE} ${PRODUCTS}`,
    },
  ],
  start,
};
