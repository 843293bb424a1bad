/**
 * Tile kernels of rows of 4096 floats as the compiler makes them, and with other decisions: shared
 * by the programs that try one decision at a time.
 */
import type { Device } from '../../src/index.js';
import { f32, i32, input, output } from '../../src/index.js';
import { emitKernel } from '../../src/compiler/emit/emit.js';
import { readKernel } from '../../src/compiler/read/read-kernel.js';
import type { KernelSource, SignatureEntry } from '../../src/compiler/signature.js';
import { threadsFor } from '../../src/compiler/tiles/tile-form.js';
import type { TensorForm, TileForm } from '../../src/compiler/tiles/tile-form.js';
import { tileSource } from '../../src/compiler/tiles/tile-source.js';
import { race } from './variants.js';
import type { Variant } from './variants.js';

export const COLUMNS = 4096;
export const ROWS = Number(process.argv[2] ?? 8192);
const wanted = process.argv[3] ?? '';

export interface Choices {
  /** Columns of a thread. */
  readonly columns?: number;
  readonly rows?: number;
  /** Each thread reads the results of all warps, and combines them. */
  readonly readAll?: boolean;
  /** Every division is executed. */
  readonly divide?: boolean;
  /** Caches of rows, which are read before the barrier; of others. */
  readonly load?: string;
  readonly loadLater?: string;
  readonly store?: string;
  /** Blocks of a multiprocessor for which registers leave room. */
  readonly blocks?: number;
}

/** The parameters of a kernel, in order: tensors of all rows, of one, floats. */
export type Parameters = Readonly<Record<string, 'result' | 'rows' | 'row' | number>>;

export interface Compiled {
  readonly ptx: string;
  readonly grid: number;
  readonly threads: number;
  /**
   * Indices of its parameters: those of the tensors, and after them the numbers of rows and of
   * fours in a row.
   */
  readonly takes: readonly number[];
}

export function signatureOf(parameters: Parameters): Record<string, SignatureEntry> {
  return Object.fromEntries(
    Object.entries(parameters).map(([name, is]): [string, SignatureEntry] => [
      name,
      typeof is === 'number'
        ? { kind: 'scalar', storage: 'f32' }
        : {
            kind: 'tensor',
            element: { storage: 'f32' },
            access: is === 'result' ? 'output' : 'input',
            rank: 1,
          },
    ]),
  );
}

/** Instead of the butterfly over warps. */
function readingAll(text: string): string {
  return text.replace(
    /let sum\$ = (\S+)\[from\$ \+ gpu\$\.lane % (\d+)\];\n((?:sum\$ = .*\n)+)/g,
    (_, part: string, warps: string, joins: string) => {
      const extreme = joins.includes('Math.max');
      const next = `${part}[from$ + w$]`;
      return (
        `let sum$ = ${part}[from$];\nfor (let w$ = 1; w$ < ${warps}; w$++) sum$ = ` +
        `${extreme ? `Math.max(sum$, ${next})` : `sum$ + ${next}`};\n`
      );
    },
  );
}

/** Changes of the PTX text, which the compiler does not decide. */
export function edited(text: string, { load, loadLater = load, store, blocks }: Choices): string {
  const [start, ...rest] = text.split('bar.sync');
  let ptx = [start!, ...rest]
    .map((part, at) => {
      const by = at === 0 ? load : loadLater;
      return by === undefined ? part : part.replaceAll('ld.global.nc.v4', by);
    })
    .join('bar.sync');
  if (store !== undefined) ptx = ptx.replaceAll('st.global.v4', store);
  if (blocks !== undefined)
    ptx = ptx.replace(/\.reqntid (.*)/, `.reqntid $1\n.minnctapersm ${blocks}`);
  return ptx;
}

/** The tile kernel of this text. */
export function compiledTiles(
  name: string,
  parameters: Parameters,
  text: string,
  choices: Choices,
): Compiled {
  const { columns = 8, rows = 1, readAll = false, divide = false } = choices;
  const cut = threadsFor(
    { name: 'rows', tile: rows, extent: ROWS, widest: 1, cut: 'blocks' },
    { name: 'columns', tile: COLUMNS, extent: COLUMNS, widest: 4, cut: 'whole' },
  )!;
  const across = COLUMNS / columns;
  const tensors = Object.entries(parameters).flatMap(([each, is]): [string, TensorForm][] =>
    typeof is === 'number'
      ? []
      : [[each, { access: is === 'row' ? 'row' : 'dense', outer: [], row: 0, column: 1, rank: 2 }]],
  );
  const form: TileForm = {
    axes: cut.axes.map((axis) => ({ ...axis, exactRows: true, exactColumns: true })),
    across,
    down: 1,
    broadcast: true,
    tensors: Object.fromEntries(tensors),
  };
  const source: KernelSource = {
    name,
    signature: signatureOf(parameters),
    uses: {},
    indexType: 'i32',
    text,
  };
  const lowered = tileSource(source, form);
  const tree = readKernel(readAll ? { ...lowered, text: readingAll(lowered.text) } : lowered);
  const alignment = Object.fromEntries(tensors.map((_, at) => [at, 16]));
  const { ptx, abi } = emitKernel(tree, {
    capability: '9.0',
    block: [across, 1, 1],
    alignment,
    emulated: divide,
  });
  return {
    ptx: edited(ptx, choices),
    grid: ROWS / rows,
    threads: across,
    takes: abi.map(({ param }) => param),
  };
}

/**
 * The kernel of threads of this text, as for `kernel(…)`; it may also take `rows` and `units`,
 * fours in a row. A block has a row unless `grid` is given.
 */
export function compiledThreads(
  name: string,
  parameters: Parameters,
  text: string,
  threads: number,
  choices: Choices,
  grid = ROWS,
): Compiled {
  const signature: Record<string, SignatureEntry> = {
    ...signatureOf(parameters),
    rows: { kind: 'scalar', storage: 'i32' },
    units: { kind: 'scalar', storage: 'i32' },
  };
  const alignment = Object.fromEntries(Object.keys(parameters).map((_, at) => [at, 16]));
  const { ptx, abi } = emitKernel(
    readKernel({ name, signature, uses: {}, indexType: 'i32', text }),
    { capability: '9.0', block: [threads, 1, 1], alignment },
  );
  return {
    ptx: edited(ptx, choices),
    grid: Math.min(grid, ROWS),
    threads,
    takes: abi.map(({ param }) => param),
  };
}

type Core = Device['core'];

/**
 * The memory of tensors: those of all rows by index, so that some differ; those of one row the same
 * for all.
 */
export class Tensors {
  readonly host: Readonly<Record<string, Float32Array>>;
  private readonly core: Core;
  private readonly parameters: Parameters;
  private readonly places: Record<string, ReturnType<Core['alloc']>>[] = [];

  constructor(core: Core, parameters: Parameters) {
    this.core = core;
    this.parameters = parameters;
    this.host = Object.fromEntries(
      Object.entries(parameters)
        .filter(([, is]) => is === 'rows' || is === 'row')
        .map(([name, is], seed) => [
          name,
          new Float32Array(is === 'rows' ? ROWS * COLUMNS : COLUMNS).map(
            (_, at) => (Math.imul(at + 1, 2654435761 + 2 * seed) >>> 8) / 2 ** 24,
          ),
        ]),
    );
  }

  private async place(number: number): Promise<Record<string, ReturnType<Core['alloc']>>> {
    while (this.places.length <= number) {
      const at = this.places.length;
      const made: Record<string, ReturnType<Core['alloc']>> = at === 0
        ? {}
        : { "nothing of the kernel's": this.core.alloc(f32, at * 5 * 2 ** 18 + 64 * at) };
      for (const [name, is] of Object.entries(this.parameters)) {
        if (typeof is === 'number') continue;
        made[name] = this.core.alloc(f32, is === 'row' ? COLUMNS : ROWS * COLUMNS);
        if (is !== 'result') await made[name].write(this.core.stream, this.host[name]!);
      }
      this.places.push(made);
    }
    return this.places[number]!;
  }

  /**
   * `expected`: the row of a result. `size`: the magnitude of the operands, where results may be
   * smaller.
   */
  async variant(
    name: string,
    entry: string,
    { ptx, grid, threads, takes }: Compiled,
    number: number,
    expected: (row: number) => readonly number[],
    size = 0,
  ): Promise<Variant> {
    const {
      core: { stream },
    } = this;
    const place = await this.place(number);
    const module = await this.core.loadModule(ptx);
    const types = [
      ...Object.values(this.parameters).map((is) =>
        typeof is === 'number' ? f32 : is === 'result' ? output(f32) : input(f32),
      ),
      i32,
      i32,
    ];
    const given = [
      ...Object.entries(this.parameters).map(([each, is]) =>
        typeof is === 'number' ? is : place[each],
      ),
      ROWS,
      COLUMNS / 4,
    ];
    const kernel = module.kernel(
      entry,
      takes.map((at) => types[at]!),
    );
    const launch = (): PromiseLike<unknown> =>
      kernel.launch(stream, { grid, block: threads }, ...takes.map((at) => given[at] as never));
    const result = place[Object.entries(this.parameters).find(([, is]) => is === 'result')![0]]!;
    return {
      name,
      launch,
      async prove() {
        await result.fill(stream, -1);
        await launch();
        const found = await result.read(stream);
        for (const row of [0, 1, 2, 3, ROWS >> 1, ROWS - 2, ROWS - 1]) {
          expected(row).forEach((value, column) => {
            const own = found[row * COLUMNS + column] as number;
            if (!(Math.abs(own - value) <= 1e-5 * Math.max(size, Math.abs(value))))
              throw new Error(`[${row}][${column}] is ${own}, not ${value}`);
          });
        }
      },
    };
  }

  close(): void {
    for (const place of this.places) for (const each of Object.values(place)) each.close();
  }
}

/** The variants whose names contain the text, and the first, in turns with Triton's. */
export async function raceForms(
  device: Device,
  title: string,
  bytes: number,
  kernel: string,
  forms: readonly (readonly [name: string, make: (name: string) => Promise<Variant>])[],
): Promise<void> {
  const variants: Variant[] = [];
  for (const [at, [name, make]] of forms.entries()) {
    if (!name.includes(wanted) && at > 0) continue;
    try {
      variants.push(await make(name));
    } catch (error) {
      console.log(`  ${name}: ${(error as Error).message.slice(0, 300)}`);
    }
  }
  await race(device, `${title} of ${ROWS} rows of ${COLUMNS} f32`, bytes, variants, kernel);
}
