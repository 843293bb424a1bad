/**
 * Random tile kernels: arithmetic on tiles of several shapes, reductions and stores have the same
 * results in simulation and on the device, bit for bit, and results do not depend on how the rows
 * are cut into tiles.
 *
 * A failure prints its text and the command that runs it again.
 */
import { CudaCompileError, Device, f32, i32, input, output, tileKernel } from 'async-cuda';
import type { Tensor } from 'async-cuda';
import { expect, test } from 'vitest';

import { Random } from '../../compiler/fuzz/random-kernel.test-support.js';
import { onDevice } from '../../core/test-device.js';
import { functionOf } from './compare-source.js';
import { failureOf, seedsOf } from '../../random-runs.js';

const SEEDS = seedsOf(15);
const RUNS = SEEDS.length;

/** Forms: all elements, one for each row, one for each column, and one for all. */
type Form = 'full' | 'column' | 'row' | 'single';
type Type = 'f32' | 'i32';

interface Variable {
  readonly name: string;
  readonly form: Form;
  readonly type: Type;
}

/** Forms that go with what has this one, without making it larger. */
const WITHIN: Readonly<Record<Form, readonly Form[]>> = {
  full: ['full', 'full', 'column', 'row', 'single'],
  column: ['column', 'single'],
  row: ['row', 'single'],
  single: ['single'],
};
const FUNCTIONS = ['exp', 'sin', 'sqrt', 'abs', 'tanh', 'floor', 'log1p', 'cbrt'];

class TileWriter {
  private readonly random: Random;
  private readonly variables: Variable[] = [];
  private readonly lines: string[] = [];

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  write(): string {
    const { random, lines } = this;
    lines.push('({ y, sums, x, w, c, z, s }, tile) => {');
    for (const [name, form, type] of [
      ['x', 'full', 'f32'],
      ['w', 'row', 'f32'],
      ['c', 'column', 'f32'],
      ['z', 'full', 'i32'],
    ] as const) {
      lines.push(`const v_${name} = ${name}.load();`);
      this.variables.push({ name: `v_${name}`, form, type });
    }
    this.variables.push({ name: 's', form: 'single', type: 'f32' });
    for (let k = 2 + random.below(6); k > 0; k--) {
      const form = random.pick<Form>(['full', 'full', 'column', 'row', 'single']);
      const type = random.pick<Type>(['f32', 'f32', 'i32']);
      const name = `v${k}`;
      lines.push(`const ${name} = ${this.expression(form, type, 3)};`);
      this.variables.push({ name, form, type });
    }
    lines.push(
      `y.store(${this.expression('full', 'f32', 3)});`,
      `sums.store(${this.expression('column', 'f32', 3)});`,
      '}',
    );
    return lines.join('\n');
  }

  private expression(form: Form, type: Type, depth: number): string {
    const { random } = this;
    const of = (other: Type = type): string =>
      this.expression(random.pick(WITHIN[form]), other, depth - 1);
    if (depth <= 0 || random.chance(15)) return this.leaf(form, type);
    const ways: (() => string)[] = [
      () => `(${of()} ${random.pick(['+', '-', '*'])} ${of()})`,
      () => `Math.${random.pick(['min', 'max'])}(${of()}, ${of()})`,
      () => `(${of()} ${random.pick(['<', '>=', '!=='])} ${of()} ? ${of()} : ${of()})`,
      () => `(- ${of()})`,
    ];
    // A row of a column's tiles is whole; a column is whole only where there is one tile.
    const reductions = ['sum', 'max', 'min', ...(type === 'f32' ? ['mean'] : [])];
    if (form === 'column')
      ways.push(
        ...[0, 1, 2].map(
          () => (): string =>
            `tile.${random.pick(reductions)}(${this.expression('full', type, depth - 1)}, 1)`,
        ),
      );
    if (type === 'f32')
      ways.push(
        () => `(${of()} / ${of()})`,
        () => `Math.${random.pick(FUNCTIONS)}(${of()})`,
        () => `(${of('i32')} * ${random.pick(['0.5', '1.25'])})`,
        () => `((${of()}) ** 2)`,
      );
    else
      ways.push(
        () => `(${of()} ${random.pick(['&', '|', '^'])} ${of()})`,
        () => `(${of()} % ${random.pick(['3', '7', '8', '100'])})`,
        () => `(${of()} ${random.pick(['<<', '>>'])} ${random.below(8)})`,
      );
    return random.pick(ways)();
  }

  private leaf(form: Form, type: Type): string {
    const { random } = this;
    const known = this.variables.filter(
      (each) => each.type === type && WITHIN[form].includes(each.form),
    );
    if (known.length > 0 && random.chance(80)) return random.pick(known).name;
    return type === 'f32'
      ? random.pick(['0.5', '2.75', '-1.5', '100.25'])
      : random.pick(['1', '3', '-7', '1000']);
  }
}

const tileText = (seed: number): string => new TileWriter(seed).write();

const signature = {
  y: output(f32),
  sums: output(f32),
  x: input(f32),
  w: input(f32),
  c: input(f32),
  z: input(i32),
  s: f32,
};

onDevice(
  'Random tile kernels',
  (host) => {
    test(
      `${RUNS} give the same in simulation and on the device, however rows are cut`,
      { tags: 'thorough', timeout: 60_000 + RUNS * 6_000 },
      async () => {
        const device = Device.of(host.device);
        for (const seed of SEEDS) {
          const random = new Random(seed ^ 0x711e);
          const text = tileText(seed);
          const [rows, columns] = [random.pick([1, 3, 17, 40]), random.pick([1, 5, 33, 100, 257])];
          const floats = (length: number): Float32Array<ArrayBuffer> =>
            Float32Array.from({ length }, () => (random.below(2000) - 1000) / 64);
          const data = {
            x: floats(rows * columns),
            w: floats(columns),
            c: floats(rows),
            z: Int32Array.from({ length: rows * columns }, () => random.below(100_000) - 50_000),
          };
          const s = Math.fround((random.below(2000) - 1000) / 64);
          const shapes = {
            x: [rows, columns],
            w: [1, columns],
            c: [rows, 1],
            z: [rows, columns],
            y: [rows, columns],
            sums: [rows, 1],
          } as const;
          const made: Tensor[] = [];
          try {
            const tensors = {
              x: await device.tensor(f32, data.x, shapes.x),
              w: await device.tensor(f32, data.w, shapes.w),
              c: await device.tensor(f32, data.c, shapes.c),
              z: await device.tensor(i32, data.z, shapes.z),
              y: await device.zeros(f32, shapes.y),
              sums: await device.zeros(f32, shapes.sums),
            };
            made.push(...(Object.values(tensors) as unknown as Tensor[]));
            const results: Record<string, Float32Array[]> = {};
            for (const height of [1, 2, 8]) {
              const kernel = tileKernel('fuzzed', signature, functionOf(text) as never, {
                tile: [height, null],
              });
              const here = { y: new Float32Array(rows * columns), sums: new Float32Array(rows) };
              const simulated = Object.fromEntries(
                Object.entries({ ...data, ...here }).map(([name, array]) => [
                  name,
                  { data: array, shape: [...shapes[name as 'x']] },
                ]),
              );
              await kernel.simulate({ ...simulated, s } as never);
              await kernel({ ...tensors, s } as never);
              for (const name of ['y', 'sums'] as const) {
                const there = await tensors[name].read();
                (results[name] ??= []).push(there);
                for (let at = 0; at < there.length; at++) {
                  if (!Object.is(here[name][at], there[at]))
                    throw new Error(
                      `${name}[${at}] of ${rows} × ${columns} ` +
                        `in tiles of ${height} rows is ${here[name][at]} in simulation, ` +
                        `${there[at]} on the device\n${text}`,
                    );
                  if (!Object.is(results[name][0]![at], there[at]))
                    throw new Error(
                      `${name}[${at}] of ${rows} × ${columns} ` +
                        `is ${results[name][0]![at]} in tiles of one row, ${there[at]} in ` +
                        `tiles of ${height}\n${text}`,
                    );
                }
              }
            }
          } catch (error) {
            // The value of random literals may be a zero, and dividing by it is an error of the
            // language.
            if (error instanceof CudaCompileError && error.message.includes('This divides by zero'))
              continue;
            throw new Error(failureOf(seed, `${String(error)}\n${text}`), { cause: error });
          } finally {
            for (const tensor of made) tensor.close();
          }
        }
      },
    );
  },
  ['worker'],
);

test('a seed gives the same text every time, with reductions in many', () => {
  expect(tileText(3)).toBe(tileText(3));
  expect(
    Array.from({ length: 20 }, (_, seed) => tileText(seed)).filter((text) =>
      /tile\.(sum|max|min|mean)\(/.test(text),
    ).length,
  ).toBeGreaterThan(8);
});
