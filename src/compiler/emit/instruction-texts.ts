/** The PTX of the device's instructions (`../instructions.ts`). */
import { instructionRow } from '../instructions.js';
import type { InstructionName } from '../instructions.js';
import type { Value } from '../ssa/function.js';
import { shapeOf } from '../ssa/instructions.js';
import { bitTypes } from './instructions.js';
import type { Writer } from './writer.js';

/** An instruction's operands as PTX. */
interface Operands {
  readonly detail: readonly (string | number)[];
  /** The register or constant of a value. */
  readonly value: (at: number) => string;
  /** The register of a value. */
  readonly register: (at: number) => string;
  /** An address in brackets. */
  readonly address: (at: number) => string;
  /** A register that contains an address of shared memory. */
  readonly addressRegister: (at: number) => string;
  /** A list of registers in braces; those that are written hold their old values. */
  readonly registers: (at: number) => string;
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

/** The bits of a descriptor of shared memory but for the address. */
function descriptorBits(width: number, panel: number, bytes: number): bigint {
  const span = width * bytes;
  const swizzle = { 128: 1n, 64: 2n, 32: 3n }[span]!;
  // Eight lines are adjacent. Panels of a transposed factor follow each other.
  const lead = panel === 0 ? 1n : BigInt((panel * span) >> 4);
  return (lead << 16n) | (BigInt((8 * span) >> 4) << 32n) | (swizzle << 62n);
}

function descriptor(
  w: Writer,
  address: string,
  width: number,
  panel: number,
  bytes: number,
): string {
  const [units, wide, described] = [w.register('b32'), w.register('b64'), w.register('b64')];
  const bits = descriptorBits(width, panel, bytes);
  w.line(`bfe.u32 ${units}, ${address}, 4, 14`);
  w.line(`cvt.u64.u32 ${wide}, ${units}`);
  w.line(`or.b64 ${described}, ${wide}, ${BigInt.asIntN(64, bits)}`);
  return described;
}

const BYTES: Readonly<Record<string, number>> = { f16: 2, bf16: 2, tf32: 4, s8: 1, u8: 1 };
const SUMS: Readonly<Record<string, string>> = { f32: 'f32', f16: 'f16', i32: 's32' };

const product: Text = (w, { detail, registers, addressRegister }) => {
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
  const bytes = BYTES[type]!;
  const left = inRegisters
    ? registers(1)
    : descriptor(w, addressRegister(1), widthA!, panelA, bytes);
  const right = descriptor(w, addressRegister(2), widthB, panelB, bytes);
  const always = w.register('pred');
  w.line(`setp.eq.u32 ${always}, 0, 0`);
  const transposes = bytes === 2;
  const more = [
    ...(sum === 'i32' ? [] : ['1', '1']),
    ...(transposes && !inRegisters ? [panelA > 0 ? '1' : '0'] : []),
    ...(transposes ? [panelB > 0 ? '1' : '0'] : []),
  ];
  w.line(
    `wgmma.mma_async.sync.aligned.${shape}.${SUMS[sum]!}.${inRegisters ? type : typeA}.${type} ` +
      [registers(0), left, right, always, ...more].join(', '),
  );
};

/** Arrives at an mbarrier; the state that it returns is not used. */
const arrive = (w: Writer, name: string, operands: readonly string[]): void => {
  w.line(`mbarrier.arrive${name}.shared::cta.b64 ${[w.register('b64'), ...operands].join(', ')}`);
};

/** The indices of a box, which are the last operands; PTX lists the last axis first. */
const indices = ({ detail, register }: Operands, from: number): string => {
  const axes = Number(detail[0]);
  return `{${Array.from({ length: axes }, (_, at) => register(from + axes - 1 - at)).join(', ')}}`;
};

export const TEXTS: Readonly<Record<InstructionName, Text>> = {
  'group.begin': line('wgmma.fence.sync.aligned'),
  'group.mma': product,
  'group.commit': line('wgmma.commit_group.sync.aligned'),
  'group.wait': counted('wgmma.wait_group.sync.aligned'),
  'group.moreRegisters': counted('setmaxnreg.inc.sync.aligned.u32'),
  'group.fewerRegisters': counted('setmaxnreg.dec.sync.aligned.u32'),
  'tensor.load': (w, operands) => {
    const box = indices(operands, 3);
    w.line(
      `cp.async.bulk.tensor.${operands.detail[0]!}d.shared::cluster.global` +
        `.mbarrier::complete_tx::bytes ${operands.address(0)}, ` +
        `[${operands.register(1)}, ${box}], ${operands.address(2)}`,
    );
  },
  'tensor.multicast': (w, operands) => {
    const box = indices(operands, 4);
    const blocks = w.register('b16');
    w.line(`cvt.u16.u32 ${blocks}, ${operands.register(3)}`);
    w.line(
      `cp.async.bulk.tensor.${operands.detail[0]!}d.shared::cluster.global` +
        `.mbarrier::complete_tx::bytes.multicast::cluster ${operands.address(0)}, ` +
        `[${operands.register(1)}, ${box}], ${operands.address(2)}, ${blocks}`,
    );
  },
  'tensor.store': (w, operands) => {
    const box = indices(operands, 2);
    w.line(
      `cp.async.bulk.tensor.${operands.detail[0]!}d.global.shared::cta.bulk_group ` +
        `[${operands.register(0)}, ${box}], ${operands.address(1)}`,
    );
  },
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
  'warp.storeMatrices': (w, { detail, address, registers }) => {
    w.line(`stmatrix.sync.aligned.m8n8.x${detail[0]!}.shared.b16 ${address(0)}, ${registers(1)}`);
  },
  'fence.async': line('fence.proxy.async.shared::cta'),
  'fence.barriers': line('fence.mbarrier_init.release.cluster'),
};

export function writeInstruction(w: Writer, value: Value): void {
  const { name, detail, operands } = shapeOf(value);
  const { capability, specific } = instructionRow(name);
  if (capability >= 90) w.features.add('hopper');
  w.specific ||= specific;
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
      if (result !== given) w.line(`mov.${bitTypes[to.type]} ${result}, ${given}`);
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
  });
}

/** The register of a value: PTX takes no constants in braces. */
export function inRegister(w: Writer, value: Value): string {
  if (value.constant === undefined && value.op !== 'undefined') return w.operand(value);
  const register = w.register(value.type);
  w.line(`mov.${bitTypes[value.type]} ${register}, ${w.operand(value)}`);
  return register;
}
