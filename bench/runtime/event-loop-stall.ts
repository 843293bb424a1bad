/**
 * How long the event loop is blocked while the GPU is fully occupied: four streams of launches and
 * of copies from and to typed arrays, small and large. The median of the windows' longest gaps, see
 * `loop-gaps.ts`.
 */
import type { Benchmark } from '../benchmark.js';
import { SETTLE_MS } from '../garbage.js';
import { type CoreDevice, core } from '../library.js';
import { type Stop, longestGaps } from '../loop-gaps.js';
import { median } from '../statistics.js';
import { expectStamp, stamp } from '../stamp.js';
import { COUNTING, Tick, loadKernels } from './tick.js';

const WINDOW_MS = 1000;
const WINDOWS = 5;
const TICKS = 200;
const SAXPIES = 4;
const ELEMENTS = 16 << 20;
/** The size of each stream's work. */
const COPY_BYTES = [64 << 10, 1 << 20, 8 << 20, 32 << 20];

const { f32, i32, inout, input, u8 } = core;

/** The memory of one stream. */
async function openLoad(device: CoreDevice, copyBytes: number) {
  const stream = device.createStream();
  const module = await loadKernels(device);
  const saxpy = module.kernel('saxpy', [inout(f32), input(f32), f32, i32]);
  const tick = await Tick.open(device, stream);
  const x = device.alloc(f32, ELEMENTS, { stream });
  const y = device.alloc(f32, ELEMENTS, { stream });
  const copied = device.alloc(u8, copyBytes, { stream });
  const host = new Uint8Array(copyBytes).fill(1);
  const back = new Uint8Array(copyBytes).fill(1);
  x.fill(stream, 0);
  y.fill(stream, 0);
  await stream.finished();
  return {
    /**
     * Keeps the stream busy until `stop` is set; checks every copy, and at the end that every
     * launch has run.
     */
    async run(stop: Stop): Promise<number> {
      tick.reset();
      let turns = 0;
      for (; !stop.now; turns++) {
        tick.launches(TICKS, COUNTING);
        for (let i = 0; i < SAXPIES; i++)
          saxpy.launch(stream, { grid: ELEMENTS / 256, block: 256 }, y, x, 2, ELEMENTS);
        const mark = stamp(host);
        copied.write(stream, host);
        await copied.read(stream, { into: back });
        expectStamp(back, mark);
      }
      await tick.expect(turns * TICKS);
      return turns * (TICKS + SAXPIES);
    },
    async close(): Promise<void> {
      for (const buffer of [x, y, copied]) buffer.close();
      await tick.close();
      await module.close();
      stream.close();
    },
  };
}

export const eventLoopStall: Benchmark = {
  area: 'runtime',
  name: 'longest event-loop stall, GPU saturated',
  unit: 'ms',
  statistic: 'longest',
  bar: '<= 1',
  peers: [],
  rounds: 1,
  async start({ device, count }) {
    const loads = await Promise.all(COPY_BYTES.map((bytes) => openLoad(device, bytes)));
    return {
      async round() {
        let launches = 0;
        const gaps = await longestGaps(
          async (stop) => {
            launches = (await Promise.all(loads.map((load) => load.run(stop)))).reduce(
              (sum, each) => sum + each,
            );
          },
          { settleMs: SETTLE_MS, windowMs: count(WINDOW_MS), windows: WINDOWS },
        );
        return {
          samples: [median(gaps)],
          notes: { 'of all windows': Math.max(...gaps), launches },
        };
      },
      async close() {
        await Promise.all(loads.map((load) => load.close()));
      },
    };
  },
};
