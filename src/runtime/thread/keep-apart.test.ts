/**
 * Members of a crew are kept off their owner's processor: which threads, when, and by which calls.
 */
import { readFileSync, readdirSync } from 'node:fs';

import { expect, test } from 'vitest';

import { CrewDevice } from './crew-device.test-support.js';
import { keepApart } from './keep-apart.js';

/** A machine with the processors of the set, which records the threads' sets. */
function machineOf(allowed: readonly number[]) {
  const set = new Uint8Array(128);
  for (const processor of allowed) set[processor >> 3]! |= 1 << (processor & 7);
  const machine = {
    processor: allowed[0]!,
    told: [] as { thread: number; processors: number[] }[],
  };
  const apart = keepApart(undefined, () => ({
    allowed: set,
    processor: () => machine.processor,
    set(thread, bytes, processors) {
      expect(bytes).toBe(processors.byteLength);
      machine.told.push({
        thread,
        processors: Array.from({ length: 8 * bytes }, (_, at) => at).filter(
          (at) => (processors[at >> 3]! & (1 << (at & 7))) !== 0,
        ),
      });
      return 0;
    },
  }));
  let crew = new Int32Array(0);
  return {
    /** Returns the calls where the owner is on the processor. */
    wake(processor: number, threads: readonly number[]) {
      machine.processor = processor;
      machine.told = [];
      if (crew.join() !== threads.join()) crew = Int32Array.from(threads);
      apart(crew);
      return machine.told;
    },
  };
}

test('each thread has all processors but the one of the caller, set once', () => {
  const { wake } = machineOf([0, 1, 9]);
  expect(wake(1, [70, 71])).toEqual([
    { thread: 70, processors: [0, 9] },
    { thread: 71, processors: [0, 9] },
  ]);
  expect(wake(1, [70, 71])).toEqual([]);
  expect(wake(9, [70, 71])).toEqual([
    { thread: 70, processors: [0, 1] },
    { thread: 71, processors: [0, 1] },
  ]);
});

test('a thread that has come since is set, one whose number is unknown is not', () => {
  const { wake } = machineOf([0, 1]);
  expect(wake(0, [70])).toEqual([{ thread: 70, processors: [1] }]);
  expect(wake(0, [70, 0, 72])).toEqual([
    { thread: 70, processors: [1] },
    { thread: 72, processors: [1] },
  ]);
});

test('with one processor no thread is kept off it', () => {
  const { wake } = machineOf([3]);
  expect(wake(3, [70])).toEqual([]);
});

test('a system without such calls is left as it is', () => {
  let asked = 0;
  const apart = keepApart(undefined, () => {
    asked++;
    return undefined;
  });
  for (let i = 0; i < 3; i++) apart(Int32Array.of(70));
  expect(asked).toBe(1);
});

const FILL = `.version 8.0
.target sm_80
.address_size 64
.visible .entry fill(.param .u64 out) {
  .reg .b64 %rd<4>; .reg .b32 %r<4>;
  ld.param.u64 %rd1, [out]; cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r1, %r1, %r2, %r1;
  mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r1;
  ret;
}`;

const allowedOf = (thread: string): string =>
  /^Cpus_allowed:\s*(\S+)$/m.exec(readFileSync(`/proc/self/task/${thread}/status`, 'utf8'))![1]!;
const processors =
  process.platform === 'linux' ? allowedOf(String(process.pid)).replaceAll(',', '') : '0';
const several =
  [...processors].reduce(
    (sum, digit) => sum + parseInt(digit, 16).toString(2).replaceAll('0', '').length,
    0,
  ) > 1;

test.skipIf(!several)(
  'Linux gets the sets of a crew that wants all processors, and of no other threads',
  () => {
    const others = new Set(readdirSync('/proc/self/task'));
    const device = new CrewDevice(2, { processors: 2, keepApart: keepApart(undefined) });
    try {
      const out = device.array(Int32Array, 4096);
      device.launch(device.kernel(FILL, 'fill'), [64], [32], [[out.at]]);
      device.finish();
      const own = readdirSync('/proc/self/task').filter(
        (thread) => !others.has(thread) && allowedOf(thread).replaceAll(',', '') !== processors,
      );
      expect(own).toHaveLength(1);
      for (const thread of others) expect(allowedOf(thread).replaceAll(',', '')).toBe(processors);
    } finally {
      device.close();
    }
  },
);
