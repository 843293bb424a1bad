/** Breakpoints in the user's file map to the generated code, and back. */
import { SourceMap } from 'node:module';
import { expect, test } from 'vitest';
import { TreeBuilder } from '../tree-builder.test-support.js';
import type { Span } from '../tree.js';
import { writeJavaScript } from './javascript.js';

const TEXT = `({ y, x }, gpu) => {
  const i = gpu.globalId.x;
  for (let k = 0; k < 4; k++) {
    y[i] = y[i] * x[k];
  }
}`;

function tree() {
  const t = new TreeBuilder('chain', TEXT);
  const y = t.tensor('y', 'f32');
  const x = t.tensor('x', 'f32', 'input');
  const [i, k] = [t.local('i', 'i32', true), t.local('k', 'i32')];
  return t.tree(
    t.at('const i = gpu.globalId.x', () =>
      t.set(
        i,
        t.at('gpu.globalId.x', () => t.globalX),
      ),
    ),
    t.at('let k = 0', () => t.set(k, t.i32(0))),
    t.at('for (let k', () =>
      t.loop(
        t.at('k < 4', () => t.compare('lt', k, t.i32(4))),
        [t.at('k++', () => t.set(k, t.add(k, t.i32(1))))],
        () => [
          t.at('y[i] = y[i] * x[k]', () =>
            t.store(
              y,
              i,
              t.at('y[i] * x[k]', () =>
                t.mul(
                  t.at('y[i]', () => t.load(y, i), 1),
                  t.at('x[k]', () => t.load(x, k)),
                ),
              ),
            ),
          ),
        ],
      ),
    ),
  );
}

function decode(code: string): {
  map: SourceMap;
  find: (snippet: string) => { file: string; line: number; column: number };
} {
  const data = /sourceMappingURL=data:application\/json;charset=utf-8;base64,([\w+/=]+)/.exec(
    code,
  )![1]!;
  const map = new SourceMap(
    JSON.parse(Buffer.from(data, 'base64').toString()) as ConstructorParameters<
      typeof SourceMap
    >[0],
  );
  const find = (snippet: string) => {
    const offset = code.indexOf(snippet);
    expect(offset).toBeGreaterThan(-1);
    const before = code.slice(0, offset).split('\n');
    const entry = map.findEntry(before.length - 1, before.at(-1)!.length) as {
      originalSource: string;
      originalLine: number;
      originalColumn: number;
    };
    return {
      file: entry.originalSource,
      line: entry.originalLine + 1,
      column: entry.originalColumn + 1,
    };
  };
  return { map, find };
}

/** The kernel is on line 10 of the file, indented by four. */
function locate({ start }: Span) {
  const before = TEXT.slice(0, start).split('\n');
  return {
    file: '/app/my kernels.ts',
    line: 9 + before.length,
    column: before.at(-1)!.length + 1 + (before.length === 1 ? 4 : 0),
  };
}

test("statements and expressions lead to the user's file", () => {
  const { find } = decode(writeJavaScript(tree(), { locate, sourceURL: 'simulate/chain.js' }).code);
  const file = 'file:///app/my%20kernels.ts';
  expect(find('const i')).toEqual({ file, line: 11, column: 3 });
  expect(find('gpu.globalId.x')).toEqual({ file, line: 11, column: 13 });
  expect(find('for (let k')).toEqual({ file, line: 12, column: 3 });
  expect(find('let k')).toEqual({ file, line: 12, column: 8 });
  expect(find('k < 4')).toEqual({ file, line: 12, column: 19 });
  expect(find('k = k + 1')).toEqual({ file, line: 12, column: 26 });
  expect(find('y.store')).toEqual({ file, line: 13, column: 5 });
  expect(find('x.load')).toEqual({ file, line: 13, column: 19 });
});

test("without a file the map carries the kernel's own text", () => {
  const { code } = writeJavaScript(tree());
  const { map, find } = decode(code);
  expect(map.payload.sourcesContent).toEqual([TEXT]);
  expect(find('y.store')).toEqual({ file: 'async-cuda:chain.js', line: 4, column: 5 });
  expect(code).toContain('//# sourceURL=async-cuda-simulation/chain.js\n');
});

test('the generated script has the given name', () => {
  expect(writeJavaScript(tree(), { sourceURL: 'simulate/chain.js' }).code).toContain(
    '\n//# sourceURL=simulate/chain.js\n',
  );
});
