import { expect, test } from 'vitest';

import { OperationNames } from './operation-names.js';

test('the last 4096 names are known, the latest of each operation, and none before', () => {
  const names = new OperationNames();
  expect(names.get(1)).toBeUndefined();
  for (let root = 1; root <= 5000; root++) names.set(root, { toString: () => `operation ${root}` });
  names.set(4000, 'renamed', '.write');
  const all = names.all();
  for (const get of [(root: number) => names.get(root), all]) {
    expect([905, 906, 4000, 5000, 5001].map(get)).toEqual([undefined, 'operation 906', 'renamed.write', 'operation 5000', undefined]);
  }
});
