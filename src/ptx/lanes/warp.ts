// Warp operations of a unit that is a warp, all of whose threads have reached the operation
// together: no thread waits, and values are passed from register to register. If only some threads
// have reached it, they write their operands to their mailboxes, as in the scalar back end.

import type { Arg, Inst } from '../analysis/program.js';
import { scalarType } from '../scalar-types.js';
import type { LaneEmitter } from './lane-emitter.js';
import { opcodeNamed } from '../wasm/opcodes.js';

const B32 = scalarType('b32');
const PRED = scalarType('pred');
const WARP = 32;

/** Whether the operation has a form for a whole warp at once. */
export function goesTogether(e: LaneEmitter, inst: Inst): boolean {
  if (e.width !== WARP) return false;
  const { mnemonic, modifiers, args } = inst;
  const mask = maskOf(inst);
  const known = mask && e.literal(mask);
  if (mask && known === undefined && (mask.kind !== 'register' || e.stride(mask) !== 0))
    return false;
  if (known !== undefined && known !== 0xffffffff) return false;
  switch (mnemonic) {
    case 'shfl':
      return args.length === (modifiers.includes('sync') ? 5 : 4) && targets(inst).length > 0;
    case 'vote':
      return args.length === (modifiers.includes('sync') ? 3 : 2);
    case 'redux':
      return args.length === 3 && !modifiers.includes('f32');
    case 'activemask':
      return true;
    case 'bar':
    case 'barrier':
      return modifiers.includes('warp');
    default:
      return false;
  }
}

/** The operand with the mask of the threads that take part; without one it is all. */
function maskOf({ mnemonic, modifiers, args }: Inst): Arg | undefined {
  return mnemonic === 'activemask' || (!modifiers.includes('sync') && mnemonic !== 'redux')
    ? undefined
    : args.at(-1);
}

/**
 * Whether the operation names all threads. Then it is not tested which threads have reached it, if
 * the plan has them reach it together.
 */
export function meansAll(e: LaneEmitter, inst: Inst): boolean {
  const mask = maskOf(inst);
  return mask === undefined || e.literal(mask) === 0xffffffff;
}

/** Pushes whether the whole warp is here and takes part. */
export function pushTogether(e: LaneEmitter, inst: Inst): void {
  e.pushAll(e.active);
  const mask = maskOf(inst);
  if (!mask || e.literal(mask) !== undefined) return;
  e.push(mask, B32);
  e.code.i32(-1).op('i32.eq').op('i32.and');
}

/** Executes the operation of the active threads, which are all threads of the warp. */
export function emitTogether(e: LaneEmitter, inst: Inst): void {
  const { code } = e;
  e.inst = inst;
  switch (inst.mnemonic) {
    case 'shfl':
      shuffle(e, inst);
      return;
    case 'vote': {
      const predicate = inst.args[1]!;
      const holds = e.temps(e.groups);
      const fails = e.temps(e.groups);
      e.eachGroup((group) => {
        const active = e.active[group]!;
        e.pushLanes(predicate, PRED);
        code.get(active).op('v128.and').set(holds[group]!);
        code.get(active).get(holds[group]!).op('v128.andnot').set(fails[group]!);
      });
      if (e.has('ballot')) {
        e.pushBits(holds);
      } else {
        e.pushAny(e.has('any') ? holds : fails);
        if (!e.has('any')) code.op('i32.eqz');
        if (e.has('uni')) {
          e.pushAny(holds);
          code.op('i32.eqz').op('i32.or');
        }
        code.i32(-1).op('i32.mul');
      }
      everywhere(e, inst.args[0]!);
      return;
    }
    case 'redux':
      reduce(e, inst);
      return;
    case 'activemask':
      e.pushBits(e.active);
      everywhere(e, inst.args[0]!);
  }
}

/** Pops an i32 into all lanes of a register. */
function everywhere(e: LaneEmitter, arg: Arg): void {
  const { code } = e;
  code.op('i32x4.splat');
  if (arg.kind !== 'register') {
    code.op('drop');
    return;
  }
  const [first, ...rest] = e.laneLocal(arg.register);
  code.set(first!);
  for (const local of rest) code.get(first!).set(local);
}

function reduce(e: LaneEmitter, inst: Inst): void {
  const { code } = e;
  const type = e.type();
  const operation = e.oneOf('add', 'min', 'max', 'and', 'or', 'xor')!;
  const ordered = operation === 'min' || operation === 'max';
  const name = ordered
    ? `i32x4.${operation}_${type.kind === 'signed' ? 's' : 'u'}`
    : operation === 'add'
      ? 'i32x4.add'
      : `v128.${operation}`;
  // The neutral element, for threads that do not exist.
  const least = type.kind === 'signed' ? 0x80000000 : 0;
  const neutral =
    operation === 'and' ? -1 : operation === 'max' ? least : operation === 'min' ? ~least : 0;
  e.eachGroup((group) => {
    e.pushLanes(inst.args[1]!, type);
    code.v128([neutral, neutral, neutral, neutral]).get(e.active[group]!).op('v128.bitselect');
    if (group) code.op(opcodeNamed(name));
  });
  const all = e.temp('v128');
  for (const turn of [
    [2, 3, 0, 1],
    [1, 0, 3, 2],
  ] as const)
    code.set(all).get(all).get(all).shuffle(turn).get(all).op(opcodeNamed(name));
  code.lane('i32x4.extract_lane', 0);
  everywhere(e, inst.args[0]!);
}

/** The results of a shuffle: the value, and whether its source is within the segment. */
function targets(inst: Inst): ((Arg & { kind: 'register' }) | undefined)[] {
  const target = inst.args[0]!;
  const parts = target.kind === 'pair' ? [target.first, target.second] : [target, undefined];
  return parts.map((part) => (part?.kind === 'register' ? part : undefined));
}

function shuffle(e: LaneEmitter, inst: Inst): void {
  const { code } = e;
  const [, value, by, clamp] = inst.args as [Arg, Arg, Arg, Arg];
  const [result, within] = targets(inst);
  const mode = e.oneOf('up', 'down', 'bfly', 'idx')!;
  const [b, c] = [e.literal(by), e.literal(clamp)];
  const values = e.temps(e.groups);
  e.eachGroup((group) => {
    e.pushLanes(value, value.kind === 'register' ? value.register.type : B32);
    code.set(values[group]!);
  });
  const set = (arg: Arg): void => {
    if (arg.kind === 'register') code.set(e.laneOf(arg.register));
  };
  if (b !== undefined && c !== undefined) {
    const sources = Array.from({ length: WARP }, (_, lane) => sourceOf(mode, lane, b & 31, c));
    e.eachGroup((group) => {
      const own = sources.slice(4 * group, 4 * group + 4);
      if (result) {
        pick(
          e,
          values,
          own.map(({ source }) => source),
        );
        set(result);
      }
      if (within) {
        const [a0, a1, a2, a3] = own.map(({ ok }) => (ok ? -1 : 0)) as [
          number,
          number,
          number,
          number,
        ];
        code.v128([a0, a1, a2, a3]);
        set(within);
      }
    });
    // A read from a thread that does not exist gives the thread's own value.
    if (!result) return;
    e.pushAllExecute();
    code.op('i32.eqz');
    e.when(() => {
      e.eachGroup((group) => {
        code.get(e.laneOf(result.register)).get(values[group]!);
        pick(
          e,
          e.active,
          sources.slice(4 * group, 4 * group + 4).map(({ source }) => source),
        );
        code.op('v128.bitselect');
        set(result);
      });
    });
    return;
  }
  throughMemory(e, mode, values, by, clamp, result, within);
}

/** The lane that a lane reads, by the ISA; if it is out of the segment, its own. */
function sourceOf(
  mode: string,
  lane: number,
  b: number,
  c: number,
): { source: number; ok: boolean } {
  const segment = (c >> 8) & 31;
  const max = (lane & segment) | (c & 31 & ~segment);
  const source =
    mode === 'up'
      ? lane - b
      : mode === 'down'
        ? lane + b
        : mode === 'bfly'
          ? lane ^ b
          : (lane & segment) | (b & ~segment);
  const ok = mode === 'up' ? source >= max : source <= max;
  return { source: ok ? source & 31 : lane, ok };
}

/** Pushes four lanes, each from one of all groups. */
function pick(e: LaneEmitter, values: readonly number[], lanes: readonly number[]): void {
  const { code } = e;
  const groups = [...new Set(lanes.map((lane) => lane >> 2))];
  const first = groups[0]!;
  code.get(values[first]!);
  if (groups.length === 1 && lanes.every((lane, index) => (lane & 3) === index)) return;
  // Each step takes lanes from one more group and keeps those in place.
  const placed = lanes.map((lane) => lane >> 2 === first);
  const from = (lane: number): number => lane & 3;
  const [second = first] = groups.slice(1);
  code.get(values[second]!);
  const [l0, l1, l2, l3] = lanes.map((lane, index) => {
    if (placed[index]) return from(lane);
    if (lane >> 2 !== second) return 0;
    placed[index] = true;
    return 4 + from(lane);
  }) as [number, number, number, number];
  code.shuffle([l0, l1, l2, l3]);
  for (const group of groups.slice(2)) {
    code.get(values[group]!);
    const [m0, m1, m2, m3] = lanes.map((lane, index) =>
      lane >> 2 === group ? 4 + from(lane) : index,
    ) as [number, number, number, number];
    code.shuffle([m0, m1, m2, m3]);
  }
}

/**
 * A shuffle whose distance is only known at run time: each lane loads its source's value from
 * memory.
 */
function throughMemory(
  e: LaneEmitter,
  mode: string,
  values: readonly number[],
  by: Arg,
  clamp: Arg,
  result: (Arg & { kind: 'register' }) | undefined,
  within: (Arg & { kind: 'register' }) | undefined,
): void {
  const { code } = e;
  const room = e.temp('i32');
  e.pushRoom(WARP * 8);
  code.set(room);
  values.forEach((local, group) => {
    code
      .get(room)
      .get(local)
      .memory('v128.store', 16 * group);
  });
  e.active.forEach((local, group) => {
    code
      .get(room)
      .get(local)
      .memory('v128.store', WARP * 4 + 16 * group);
  });
  e.eachGroup((group) => {
    e.scoped(() => {
      const [source, most, good, lane, segment] = e.temps(5) as [
        number,
        number,
        number,
        number,
        number,
      ];
      const lanes = 4 * group;
      code.v128([lanes, lanes + 1, lanes + 2, lanes + 3]).set(lane);
      e.pushLanes(clamp, B32);
      code.i32(8).op('i32x4.shr_u').i32(31).op('i32x4.splat').op('v128.and').set(segment);
      // (lane & segment) | (clamp & ~segment)
      code.get(lane);
      e.pushLanes(clamp, B32);
      code.i32(31).op('i32x4.splat').op('v128.and').get(segment).op('v128.bitselect').set(most);
      const pushBy = (): void => {
        e.pushLanes(by, B32);
        code.i32(31).op('i32x4.splat').op('v128.and');
      };
      code.get(lane);
      pushBy();
      if (mode === 'idx') code.get(segment).op('v128.bitselect');
      else code.op(opcodeNamed({ up: 'i32x4.sub', down: 'i32x4.add', bfly: 'v128.xor' }[mode]!));
      code
        .tee(source)
        .get(most)
        .op(mode === 'up' ? 'i32x4.ge_s' : 'i32x4.le_s')
        .set(good);
      code
        .get(source)
        .get(lane)
        .get(good)
        .op('v128.bitselect')
        .i32(2)
        .op('i32x4.shl')
        .get(room)
        .op('i32x4.splat')
        .op('i32x4.add')
        .set(source);
      const gather = (target: number, offset: number): void => {
        for (let index = 0; index < 4; index++) {
          code.get(source).lane('i32x4.extract_lane', index);
          if (index) code.get(target).memory('v128.load32_lane', offset).byte(index);
          else code.memory('v128.load32_zero', offset);
          code.set(target);
        }
      };
      if (result) {
        const target = e.laneOf(result.register);
        gather(target, 0);
        // A read from a thread that does not exist gives the thread's own value.
        gather(most, WARP * 4);
        code.get(target).get(values[group]!).get(most).op('v128.bitselect').set(target);
      }
      if (within) code.get(good).set(e.laneOf(within.register));
    });
  });
}
