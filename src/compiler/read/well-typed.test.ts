import { describe, expect, it } from 'vitest';
import { readKernel } from './read-kernel.js';
import { sourceOf } from './reading.test-support.js';
import { checkTree } from './well-typed.test-support.js';

describe('the check of trees', () => {
  const tree = readKernel(
    sourceOf('({ y }, gpu) => { const i = gpu.lane; for (;;) { y[i] = 1; break; } }'),
  );

  it('accepts the trees that reading gives', () => expect(() => checkTree(tree)).not.toThrow());
  it('rejects a local of another type', () =>
    expect(() =>
      checkTree({
        ...tree,
        locals: tree.locals.map((local) => ({ ...local, type: 'f32' as const })),
      }),
    ).toThrow('what is assigned to i is i32, not f32'));
  it('rejects a break without a target', () =>
    expect(() =>
      checkTree({
        ...tree,
        body: tree.body.flatMap((statement) =>
          statement.kind === 'loop' ? statement.body : [statement],
        ),
      }),
    ).toThrow('break out of nothing'));
  it('rejects a pointer that is not passed', () =>
    expect(() => checkTree({ ...tree, abi: [] })).toThrow('a pointer that is not passed'));
});
