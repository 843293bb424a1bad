/** The PTX of the device's instructions (`../instructions.ts`). */
import { instructionRow } from '../instructions.js';
import type { InstructionName } from '../instructions.js';
import type { Value } from '../ssa/function.js';
import { shapeOf } from '../ssa/instructions.js';
import { bitTypes } from './instructions.js';
import type { Writer } from './writer.js';

interface SharedAddress {
  readonly register: string;
  readonly offset: number;
}

/** An instruction's operands as PTX. */
interface Operands {
  readonly detail: readonly (string | number)[];
  /** The register or constant of a value. */
  readonly value: (at: number) => string;
  /** The register of a value. */
  readonly register: (at: number) => string;
  /** An address in brackets. */
  readonly address: (at: number) => string;
  /** An address of shared memory as a register and a number that is added to it. */
  readonly sharedAddress: (at: number) => SharedAddress;
  /** A register that contains an address of shared memory. */
  readonly addressRegister: (at: number) => string;
  /** A list of registers in braces; those that are written hold their old values. */
  readonly registers: (at: number) => string;
  /** Whether all registers of the first operand begin as zeros, which are not moved to them. */
  readonly fromZero: boolean;
}

type Text = (w: Writer, operands: Operands) => void;

const line =
  (text: string): Text =>
  (w) => {
    w.line(text);
  };
/** An instruction that ends in its only detail. */
const counted =
  (text: string): Text =>
  (w, { detail }) => {
    w.line(`${text} ${detail[0]!}`);
  };

/**
 * A descriptor of shared memory: its address, the distance of panels and the swizzle. Descriptors
 * of one base register differ by a sum of 32 bits, which is all that ptxas computes for each.
 */
function descriptor(
  w: Writer,
  { register, offset }: SharedAddress,
  width: number,
  panel: number,
  bytes: number,
): string {
  const span = width * bytes;
  const swizzle = { 128: 1, 64: 2, 32: 3 }[span]!;
  // Eight lines are adjacent. Panels of a transposed factor follow each other.
  const lead = panel === 0 ? 1 : (panel * span) >> 4;
  const [units, low, described] = [w.register('b32'), w.register('b32'), w.register('b64')];
  w.line(`bfe.u32 ${units}, ${register}, 4, 14`);
  w.line(`or.b32 ${low}, ${units}, ${lead << 16}`);
  const [place, high] = [offset === 0 ? low : w.register('b32'), w.register('b32')];
  if (offset !== 0) w.line(`add.u32 ${place}, ${low}, ${offset >> 4}`);
  w.line(`mov.u32 ${high}, ${((8 * span) >> 4) | (swizzle << 30)}`);
  w.line(`mov.b64 ${described}, {${place}, ${high}}`);
  return described;
}

const BYTES: Readonly<Record<string, number>> = {
  f16: 2,
  bf16: 2,
  tf32: 4,
  s8: 1,
  u8: 1,
  e4m3: 1,
  e5m2: 1,
};
const SUMS: Readonly<Record<string, string>> = { f32: 'f32', f16: 'f16', i32: 's32' };

const product: Text = (w, { detail, registers, sharedAddress, fromZero }) => {
  const [shape, sum, type, panelA, widthB, panelB, typeA, widthA] = detail as [
    string,
    string,
    string,
    number,
    number,
    number,
    string,
    number | undefined,
  ];
  const inRegisters = typeA === 'registers';
  if (!inRegisters && sum === 'i32' && typeA !== type) w.features.add('mixedProducts');
  const bytes = BYTES[type]!;
  const left = inRegisters ? registers(1) : descriptor(w, sharedAddress(1), widthA!, panelA, bytes);
  const right = descriptor(w, sharedAddress(2), widthB, panelB, bytes);
  const adds = w.register('pred');
  w.line(`setp.${fromZero ? 'ne' : 'eq'}.u32 ${adds}, 0, 0`);
  const transposes = bytes === 2;
  const more = [
    ...(sum === 'i32' ? [] : ['1', '1']),
    ...(transposes && !inRegisters ? [panelA > 0 ? '1' : '0'] : []),
    ...(transposes ? [panelB > 0 ? '1' : '0'] : []),
  ];
  w.line(
    `wgmma.mma_async.sync.aligned.${shape}.${SUMS[sum]!}.${inRegisters ? type : typeA}.${type} ` +
      [registers(0), left, right, adds, ...more].join(', '),
  );
};

/** Arrives at an mbarrier; the state that it returns is not used. */
const arrive = (w: Writer, name: string, operands: readonly string[]): void => {
  w.line(`mbarrier.arrive${name}.shared::cta.b64 ${[w.register('b64'), ...operands].join(', ')}`);
};

/** The indices of a box, from operand `from` on; PTX lists the last axis first. */
const indices = ({ detail, register }: Operands, from: number): string => {
  const axes = Number(detail[0]);
  return `{${Array.from({ length: axes }, (_, at) => register(from + axes - 1 - at)).join(', ')}}`;
};

/** A copy of a box; one to several blocks of a cluster has them after its indices. */
const load =
  (toSeveral: boolean): Text =>
  (w, operands) => {
    const { detail, address, register } = operands;
    const box = indices(operands, 3);
    const blocks = toSeveral ? w.register('b16') : undefined;
    if (blocks !== undefined) w.line(`cvt.u16.u32 ${blocks}, ${register(3 + Number(detail[0]))}`);
    w.line(
      `cp.async.bulk.tensor.${detail[0]!}d.shared::cluster.global.mbarrier::complete_tx::bytes` +
        `${toSeveral ? '.multicast::cluster' : ''} ${address(0)}, [${register(1)}, ${box}], ` +
        `${address(2)}${blocks === undefined ? '' : `, ${blocks}`}`,
    );
  };

/** A copy of pixels; the offsets from them are those across and down. */
const loadPixels: Text = (w, operands) => {
  const { detail, address, register } = operands;
  const axes = Number(detail[0]);
  const offsets = [0, 1].map((at) => {
    const offset = w.register('b16');
    w.line(`cvt.u16.u32 ${offset}, ${register(3 + axes + at)}`);
    return offset;
  });
  w.line(
    `cp.async.bulk.tensor.${axes}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes ` +
      `${address(0)}, [${register(1)}, ${indices(operands, 3)}], ${address(2)}, ` +
      `{${offsets.join(', ')}}`,
  );
};

/** A copy of lines to a box, or an operation with its elements. */
const store =
  (name: string, operation: string): Text =>
  (w, operands) => {
    const box = indices(operands, 2);
    w.line(
      `${name}.async.bulk.tensor.${operands.detail[0]!}d.global.shared::cta${operation}` +
        `.bulk_group [${operands.register(0)}, ${box}], ${operands.address(1)}`,
    );
  };

export const TEXTS: Readonly<Record<InstructionName, Text>> = {
  'group.begin': line('wgmma.fence.sync.aligned'),
  'group.mma': product,
  'group.commit': line('wgmma.commit_group.sync.aligned'),
  'group.wait': counted('wgmma.wait_group.sync.aligned'),
  'group.moreRegisters': counted('setmaxnreg.inc.sync.aligned.u32'),
  'group.fewerRegisters': counted('setmaxnreg.dec.sync.aligned.u32'),
  'tensor.load': load(false),
  'tensor.multicast': load(true),
  'tensor.loadPixels': loadPixels,
  'tensor.store': store('cp', ''),
  'tensor.add': store('cp.reduce', '.add'),
  'tensor.commit': line('cp.async.bulk.commit_group'),
  'tensor.wait': counted('cp.async.bulk.wait_group'),
  'tensor.waitRead': counted('cp.async.bulk.wait_group.read'),
  'barrier.init': (w, { address, value }) => {
    w.line(`mbarrier.init.shared::cta.b64 ${address(0)}, ${value(1)}`);
  },
  'barrier.arrive': (w, { address }) => {
    arrive(w, '', [address(0)]);
  },
  'barrier.arriveIn': (w, { addressRegister, value }) => {
    const there = w.register('b32');
    w.line(`mapa.shared::cluster.u32 ${there}, ${addressRegister(0)}, ${value(1)}`);
    w.line(`mbarrier.arrive.shared::cluster.b64 _, [${there}]`);
  },
  'barrier.expect': (w, { address, value }) => {
    arrive(w, '.expect_tx', [address(0), value(1)]);
  },
  'barrier.wait': (w, { address, value }) => {
    const [again, done] = [w.label(), w.register('pred')];
    w.put(again);
    w.line(`mbarrier.try_wait.parity.shared::cta.b64 ${done}, ${address(0)}, ${value(1)}`);
    w.line(`@!${done} bra ${again}`);
  },
  'cluster.load': (w, { detail, registers, addressRegister, value }) => {
    const [count, storage] = detail;
    const there = w.register('b32');
    w.line(`mapa.shared::cluster.u32 ${there}, ${addressRegister(1)}, ${value(2)}`);
    const [vector, to] =
      count === 1 ? ['', registers(0).slice(1, -1)] : [`.v${count!}`, registers(0)];
    w.line(`ld.shared::cluster${vector}.${storage === 'f32' ? 'f32' : 'b32'} ${to}, [${there}]`);
  },
  'cluster.sync': (w) => {
    w.line('barrier.cluster.arrive.release.aligned');
    w.line('barrier.cluster.wait.acquire.aligned');
  },
  'block.syncThreads': (w, { value }) => {
    w.line(`bar.sync ${value(0)}, ${value(1)}`);
  },
  'warp.mmaWords': (w, { detail, registers }) => {
    const [shape, sum, typeA, typeB] = detail as [string, string, string, string];
    if (typeA.startsWith('e'))
      w.features.add(sum === 'f16' ? 'smallProductsInHalf' : 'smallProducts');
    const sums = SUMS[sum]!;
    w.line(
      `mma.sync.aligned.${shape}.row.col.${sums}.${typeA}.${typeB}.${sums} ` +
        [registers(0), registers(1), registers(2), registers(0)].join(', '),
    );
  },
  'warp.storeMatrices': (w, { detail, address, registers }) => {
    w.line(`stmatrix.sync.aligned.m8n8.x${detail[0]!}.shared.b16 ${address(0)}, ${registers(1)}`);
  },
  'grid.waitForDependencies': line('griddepcontrol.wait'),
  'grid.launchDependents': line('griddepcontrol.launch_dependents'),
  'fence.async': line('fence.proxy.async.shared::cta'),
  'fence.barriers': line('fence.mbarrier_init.release.cluster'),
};

export function writeInstruction(w: Writer, value: Value): void {
  const { name, detail, operands } = shapeOf(value);
  const { capability, specific } = instructionRow(name);
  if (capability >= 90) w.features.add('hopper');
  w.specific ||= specific;
  const fromZero = name === 'group.mma' && beginsAtZero(value);
  const firsts: number[] = [];
  const outputs: string[][] = [];
  let next = 0;
  let part = 0;
  for (const each of operands) {
    firsts.push(next);
    if (each.operand !== 'registers') {
      outputs.push([]);
      next++;
      continue;
    }
    const inputs = value.args.slice(next, next + each.count);
    next += each.count;
    if (!each.writes) {
      outputs.push(inputs.map((input) => inRegister(w, input)));
      continue;
    }
    const written = value.parts!.slice(part, part + each.count);
    part += each.count;
    // The instruction reads and writes the same registers.
    written.forEach((to, at) => {
      const [result, given] = [w.operand(to), w.operand(inputs[at]!)];
      if (result !== given && !fromZero) w.line(`mov.${bitTypes[to.type]} ${result}, ${given}`);
    });
    outputs.push(written.map((to) => w.operand(to)));
  }
  const base = (at: number): Value => value.args[firsts[at]!]!;
  const offset = (at: number): number => {
    const each = operands[at]!;
    return each.operand === 'address' ? each.offset : 0;
  };
  TEXTS[name](w, {
    detail,
    value: (at) => w.operand(base(at)),
    register: (at) => inRegister(w, base(at)),
    address: (at) => w.address(base(at), offset(at)),
    sharedAddress: (at) => {
      const from = base(at);
      if (from.op !== 'symbol') return { register: w.operand(from), offset: offset(at) };
      const register = w.register('b32');
      w.line(`mov.u32 ${register}, ${from.detail}`);
      return { register, offset: offset(at) };
    },
    addressRegister: (at) => {
      const from = base(at);
      if (from.op !== 'symbol' && offset(at) === 0) return w.operand(from);
      const register = w.register('b32');
      const place = from.op === 'symbol' ? from.detail : w.operand(from);
      if (from.op === 'symbol' && offset(at) === 0) w.line(`mov.u32 ${register}, ${place}`);
      else if (from.op === 'symbol') w.line(`mov.u32 ${register}, ${place}+${offset(at)}`);
      else w.line(`add.u32 ${register}, ${place}, ${offset(at)}`);
      return register;
    },
    registers: (at) => `{${outputs[at]!.join(', ')}}`,
    fromZero,
  });
}

/** Whether the sums of a product are zeros of constants: it then overwrites its registers. */
function beginsAtZero(value: Value): boolean {
  const [sums] = shapeOf(value).operands;
  return (
    sums?.operand === 'registers' &&
    value.args.slice(0, sums.count).every(({ constant }) => Object.is(constant, 0))
  );
}

/** The register of a value: PTX takes no constants in braces. */
export function inRegister(w: Writer, value: Value): string {
  if (value.constant === undefined && value.op !== 'undefined') return w.operand(value);
  const register = w.register(value.type);
  w.line(`mov.${bitTypes[value.type]} ${register}, ${w.operand(value)}`);
  return register;
}
