import { expect, test } from 'vitest';

import { HeldOperation } from './held-operation.js';
import { OperationNames } from './operation-names.js';

test(
  'an operation of many parts is called by its parts or its label, and by nothing where it has ' +
    'neither',
  () => {
    const names = new OperationNames();
    const operation = new HeldOperation(7);
    names.set(operation.root, operation);
    expect(names.get(7)).toBeUndefined();
    operation.add('buffer', '.fill');
    expect(names.get(7)).toBe('buffer.fill');
    operation.label = 'mine';
    expect(names.all()(7)).toBe("'mine' (buffer.fill)");
  },
);
