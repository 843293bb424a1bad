/**
 * A chain of 100 small kernels, each of which needs what all blocks of the one before wrote: with
 * programmatic launches, which begin while the one before still runs, and without.
 */
import { performance } from 'node:perf_hooks';

import type { Benchmark, Contender, Setup } from '../benchmark.js';
import { core } from '../library.js';

const { u32 } = core;

const KERNELS = 100;
const BLOCKS = 64;
const THREADS = 256;
const COUNT = BLOCKS * THREADS;
const WARM_UP = 20;
const AWAITS = 300;

/** `y[i] = x[COUNT - 1 - i] + 1`. Without the launch's option both instructions have no effect. */
const PTX = `.version 7.8
.target sm_90
.address_size 64
.visible .entry turned(.param .u64 y, .param .u64 x) {
  .reg .b64 %y, %x, %at; .reg .b32 %i, %t, %b, %v;
  ld.param.u64 %y, [y]; ld.param.u64 %x, [x];
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x;
  mad.lo.u32 %i, %b, ${THREADS}, %t;
  mul.wide.u32 %at, %i, 4; add.u64 %y, %y, %at;
  sub.u32 %i, ${COUNT - 1}, %i;
  mul.wide.u32 %at, %i, 4; add.u64 %x, %x, %at;
  griddepcontrol.launch_dependents;
  griddepcontrol.wait;
  ld.global.u32 %v, [%x]; add.u32 %v, %v, 1; st.global.u32 [%y], %v; ret;
}`;

async function start({ device, count }: Setup, programmatic: boolean): Promise<Contender> {
  const module = await device.loadModule(PTX);
  const turned = module.kernel('turned', [core.output(u32), core.input(u32)]);
  const stream = device.createStream();
  const [a, b] = [device.alloc(u32, COUNT), device.alloc(u32, COUNT)];
  const options = { grid: BLOCKS, block: THREADS, programmatic };
  const graph = await stream.capture(() => {
    for (let k = 0; k < KERNELS; k++)
      turned.launch(stream, options, ...(k % 2 === 0 ? [b, a] : [a, b]));
  });
  return {
    async round() {
      a.fill(stream, 0);
      for (let k = 0; k < WARM_UP; k++) graph.launch(stream);
      const values = await a.read(stream);
      if (!values.every((value) => value === WARM_UP * KERNELS))
        throw new Error(`the chain made ${values[0]} of ${WARM_UP * KERNELS}`);
      for (let k = 0; k < AWAITS; k++) await graph.launch(stream);
      const times: number[] = [];
      for (let k = 0; k < count(101); k++) {
        const begin = performance.now();
        await graph.launch(stream);
        times.push((performance.now() - begin) * 1e3);
      }
      return { samples: times };
    },
    async close() {
      await graph.close();
      for (const buffer of [a, b]) buffer.close();
      stream.close();
      await module.close();
    },
  };
}

export const dependentLaunches: Benchmark = {
  area: 'runtime',
  name: 'chain of 100 dependent kernels, programmatic, replay until done',
  unit: 'µs',
  statistic: 'median',
  caller: 'main',
  peers: [
    {
      name: 'the same, each after the end of the one before',
      bar: '<= 1',
      start: (setup) => start(setup, false),
    },
  ],
  start: (setup) => start(setup, true),
};
