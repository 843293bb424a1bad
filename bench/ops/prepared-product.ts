/** What a product of matrices that is queued again and again costs the JS thread. */
import type { Benchmark } from '../benchmark.js';
import { library, root } from '../library.js';
import { queueing } from '../queueing.js';

const { Device, f16 } = root;
const { matmul } = library;

const SAMPLES = 50;
const SIZE = 64;
/** The CPU device takes a millisecond for a product. */
const CPU_BURSTS = 400;

export const preparedProduct: Benchmark = {
  area: 'ops',
  name: 'matrix product prepared, time of the JS thread',
  unit: 'µs',
  statistic: 'median',
  bar: '<= 1',
  peers: [],
  async start({ device: { kind }, count }) {
    const isGpu = kind === 'cuda';
    const device = isGpu
      ? await Device.open('cuda')
      : await Device.open('cpu', { computeCapability: '9.0' });
    const a = await device.ones(f16, [SIZE, SIZE]);
    const b = await device.ones(f16, [SIZE, SIZE]);
    const out = await device.zeros(f16, [SIZE, SIZE]);
    const product = matmul(a, b, { out });
    await product;
    const queued = {
      make: () => product,
      async check() {
        await out.fill(0);
        await product;
        const values = await out.read();
        if (!values.every((value) => value === SIZE))
          throw new Error('a product gave a wrong result');
      },
      close: () => device.close(),
    };
    const own = await queueing(device, count(SAMPLES), queued, isGpu ? undefined : CPU_BURSTS);
    return own;
  },
};
