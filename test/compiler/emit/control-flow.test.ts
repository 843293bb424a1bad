/** Shapes of control flow, with and without optimisation. */
import { describe, expect, test } from 'vitest';
import { runKernel } from './run-kernel.js';
import {
  TreeBuilder,
  add,
  binary,
  compare,
  conditional,
  constant,
  logical,
  lt,
  mul,
  rem,
  sub,
} from '../../../src/compiler/emit/trees.test-support.js';
import type { Elements } from '../../../src/compiler/emit/trees.test-support.js';
import type { Expression } from '../../../src/compiler/tree.js';

/** Runs what `body` builds with 64 threads: it gives the value that thread i writes. */
function run(
  optimise: boolean,
  body: (t: TreeBuilder, i: Expression, n: Expression, out: Elements) => void,
  n = 10,
): number[] {
  const t = new TreeBuilder('flow');
  const size = t.scalar('n', 'i32');
  const out = t.tensor('out', 'i32');
  const i = t.variable(t.special('globalId.x'));
  body(t, i.value, size, out);
  const { outcome, of } = runKernel(t.tree, {
    values: { n, out: new Int32Array(64).fill(-1) },
    block: [64],
    target: { optimise },
  });
  expect(outcome.status).toBe(0);
  return [...of<Int32Array>('out')];
}

const threads = Array.from({ length: 64 }, (_, i) => i);

describe.each([{ optimise: true }, { optimise: false }])('$optimise', ({ optimise }) => {
  test.each([0, 1, 3, 4, 5, 8, 11, -5])('a counted loop of %d turns', (n) => {
    const got = run(
      optimise,
      (t, i, size, out) => {
        const sum = t.variable(0);
        t.for(0, size, 1, (k) => sum.set(add(mul(sum.value, 3), add(k, i))));
        out.put(i, sum.value);
      },
      n,
    );
    expect(got).toEqual(
      threads.map((i) => {
        let sum = 0;
        for (let k = 0; k < n; k++) sum = (Math.imul(sum, 3) + k + i) | 0;
        return sum;
      }),
    );
  });

  test('limits and steps at the end of i32 do not run past it', () => {
    const got = run(
      optimise,
      (t, i, size, out) => {
        const count = t.variable(0);
        t.for(sub(2147483647, add(i, 3)), 2147483647, 1, () => count.set(add(count.value, 1)));
        t.for(0, add(size, -2147483647), 1, () => count.set(add(count.value, 100)));
        t.for(-2147483640, add(size, -2147483648), 3, () => count.set(add(count.value, 1000)));
        out.put(i, count.value);
      },
      20,
    );
    expect(got).toEqual(threads.map((i) => i + 3 + 4000));
  });

  test('a step that is not known', () => {
    const got = run(
      optimise,
      (t, i, size, out) => {
        const sum = t.variable(0);
        t.for(i, 1000, size, (k) => sum.set(add(mul(sum.value, 5), k)));
        out.put(i, sum.value);
      },
      37,
    );
    expect(got).toEqual(
      threads.map((i) => {
        let sum = 0;
        for (let k = i; k < 1000; k += 37) sum = (Math.imul(sum, 5) + k) | 0;
        return sum;
      }),
    );
  });

  test('break and continue of an inner and an outer loop', () => {
    const got = run(optimise, (t, i, size, out) => {
      const sum = t.variable(0);
      const outer = t.variable(0);
      t.loop(
        lt(outer.value, size),
        (outerId) => {
          const inner = t.variable(0);
          t.loop(
            undefined,
            (innerId) => {
              t.if(compare('ge', inner.value, 6), () => t.break(innerId));
              t.if(compare('eq', rem(add(inner.value, i), 3), 0), () => t.continue(innerId));
              t.if(compare('gt', add(mul(outer.value, 7), inner.value), add(i, 20)), () =>
                t.break(outerId),
              );
              t.if(compare('eq', add(inner.value, outer.value), 9), () => t.continue(outerId));
              sum.set(add(sum.value, add(mul(outer.value, 10), inner.value)));
            },
            () => inner.set(add(inner.value, 1)),
          );
        },
        () => outer.set(add(outer.value, 1)),
      );
      out.put(i, sum.value);
    });
    expect(got).toEqual(
      threads.map((i) => {
        let sum = 0;
        outer: for (let a = 0; a < 10; a++) {
          for (let b = 0; ; b++) {
            if (b >= 6) break;
            if ((b + i) % 3 === 0) continue;
            if (a * 7 + b > i + 20) break outer;
            if (a + b === 9) continue outer;
            sum += a * 10 + b;
          }
        }
        return sum;
      }),
    );
  });

  test('early returns, and a loop that tests after its body', () => {
    const got = run(optimise, (t, i, _size, out) => {
      t.if(compare('eq', rem(i, 4), 3), () => t.return());
      const k = t.variable(0);
      t.loop(
        lt(k.value, i),
        () => {
          k.set(add(k.value, 5));
          t.if(compare('gt', k.value, 40), () => {
            out.put(i, -7);
            t.return();
          });
        },
        undefined,
        { testAfter: true },
      );
      out.put(i, k.value);
    });
    expect(got).toEqual(
      threads.map((i) => {
        if (i % 4 === 3) return -1;
        let k = 0;
        do {
          k += 5;
          if (k > 40) return -7;
        } while (k < i);
        return k;
      }),
    );
  });

  test('a jump out of a group, as of a switch or an inlined function', () => {
    const got = run(optimise, (t, i, _size, out) => {
      const result = t.variable(0);
      t.group((id) => {
        t.if(lt(i, 10), () => {
          result.set(100);
          t.break(id);
        });
        t.if(lt(i, 20), () => {
          result.set(200);
          t.if(compare('eq', i, 15), () => t.break(id));
          result.set(250);
        });
        result.set(add(result.value, i));
      });
      out.put(i, result.value);
    });
    expect(got).toEqual(
      threads.map((i) => (i < 10 ? 100 : i < 20 ? (i === 15 ? 200 : 250 + i) : i)),
    );
  });

  test('operands that a condition skips are not read', () => {
    const got = run(optimise, (t, i, size, out) => {
      const big = out.at(mul(i, 100_000_000));
      t.if(logical('and', lt(i, 0), compare('eq', big, 1)), () => out.put(i, 5));
      t.if(logical('or', compare('ge', i, 0), compare('eq', big, 1)), () =>
        out.put(i, conditional(lt(i, 1000), size, big)),
      );
    });
    expect(got).toEqual(threads.map(() => 10));
  });

  test('variables that are exchanged in a loop', () => {
    const got = run(
      optimise,
      (t, i, size, out) => {
        const [a, b, c] = [t.variable(i), t.variable(1), t.variable(2)];
        t.for(0, size, 1, () => {
          const old = t.variable(a.value);
          a.set(b.value);
          b.set(c.value);
          c.set(add(old.value, 1));
        });
        out.put(i, add(mul(a.value, 10000), add(mul(b.value, 100), c.value)));
      },
      11,
    );
    expect(got).toEqual(
      threads.map((i) => {
        let [a, b, c] = [i, 1, 2];
        for (let k = 0; k < 11; k++) [a, b, c] = [b, c, a + 1];
        return a * 10000 + b * 100 + c;
      }),
    );
  });

  test('local arrays, with constant indices and others', () => {
    const got = run(optimise, (t, i, _size, out) => {
      const few = t.array('local', 'i32', 8);
      const bytes = t.array('local', 'u8', 4);
      const many = t.array('local', 'i32', 100);
      t.for(0, 8, 1, (k) => few.put(k, mul(k, i)));
      t.for(0, 4, 1, (k) => bytes.put(k, add(mul(i, 50), k)));
      t.for(0, 100, 3, (k) => many.put(binary('and', add(k, i), 63), k));
      const sum = t.variable(0);
      t.for(0, 8, 1, (k) => sum.set(add(mul(sum.value, 3), few.at(k))));
      t.for(0, 4, 1, (k) => sum.set(add(sum.value, bytes.at(k))));
      out.put(i, add(sum.value, add(many.at(i), many.at(99))));
    });
    expect(got).toEqual(
      threads.map((i) => {
        const few = new Int32Array(8).map((_, k) => k * i);
        const bytes = new Uint8Array(4).map((_, k) => i * 50 + k);
        const many = new Int32Array(100);
        for (let k = 0; k < 100; k += 3) many[(k + i) & 63] = k;
        return (
          bytes.reduce(
            (sum, value) => sum + value,
            few.reduce((sum, value) => sum * 3 + value, 0),
          ) +
          many[i]! +
          many[99]!
        );
      }),
    );
  });

  test('an array that is declared in a loop is zero in each iteration', () => {
    const got = run(optimise, (t, i, size, out) => {
      const sum = t.variable(0);
      t.for(0, size, 1, (k) => {
        const array = t.array('local', 'i32', 2);
        sum.set(add(sum.value, array.at(0)));
        array.put(binary('and', k, 1), 5);
        sum.set(add(sum.value, array.at(1)));
      });
      out.put(i, sum.value);
    });
    expect(got).toEqual(threads.map(() => 25));
  });

  test('stored elements are read again, and so are those that may be overwritten', () => {
    const got = run(optimise, (t, i, _size, out) => {
      out.put(i, 3);
      const a = t.variable(out.at(i));
      out.put(sub(63, i), 9);
      const b = t.variable(out.at(i));
      out.put(i, add(mul(a.value, 10), b.value));
      t.if(lt(constant(5), i), () => out.put(i, out.at(i)));
    });
    // Whether the other thread has written yet is a race; a is not.
    expect(got.every((value) => value === 33 || value === 39 || value === 9 || value === 3)).toBe(
      true,
    );
  });
});
