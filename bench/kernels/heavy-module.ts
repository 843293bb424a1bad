/**
 * PTX that takes a driver long to compile: kernels of thousands of statements that depend on one
 * another. The number of kernels that take a second is derived from the load of a few; a module has
 * constants of its own, so that no cache has it.
 */
import { performance } from 'node:perf_hooks';

import type { CoreDevice } from '../library.js';

/** Small enough that the compiler's time grows with the number of kernels and no faster. */
const STATEMENTS = 1500;
const REGISTERS = 32;
const PROBE_KERNELS = 4;

let salt = Date.now() % 1e6;

function kernel(name: string): string {
  const body: string[] = [];
  for (let i = 0; i < STATEMENTS; i++) {
    const [a, b, c] = [i, i * 7 + 1, i * 13 + 5].map((r) => `%f${r % REGISTERS}`);
    const constant = `0f3f8${((salt * 31 + i * 977) & 0xfffff).toString(16).padStart(5, '0')}`;
    if (i % 9 === 4) body.push(`  sin.approx.f32 ${a}, ${b};`);
    else if (i % 9 === 8)
      body.push(`  ex2.approx.f32 ${a}, ${c};`, `  min.f32 ${a}, ${a}, ${constant};`);
    else body.push(`  fma.rn.f32 ${a}, ${b}, ${constant}, ${c};`);
  }
  const sum = Array.from({ length: REGISTERS - 1 }, (_, i) => `  add.f32 %f0, %f0, %f${i + 1};`);
  const terms = Array.from({ length: REGISTERS - 1 }, (_, i) => {
    const constant = `0f3${(i + 1).toString(16).padStart(7, '0')}`;
    return `  add.f32 %f${i + 1}, %f0, ${constant};`;
  });
  return `.visible .entry ${name}(.param .u64 y, .param .f32 a)
{
  .reg .f32 %f<${REGISTERS}>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [y];
  cvta.to.global.u64 %rd2, %rd1;
  ld.param.f32 %f0, [a];
${terms.join('\n')}
${body.join('\n')}
${sum.join('\n')}
  st.global.f32 [%rd2], %f0;
  ret;
}`;
}

/** A new module with the kernels `heavy0`, `heavy1`, … with parameters (float* y, float a). */
export function heavyModule(kernels: number): string {
  salt++;
  const texts = Array.from({ length: kernels }, (_, i) => kernel(`heavy${i}`));
  const text = `.version 7.5\n.target sm_75\n.address_size 64\n\n${texts.join('\n\n')}\n`;
  // In one piece, as from a file: V8 joins pieces when they are first read, four megabytes in a
  // millisecond or two.
  return Buffer.from(text, 'latin1').toString('latin1');
}

/** How many kernels make a module that takes about `ms` to load. */
export async function calibrate(device: CoreDevice, ms: number): Promise<number> {
  const start = performance.now();
  const module = await device.loadModule(heavyModule(PROBE_KERNELS));
  const took = performance.now() - start;
  await module.close();
  return Math.min(400, Math.max(PROBE_KERNELS, Math.round((PROBE_KERNELS * ms) / took)));
}
