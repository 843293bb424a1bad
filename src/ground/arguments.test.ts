import { expect, test } from 'vitest';

import { checkDType, checkOptions, invalid } from './arguments.js';
import { f32 } from './dtype.js';

test('an option that is the beginning of one is taken for it', () => {
  expect(() => {
    checkOptions('options', { shared: 16 }, ['grid', 'sharedBytes']);
  }).toThrow("there is no option 'shared'. Did you mean 'sharedBytes'?");
  expect(() => {
    checkOptions('options', { gird: 1 }, ['grid', 'sharedBytes']);
  }).toThrow("Did you mean 'grid'?");
  expect(() => {
    checkOptions('options', { s: 1 }, ['grid', 'sharedBytes']);
  }).toThrow('Options are grid, sharedBytes.');
});

test('what has the name of what was expected is of another copy of the package', () => {
  class Tensor {
    size = 3;
  }
  expect(invalid('x', 'a Tensor', new Tensor(), 'Write device.tensor(…).').message).toBe(
    'x: expected a Tensor, got Tensor { size: 3 }. It comes from another copy of async-cuda ' +
      'in this program, whose classes are others. `npm ls async-cuda` shows the copies: let ' +
      'all packages use one, and import or require it in one way.',
  );
  expect(invalid('x', 'a DeviceBuffer or a Tensor', new Tensor()).message).toContain(
    'another copy',
  );
  for (const [expected, value] of [
    ['a Device', new Tensor()],
    ['a Tensor of f32', new Tensor()],
    ['a Tensor', 'Tensor'],
    ['a Tensor', {}],
  ] as const) {
    expect(invalid('x', expected, value, 'Fix it.').message).toMatch(/ Fix it\.$/);
  }
});

test('a dtype of another copy is not one of these', () => {
  expect(() => {
    checkDType({ ...f32 });
  }).toThrow(/got \{ name: 'f32'.* It comes from another copy of async-cuda/);
  for (const other of [{ name: 'f31' }, { name: 4 }, 'f32', undefined, null, 4]) {
    expect(() => {
      checkDType(other);
    }).toThrow('dtype: expected one of u8');
    expect(() => {
      checkDType(other);
    }).not.toThrow('another copy');
  }
});
