/** The PTX of one operation. */
import type { Value } from '../ssa/function.js';
import { inRegister, writeInstruction } from './instruction-texts.js';
import {
  approximateRows,
  bitTypes,
  comparison,
  convertRows,
  fenceNames,
  memoryTypes,
  rows,
  scopeNames,
  signedRows,
} from './instructions.js';
import {
  assertion,
  clear,
  comparePredicates,
  floatExtreme,
  floatRemainder,
  gridBarrier,
  halfAtomic,
  print,
  quotients,
  reciprocal,
  selectPredicate,
} from './sequences.js';
import type { HalfStorage } from './sequences.js';
import type { Writer } from './writer.js';

type Write = (w: Writer, value: Value, args: readonly string[]) => void;

const isFloat = (value: Value): boolean => value.type === 'f32' || value.type === 'f64';

/** Writes the value first, then its operands. */
function plain(w: Writer, mnemonic: string, value: Value, args: readonly string[]): void {
  w.line(`${mnemonic} ${[w.operand(value), ...args].join(', ')}`);
}

const signed: Write = (w, value, args) =>
  plain(w, `${signedRows[value.op]!}.${value.as!}`, value, args);

function memoryPrefix(value: Value, verb: 'ld' | 'st'): string {
  const { space, cache, readonly } = value.memory!;
  if (cache === 'volatile') return `${verb}.volatile.${space}`;
  // The streaming and the read-only cache operator exclude each other.
  if (cache === 'streaming' && space === 'global') return `${verb}.global.cs`;
  return verb === 'ld' && readonly && space === 'global' ? 'ld.global.nc' : `${verb}.${space}`;
}

/** The registers of the values: constants are not allowed in braces. */
function inRegisters(w: Writer, values: readonly Value[]): string {
  return values.map((value) => inRegister(w, value)).join(', ');
}

/** Operations that need more than a row of `instructions.ts`. */
const written: Readonly<Record<string, Write>> = {
  wide: signed,
  mulhi: signed,
  shr: signed,
  div: (w, value, args) => {
    if (!isFloat(value)) signed(w, value, args);
    // The reciprocal is the same to the bit, in fewer instructions.
    else if (value.args[0]!.constant === 1) plain(w, `rcp.rn.${value.type}`, value, [args[1]!]);
    else plain(w, rows['div']![value.type]!, value, args);
  },
  rem: (w, value, args) => (isFloat(value) ? floatRemainder(w, value) : signed(w, value, args)),
  min: (w, value, args) => (isFloat(value) ? floatExtreme(w, value) : signed(w, value, args)),
  max: (w, value, args) => (isFloat(value) ? floatExtreme(w, value) : signed(w, value, args)),
  reciprocal: (w, value) => reciprocal(w, value),
  quotients: (w, value) => quotients(w, value),
  popc: (w, value, args) => plain(w, `popc.${bitTypes[value.args[0]!.type]}`, value, args),
  clz: (w, value, args) => plain(w, `clz.${bitTypes[value.args[0]!.type]}`, value, args),
  // PTX takes the sign first.
  copysign: (w, value, args) => plain(w, `copysign.${value.type}`, value, [args[1]!, args[0]!]),
  compare: (w, value, args) =>
    value.as === 'pred' ? comparePredicates(w, value) : plain(w, comparison(value), value, args),
  select: (w, value, args) =>
    value.type === 'pred'
      ? selectPredicate(w, value)
      : plain(w, `selp.${bitTypes[value.type]}`, value, [
          args[1]!,
          args[2]!,
          w.predicate(value.args[0]!),
        ]),
  extend: (w, value, args) =>
    plain(w, value.as === 'u32' ? 'cvt.u64.u32' : 'cvt.s64.s32', value, args),
  narrow: (w, value, args) => {
    if (value.detail[0] === 'u')
      plain(w, 'and.b32', value, [...args, value.detail === 'u8' ? '255' : '65535']);
    else plain(w, `cvt.s32.${value.detail}`, value, args);
  },
  convert: (w, value, args) => {
    if (value.detail.startsWith('e')) {
      w.features.add('f8');
      // The instruction converts two values; the first goes to the upper byte.
      plain(w, `cvt.rn.satfinite.${value.detail.slice(0, 4)}x2.f32`, value, [
        '0f00000000',
        ...args,
      ]);
    } else plain(w, convertRows[value.detail]!, value, args);
  },
  bits: (w, value, args) => {
    const from = value.args[0]!.type;
    if (value.type === 'b16') plain(w, 'cvt.u16.u32', value, args);
    else if (from === 'b16') plain(w, 'cvt.u32.u16', value, args);
    else
      plain(w, value.type === 'b32' || value.type === 'f32' ? 'mov.b32' : 'mov.b64', value, args);
  },
  approximate: (w, value, args) => {
    if (value.detail === 'tanh') w.features.add('tanh');
    plain(w, approximateRows[value.detail]!, value, args);
  },
  high: (w, value, args) =>
    w.line(`mov.b64 {${w.register('b32')}, ${w.operand(value)}}, ${args[0]!}`),
  pair: (w, value, args) => w.line(`mov.b64 ${w.operand(value)}, {${args.join(', ')}}`),
  special: (w, value) => w.line(`mov.u32 ${w.operand(value)}, %${value.detail}`),
  symbol: (w, value) =>
    w.line(`mov.u${value.type === 'b32' ? 32 : 64} ${w.operand(value)}, ${value.detail}`),
  clock: (w, value) =>
    w.line(
      `mov.u64 ${w.operand(value)}, ${value.detail === 'clock' ? '%clock64' : '%globaltimer'}`,
    ),
  load: (w, value) =>
    w.line(
      `${memoryPrefix(value, 'ld')}.${memoryTypes[value.memory!.form]} ${w.operand(value)}, ` +
        `${w.address(value.args[0]!, value.memory!.offset)}`,
    ),
  store: (w, value) =>
    w.line(
      `${memoryPrefix(value, 'st')}.${memoryTypes[value.memory!.form]} ` +
        `${w.address(value.args[0]!, value.memory!.offset)}, ${w.operand(value.args[1]!)}`,
    ),
  part: () => undefined,
  vectorLoad: (w, value) => {
    const parts = value.parts!;
    w.line(
      `${memoryPrefix(value, 'ld')}.v${parts.length}.${memoryTypes[value.memory!.form]} ` +
        `{${parts.map((part) => w.operand(part)).join(', ')}}, ` +
        `${w.address(value.args[0]!, value.memory!.offset)}`,
    );
  },
  vectorStore: (w, value, args) => {
    w.line(
      `${memoryPrefix(value, 'st')}.v${args.length - 1}.${memoryTypes[value.memory!.form]} ` +
        `${w.address(value.args[0]!, value.memory!.offset)}, {${args.slice(1).join(', ')}}`,
    );
  },
  atomic: (w, value, args) => {
    const [operator, scope, half] = value.detail.split(' ') as [
      string,
      string,
      HalfStorage | undefined,
    ];
    const { space, offset } = value.memory!;
    const scoped = scope === 'device' || space === 'shared' ? '' : `.${scopeNames[scope]!}`;
    const where = `${scoped}.${space}`;
    const address = w.address(value.args[0]!, offset);
    if (half === undefined)
      w.line(
        `atom${where}.${operator}.${value.as!} ` +
          `${[w.operand(value), address, ...args.slice(1)].join(', ')}`,
      );
    else if (operator === 'add' && (half === 'f16' || (half === 'bf16' && w.capability >= 90))) {
      if (half === 'bf16') w.features.add('bf16Atomic');
      w.line(`atom${where}.add.noftz.${half} ${[w.operand(value), address, args[1]!].join(', ')}`);
    } else halfAtomic(w, value, { operator, half, where, address });
  },
  shuffle: (w, value, args) => {
    const [mode, segment] = value.detail.split(' ') as [string, string];
    plain(w, `shfl.sync.${mode}.b32`, value, [args[0]!, args[1]!, segment, args[2]!]);
  },
  vote: (w, value, args) =>
    plain(w, `vote.sync.${value.detail}.${value.detail === 'ballot' ? 'b32' : 'pred'}`, value, [
      w.predicate(value.args[0]!),
      args[1]!,
    ]),
  match: (w, value, args) =>
    plain(w, `match.any.sync.${value.args[0]!.type === 'b64' ? 'b64' : 'b32'}`, value, args),
  barrierReduce: (w, value) =>
    plain(
      w,
      value.detail === 'count' ? 'bar.red.popc.u32' : `bar.red.${value.detail}.pred`,
      value,
      ['0', w.predicate(value.args[0]!)],
    ),
  barrier: (w, value, args) => {
    if (value.detail === 'grid') gridBarrier(w);
    else w.line(value.detail === 'warp' ? `bar.warp.sync ${args[0]!}` : 'bar.sync 0');
  },
  lowHalf: (w, value, args) =>
    w.line(`mov.b32 {${w.operand(value)}, ${w.register('b16')}}, ${args[0]!}`),
  highHalf: (w, value, args) =>
    w.line(`mov.b32 {${w.register('b16')}, ${w.operand(value)}}, ${args[0]!}`),
  halves: (w, value) => w.line(`mov.b32 ${w.operand(value)}, {${inRegisters(w, value.args)}}`),
  permute: (w, value, args) => plain(w, 'prmt.b32', value, [...args, value.detail]),
  matrixProduct: (w, value) => {
    const [shape, type] = value.detail.split(' ') as [string, string];
    const factors = value.args.length - 4;
    // a takes twice the registers of b, whose shape is half as large.
    const a = (factors / 3) * 2;
    const parts = [
      value.args.slice(0, a),
      value.args.slice(a, factors),
      value.args.slice(factors),
    ].map((each) => `{${inRegisters(w, each)}}`);
    w.line(
      `mma.sync.aligned.${shape}.row.col.f32.${type}.${type}.f32 ` +
        `${[`{${value.parts!.map((part) => w.operand(part)).join(', ')}}`, ...parts].join(', ')}`,
    );
  },
  loadMatrices: (w, value) => {
    const [count, transposed] = value.detail.split('.') as [string, string | undefined];
    w.line(
      `ldmatrix.sync.aligned.m8n8.${count}${transposed === undefined ? '' : '.trans'}.shared.b16 ` +
        `{${value.parts!.map((part) => w.operand(part)).join(', ')}}, ` +
        `${w.address(value.args[0]!, value.memory!.offset)}`,
    );
  },
  copyAsync: (w, value, args) => {
    const [bytes, offset] = value.detail.split(' ') as [string, string];
    const size = value.args[2]!;
    const given = size.constant === Number(bytes) ? '' : `, ${args[2]!}`;
    w.line(
      `cp.async.${bytes === '16' ? 'cg' : 'ca'}.shared.global ` +
        `${w.address(value.args[0]!, value.memory!.offset)}, ` +
        `${w.address(value.args[1]!, Number(offset))}, ${bytes}${given}`,
    );
  },
  copyCommit: (w) => w.line('cp.async.commit_group'),
  copyWait: (w, value) =>
    w.line(value.detail === '0' ? 'cp.async.wait_all' : `cp.async.wait_group ${value.detail}`),
  instruction: (w, value) => writeInstruction(w, value),
  fence: (w, value) => w.line(fenceNames[value.detail]!),
  print: (w, value) => print(w, value),
  assert: (w, value) => assertion(w, value),
  clear: (w, value) => clear(w, value),
  trap: (w) => w.line('trap'),
};

export function writeOperation(w: Writer, value: Value): void {
  const write = written[value.op];
  const args = value.args.map((arg) => w.operand(arg));
  if (write) {
    write(w, value, args);
    return;
  }
  const mnemonic = rows[value.op]?.[value.type];
  if (mnemonic === undefined)
    throw new RangeError(`no instruction for '${value.op}' of ${value.type}`);
  plain(
    w,
    mnemonic,
    value,
    value.type === 'pred' ? value.args.map((arg) => w.predicate(arg)) : args,
  );
}
