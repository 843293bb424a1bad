/**
 * Mandelbrot in scalar WebAssembly, as written by hand: the reference for the CPU device's
 * divergent rows.
 */
import { performance } from 'node:perf_hooks';

import type { LocalPeer } from '../benchmark.js';
import { ModuleBuilder } from '../../src/ptx/wasm/module.js';
import { parseWat } from '../../src/ptx/wasm/wat.js';

const N = 1024;
const SAMPLES = 5;

/** One row of pixels; called per row, so that the engine's better code takes over early. */
const ROW = `
(func $row (param $o $y $w i32) (param $x0 $y0 $s f32) (param $most i32)
  (local $x $i i32) (local $cx $cy $zx $zy $t f32)
  (local.set $cy (f32.add $y0 (f32.mul (f32.convert_i32_s $y) $s)))
  (block $done (loop $pixels
    (br_if $done (i32.ge_s $x $w))
    (local.set $cx (f32.add $x0 (f32.mul (f32.convert_i32_s $x) $s)))
    (local.set $zx 0f) (local.set $zy 0f) (local.set $i 0)
    (block $left (loop $iterate
      (br_if $left (i32.ge_s $i $most))
      (br_if $left (i32.eqz (f32.lt (f32.add (f32.mul $zx $zx) (f32.mul $zy $zy)) 4f)))
      (local.set $t (f32.add (f32.sub (f32.mul $zx $zx) (f32.mul $zy $zy)) $cx))
      (local.set $zy (f32.add (f32.mul (f32.add $zx $zx) $zy) $cy))
      (local.set $zx $t)
      (local.set $i (i32.add $i 1))
      (br $iterate)))
    (i32.store (i32.add $o (i32.shl (i32.add (i32.mul $y $w) $x) 2)) $i)
    (local.set $x (i32.add $x 1))
    (br $pixels))))
`;

function build(): { memory: WebAssembly.Memory; row: (...args: number[]) => void } {
  const module = new ModuleBuilder();
  module.importMemory('env', 'memory');
  for (const fn of parseWat(ROW)) {
    const none = (name: string): never => {
      throw new Error(`no ${name} here`);
    };
    module.define(
      module.reserve(fn.name, fn.signature, fn.name),
      fn.locals,
      fn.assemble({
        functionIndex: none,
        globalIndex: none,
        signature: () => undefined,
        globalType: () => undefined,
      }),
    );
  }
  const memory = new WebAssembly.Memory({
    initial: 1 + (N * N * 4) / 65536,
    maximum: 65536,
    shared: true,
  });
  const { exports } = new WebAssembly.Instance(
    new WebAssembly.Module(module.finish() as Uint8Array<ArrayBuffer>),
    { env: { memory } },
  );
  return { memory, row: exports.row as (...args: number[]) => void };
}

export const scalarMandelbrot: LocalPeer = {
  name: 'scalar WebAssembly',
  bar: '<= 0.333',
  async start({ count }) {
    const { memory, row } = build();
    const draw = (): void => {
      for (let y = 0; y < N; y++) row(0, y, N, -2, -1.5, 3 / N, 256);
    };
    return {
      async round() {
        draw();
        if (new Int32Array(memory.buffer)[512 * N + 683] !== 256)
          throw new Error('mandelbrot gave a wrong result');
        const times: number[] = [];
        for (let k = 0; k < count(SAMPLES); k++) {
          const start = performance.now();
          draw();
          times.push(performance.now() - start);
        }
        return { samples: times };
      },
    };
  },
};
