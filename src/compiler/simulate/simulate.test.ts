import { expect, test } from 'vitest';
import { TreeBuilder } from '../tree-builder.test-support.js';
import { writeJavaScript } from './javascript.js';
import { simulateKernel } from './simulate.js';

function saxpy() {
  const text = `({ y, x, a }, gpu) => {
  const i = gpu.globalId.x;
  if (i < y.length) {
    y[i] = a * x[i] + y[i];
  }
}`;
  const t = new TreeBuilder('saxpy', text);
  const y = t.tensor('y', 'f32');
  const x = t.tensor('x', 'f32', 'input');
  const a = t.scalar('a', 'f32');
  const i = t.local('i', 'i32', true);
  return t.tree(
    t.at('const i = gpu.globalId.x;', () =>
      t.set(
        i,
        t.at('gpu.globalId.x', () => t.globalX),
      ),
    ),
    t.at('if (i', () =>
      t.if(
        t.at('i < y.length', () => t.compare('lt', i, y.length)),
        [
          t.at('y[i] = a * x[i] + y[i];', () =>
            t.store(
              y,
              i,
              t.at('a * x[i] + y[i]', () =>
                t.fma(
                  a,
                  t.at('x[i]', () => t.load(x, i)),
                  t.at('y[i]', () => t.load(y, i), 1),
                ),
              ),
            ),
          ),
        ],
      ),
    ),
  );
}

test('a kernel without barriers is a plain function that reads like its source', () => {
  const { code, generator } = writeJavaScript(saxpy());
  expect(generator).toBe(false);
  expect(code.slice(0, code.indexOf('//#'))).toBe(`(function (runtime) {
  'use strict';
  const { fma32 } = runtime;
  return function saxpy(gpu, y, x, a) {
    const i = gpu.globalId.x;
    if (i < y.length) {
      y.store(i, fma32(a, x.load(i, 0), y.load(i, 1)), 2);
    }
  };
})
`);
});

test('threads write their elements, rounded once', () => {
  const y = new Float32Array(10).map((_, i) => i / 3);
  const x = new Float32Array(10).map((_, i) => 1 / (i + 1));
  const expected = y.map((value, i) => Math.fround(Math.fround(0.1) * x[i]! + value));
  simulateKernel(saxpy(), { grid: 2, block: 8, args: { y, x, a: 0.1 } });
  expect(y).toEqual(expected);
});
