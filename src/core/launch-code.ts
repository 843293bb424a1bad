/**
 * Launches as generated straight-line code. {@link Kernel.launch} goes through its parameters in
 * loops, which costs as much as all the rest. A kernel that is launched often gets a function in
 * which the loops are unrolled. It handles the usual case: buffers of this device, numbers, a
 * one-dimensional grid of blocks, the same options as before. It passes every other case to
 * `Kernel.launch`, before it has done anything, so all errors are thrown there.
 */
import { OP } from '../runtime/commands.js';
import { DeviceBuffer } from './buffer.js';
import type { Kernel } from './kernel.js';
import { Pending } from './pending.js';
import type { ParamLayout } from './signature.js';
import { Stream } from './stream.js';
import type { KernelArgument } from './launch-arguments.js';
import type { LaunchOptions } from './launch-shape.js';

export type Launch = (
  this: Kernel,
  stream: Stream,
  options: LaunchOptions,
  ...args: readonly KernelArgument[]
) => Pending;
export type PutArgument = (
  memory: Int32Array,
  params: number,
  param: ParamLayout,
  arg: KernelArgument,
  kernel: string,
) => void;

/** The code by which an argument of the usual type is written. */
export type Way = 'pointer' | 'f32' | 'i32' | 'other';

export interface LaunchPlan {
  readonly params: readonly {
    way: Way;
    layout: ParamLayout;
    /** Bits of a reference of OP.launchLine, without the handle. */ lineBits: number;
  }[];
  readonly paramWords: number;
  readonly paramBytes: number;
  /** Whether some word of the parameters is written in parts, or not at all. */
  readonly clears: boolean;
}

type Factory = (parts: readonly unknown[]) => Launch;

const factories = new Map<string, Factory | undefined>();

/**
 * The plan's launch; undefined where Node runs with --disallow-code-generation-from-strings.
 * Kernels with equal parameters share one function.
 */
export function launchCode(
  plan: LaunchPlan,
  general: Launch,
  putArgument: PutArgument,
): Launch | undefined {
  const text = textOf(plan);
  if (!factories.has(text)) factories.set(text, compiled(text));
  return factories.get(text)?.([general, Stream, DeviceBuffer, Pending, putArgument]);
}

function compiled(text: string): Factory | undefined {
  try {
    // The text consists of numbers and the names of dtypes only.
    // eslint-disable-next-line @typescript-eslint/no-implied-eval
    return new Function('parts', text) as Factory;
  } catch (error) {
    if (error instanceof EvalError) return undefined;
    throw error;
  }
}

function textOf({ params, paramWords, paramBytes, clears }: LaunchPlan): string {
  const pointers = params.flatMap(({ way, layout, lineBits }, i) =>
    way === 'pointer' ? [{ i, layout, lineBits }] : [],
  );
  const unusual = [
    `arguments.length !== ${params.length + 2}`,
    '!(stream instanceof Stream)',
    'stream.runtime !== this.runtime',
    'stream.isUnusable',
    'this.module.isClosed',
    'options === undefined',
    'options !== this.checkedOptions',
    '!shape.line',
    ...['grid', 'block'].map((name) => `options.${name} !== shape.${name}`),
    'options.sharedBytes !== shape.givenBytes',
    ...['cooperative', 'cluster', 'programmatic', 'priority'].map(
      (name) => `options.${name} !== undefined`,
    ),
    ...params.flatMap(({ way, layout: { exact } }, i) => {
      if (way === 'pointer') return [`!(a${i} instanceof DeviceBuffer)`];
      if (way === 'f32') return [`typeof a${i} !== 'number'`];
      return way === 'i32'
        ? [
            `typeof a${i} !== 'number'`,
            `a${i} !== (a${i} | 0)`,
            ...(exact === 'u32' ? [`a${i} < 0`] : []),
          ]
        : [];
    }),
  ];
  const unusualMemory = pointers.flatMap(({ i, layout: { dtype } }) => [
    `m${i}.disposed`,
    `m${i}.device.runtime !== this.runtime`,
    ...(dtype === undefined ? [] : [`a${i}.dtype.name !== ${JSON.stringify(dtype)}`]),
    // The offset that makes a texture object of its memory's address may be negative.
    `!(o${i} >= 0 && o${i} < 4294967296)`,
    // Kernel.launch checks whether the two overlap.
    ...pointers.filter((other) => other.i < i).map((other) => `m${i} === m${other.i}`),
  ]);
  const begin = 5 + pointers.length;
  const words = params.flatMap(({ way, layout: { offset } }, i) => {
    const at = `body + ${begin + (offset >> 2)}`;
    if (way === 'pointer') return [`memory[${at}] = o${i};`, `memory[${at} + 1] = 0;`];
    if (way === 'other')
      return [`putArgument(memory, body + ${begin}, this.layout[${i}], a${i}, this.name);`];
    return [`${way === 'f32' ? 'floats' : 'memory'}[${at}] = a${i};`];
  });
  const leave = 'return general.apply(this, arguments);';
  const references = pointers.map(
    ({ i, lineBits }, k) => `memory[body + ${5 + k}] = m${i}.handle | ${lineBits};`,
  );
  const zeros = Array.from({ length: paramWords }, (_, k) => `memory[body + ${begin + k}] = 0;`);
  const uses = pointers.map(({ i, layout: { access } }) => `stream.used(m${i}, ${access}, mark);`);
  return `
const [general, Stream, DeviceBuffer, Pending, putArgument] = parts;
return function launch(${['stream', 'options', ...params.map((_, i) => `a${i}`)].join(', ')}) {
  'use strict';
  const { shape } = this;
  if (${unusual.join(' || ')}) ${leave}
  ${pointers.map(({ i }) => `const m${i} = a${i}.memory, o${i} = a${i}.byteOffset;`).join(' ')}
  ${unusualMemory.length === 0 ? '' : `if (${unusualMemory.join(' || ')}) ${leave}`}
  ${pointers.map(({ i, layout: { access } }) => `stream.order(m${i}, ${access});`).join('\n  ')}
  const root = stream.nextRoot();
  const { ring } = stream.runtime;
  const body = stream.begin(${OP.launchLine}, ${9 + pointers.length + paramWords}, root);
  const { memory, floats } = ring;
  memory[body] = this.handle;
  memory[body + 1] = shape.gridX;
  memory[body + 2] = shape.blockX;
  memory[body + 3] = shape.sharedBytes;
  memory[body + 4] = ${pointers.length | (paramBytes << 16)};
  ${references.join('\n  ')}
  ${clears ? zeros.join(' ') : ''}
  ${words.join('\n  ')}
  const mark = stream.commitLaunch();
  ${uses.join('\n  ')}
  this.module.used(stream, mark);
  return new Pending(stream, root, mark);
};`;
}
