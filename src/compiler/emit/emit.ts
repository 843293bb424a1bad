/** PTX from a typed kernel. */
import { abiStorage, loadTypes, parameterTypes } from '../storage-types.js';
import { optimise, tidy } from '../optimise/optimise.js';
import { buildFunction } from '../ssa/build.js';

import type { Block, SsaFunction, Value } from '../ssa/function.js';
import type { AbiParam, KernelTree, Span } from '../tree.js';
import { inOrder, placeCopies } from './copies.js';
import type { Copy } from './copies.js';
import { bitTypes } from './instructions.js';
import { writeOperation } from './operations.js';
import { sharedRegisters } from './shared-registers.js';
import { capabilityNumber, isaFor } from './targets.js';
import { Writer } from './writer.js';

/** The target that a kernel is compiled for. */
export interface EmitTarget {
  /** Compute capability, such as '7.5' or '9.0'. */
  readonly capability: string;
  /** Version of the PTX ISA; by default the lowest that has all instructions of the kernel. */
  readonly isa?: string;
  /** Every access of a parameter is checked against its bounds, and fails as an assertion. */
  readonly checks?: boolean;
  /** Line information: the file's name, and the line and column (from 1) of a span. */
  readonly lines?: {
    readonly file: string;
    readonly lineOf: (span: Span) => { readonly line: number; readonly column: number } | undefined;
  };
  /** Threads of a block, where every launch has the same: `.reqntid`, and constants in the code. */
  readonly block?: readonly [number, number, number];
  /** Threads of a block at most: `.maxntid`. */
  readonly maxThreads?: number;
  /** The alignment of tensors' addresses in bytes, by the number of the parameter. */
  readonly alignment?: Readonly<Record<number, number>>;
  /**
   * Whether the target is the CPU device, which divides in one step and computes a multiply-add in
   * several.
   */
  readonly emulated?: boolean;
  /**
   * Whether to optimise. False keeps the operations of the source, for tests that compare. Default
   * true.
   */
  readonly optimise?: boolean;
}

export interface EmittedKernel {
  readonly ptx: string;
  /** Name of the entry. */
  readonly entry: string;
  /** Bytes of static shared memory. */
  readonly sharedBytes: number;
  /** The parameters in their order: the tree's, and after them those that `checks` added. */
  readonly abi: readonly AbiParam[];
  /** `.version` */
  readonly isa: string;
  /** `.target` */
  readonly target: string;
}

/** A valid name in PTX; names of runtime functions are taken. */
export function entryName(name: string): string {
  const legal = name.replace(/[^A-Za-z0-9_$]/g, '_');
  return legal === '' || /^[0-9]/.test(legal) || /^(vprintf|__assertfail|_)$/.test(legal)
    ? `kernel_${legal}`
    : legal;
}

/** Bytes of a tensor map, and its alignment as a parameter. */
const MAP_BYTES = 128;
const MAP_ALIGNMENT = 64;

function utf8(text: string): number[] {
  const bytes: number[] = [];
  for (const character of text) {
    const code = character.codePointAt(0)!;
    if (code < 0x80) bytes.push(code);
    else if (code < 0x800) bytes.push(0xc0 | (code >> 6), 0x80 | (code & 63));
    else if (code < 0x10000)
      bytes.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
    else
      bytes.push(
        0xf0 | (code >> 18),
        0x80 | ((code >> 12) & 63),
        0x80 | ((code >> 6) & 63),
        0x80 | (code & 63),
      );
  }
  bytes.push(0);
  return bytes;
}

function writeParameter(
  w: Writer,
  tree: KernelTree,
  f: SsaFunction,
  entry: string,
  value: Value,
): void {
  const index = Number(value.detail);
  if (f.abi[index]!.kind === 'map') {
    w.line(`mov.b64 ${w.operand(value)}, ${entry}_param_${index}`);
    w.line(`cvta.param.u64 ${w.operand(value)}, ${w.operand(value)}`);
    return;
  }
  w.line(
    `ld.param.${loadTypes[abiStorage(f.abi[index]!, tree.indexType)]} ${w.operand(value)}, ` +
      `[${entry}_param_${index}]`,
  );
}

function writeCopies(w: Writer, f: SsaFunction, copies: readonly Copy[]): void {
  const spare = (like: Value): Value => f.value('spare', like.type, []);
  for (const { to, from } of inOrder(copies, spare))
    w.line(`mov.${bitTypes[to.type]} ${w.operand(to)}, ${w.operand(from)}`);
}

/** Writes line information where it changes. */
class Lines {
  private last = '';
  private readonly target: EmitTarget;

  constructor(target: EmitTarget) {
    this.target = target;
  }

  before(w: Writer, value: Value): void {
    const { lines } = this.target;
    if (lines === undefined || value.span === undefined) return;
    const at = lines.lineOf(value.span);
    if (at === undefined) return;
    const text = `\t.loc 1 ${at.line} ${at.column}`;
    if (text !== this.last) w.raw(text);
    this.last = text;
  }

  reset(): void {
    this.last = '';
  }
}

function writeBody(
  w: Writer,
  tree: KernelTree,
  f: SsaFunction,
  entry: string,
  target: EmitTarget,
): void {
  w.roots = sharedRegisters(f);
  const copies = placeCopies(f, w.roots);
  const labels = new Map<Block, string>();
  const labelOf = (block: Block): string => {
    let label = labels.get(block);
    if (label === undefined) labels.set(block, (label = w.label()));
    return label;
  };
  const lines = new Lines(target);
  f.blocks.forEach((block, at) => {
    const next = f.blocks[at + 1];
    const previous = f.blocks[at - 1];
    const reachedByJump = block.before.some(
      (from) =>
        from !== previous || (from.end?.kind === 'branch' && from.end.then === from.end.otherwise),
    );
    if (reachedByJump || labels.has(block)) {
      w.put(labelOf(block));
      lines.reset();
    }
    if (
      block.keepRolled &&
      block.before.some((from) => from === block || f.blocks.indexOf(from) >= at)
    )
      w.line('.pragma "nounroll"');
    for (const value of block.values) {
      if (value.op === 'parameter') {
        writeParameter(w, tree, f, entry, value);
        continue;
      }
      // Addresses name the array themselves.
      if (value.op === 'symbol' && onlyAddressed(f, value)) continue;
      lines.before(w, value);
      writeOperation(w, value);
    }
    const own = copies.get(block);
    if (own) writeCopies(w, f, own);
    const { end } = block;
    switch (end?.kind) {
      case 'jump':
        if (end.to !== next) w.line(`bra ${labelOf(end.to)}`);
        break;
      case 'branch': {
        const test = w.predicate(end.test);
        if (end.then === next) w.line(`@!${test} bra ${labelOf(end.otherwise)}`);
        else {
          w.line(`@${test} bra ${labelOf(end.then)}`);
          if (end.otherwise !== next) w.line(`bra ${labelOf(end.otherwise)}`);
        }
        break;
      }
      default:
        w.line('ret');
    }
  });
}

const addressed = new WeakMap<SsaFunction, Set<Value>>();

/** Whether the array's address is used in no computation. */
function onlyAddressed(f: SsaFunction, symbol: Value): boolean {
  let computed = addressed.get(f);
  if (computed === undefined) {
    computed = new Set();
    for (const block of f.blocks) {
      for (const value of block.values) {
        value.args.forEach((arg, at) => {
          if (
            arg.op === 'symbol' &&
            !(at === 0 && value.memory !== undefined && value.op !== 'clear')
          )
            computed!.add(arg);
        });
      }
      for (const phi of block.phis)
        for (const arg of phi.args) if (arg.op === 'symbol') computed.add(arg);
    }
    addressed.set(f, computed);
  }
  return !computed.has(symbol);
}

/**
 * Compiles a kernel.
 *
 * @throws KernelSourceError where the target has no instruction for one of its operations
 */
export function emitKernel(tree: KernelTree, target: EmitTarget): EmittedKernel {
  const capability = capabilityNumber(target.capability);
  const { lines } = target;
  const f = buildFunction(tree, {
    capability,
    block: target.block,
    checks: target.checks === true,
    optimise: target.optimise !== false,
    where: (span) => ({ file: lines?.file ?? tree.name, line: lines?.lineOf(span)?.line ?? 0 }),
  });
  if (target.optimise === false) tidy(f);
  else optimise(f, target.alignment ?? {}, target.emulated !== true);

  const entry = entryName(tree.name);
  const w = new Writer(capability);
  writeBody(w, tree, f, entry, target);

  const isa = target.isa ?? isaFor(capability, w.features);
  const targetName = `sm_${capability}${w.specific ? 'a' : ''}`;
  const head = [`.version ${isa}`, `.target ${targetName}`, '.address_size 64', ''];
  if (lines) head.push(`.file 1 "${lines.file.replaceAll('\\', '/').replaceAll('"', '_')}"`);
  if (w.uses.has('print'))
    head.push(
      '.extern .func (.param .b32 func_retval0) vprintf(.param .b64 vprintf_param_0, .param ' +
        '.b64 vprintf_param_1);',
    );
  if (w.uses.has('assert')) {
    const params = [64, 64, 32, 64, 64].map(
      (bits, at) => `.param .b${bits} __assertfail_param_${at}`,
    );
    head.push(`.extern .func __assertfail(${params.join(', ')});`);
  }
  for (const { symbol, text } of f.texts) {
    const bytes = utf8(text);
    head.push(`.global .align 1 .b8 ${symbol}[${bytes.length}] = {${bytes.join(', ')}};`);
  }
  // Arrays are allocated in the order of their declarations: whole lines first leave no gaps.
  const arrays = [...f.arrays.values()].sort((a, b) => b.align - a.align);
  const dynamic = arrays.find((array) => array.space === 'dynamic');
  if (dynamic) head.push(`.extern .shared .align ${dynamic.align} .b8 ${dynamic.symbol}[];`);

  const params = f.abi.map((param, at) =>
    param.kind === 'map'
      ? `\t.param .align ${MAP_ALIGNMENT} .b8 ${entry}_param_${at}[${MAP_BYTES}]`
      : `\t.param .${parameterTypes[abiStorage(param, tree.indexType)]} ${entry}_param_${at}`,
  );
  const text = [...head, `.visible .entry ${entry}(`, params.join(',\n'), ')'];
  if (target.block) text.push(`.reqntid ${target.block.join(', ')}`);
  else if (target.maxThreads !== undefined) text.push(`.maxntid ${target.maxThreads}, 1, 1`);
  text.push('{');
  let sharedBytes = 0;
  for (const { symbol, space, bytes, align } of arrays) {
    if (space === 'dynamic') continue;
    text.push(`\t.${space} .align ${align} .b8 \t${symbol}[${bytes}];`);
    if (space === 'shared') sharedBytes = Math.ceil(sharedBytes / align) * align + bytes;
  }
  if (dynamic) sharedBytes = Math.ceil(sharedBytes / dynamic.align) * dynamic.align;
  if (w.uses.has('print'))
    text.push(`\t.local .align 8 .b8 \t__print[${Math.max(Math.ceil(f.printBytes / 8) * 8, 8)}];`);
  text.push(...w.declarations(), ...w.lines, '}', '');
  return { ptx: text.join('\n'), entry, sharedBytes, abi: f.abi, isa, target: targetName };
}
