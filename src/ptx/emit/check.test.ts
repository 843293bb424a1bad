import { expect, test } from 'vitest';
import { compilePtx } from '../index.js';
import { sample } from '../run-grid.test-support.js';

const imports = (source: string, check?: boolean): string[] =>
  WebAssembly.Module.imports(
    new WebAssembly.Module(
      compilePtx(source, check === undefined ? {} : { check }).wasm as Uint8Array<ArrayBuffer>,
    ),
  ).map(({ name }) => name);

test('code without checks calls no checker, and has the usual layout', () => {
  const source = sample('k03_reduce');
  expect(imports(source).filter((name) => name.startsWith('check_'))).toEqual([]);
  expect(imports(source, true)).toContain('check_access');
  expect(compilePtx(source, { check: false })).toEqual(
    expect.objectContaining({ wasm: compilePtx(source).wasm }),
  );
  expect(compilePtx(source).kernels[0]).not.toHaveProperty('check');
});

test('lines of PTX are mapped to lines of the program', () => {
  const text =
    '.version 8.0\n.target sm_80\n.address_size 64\n.file 1 "a.cu"\n.visible .entry k() ' +
    '{\n.loc 1 7 3\nbar.sync 0;\n.loc 1 9 1\nret;\n}\n';
  const { lines } = compilePtx(text, { check: true }).check!;
  expect(lines.get(7)).toEqual({ file: 'a.cu', line: 7 });
  expect(lines.get(9)).toEqual({ file: 'a.cu', line: 9 });
});
