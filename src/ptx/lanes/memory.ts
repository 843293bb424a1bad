// Loads and stores of a unit's threads. Adjacent addresses are v128 accesses after one check of the
// whole range; those that step evenly are checked as a range, too; others are one access each after
// a check of all addresses. If that check fails, because a thread is switched off or because there
// is a fault to report, a run-time function goes through the threads one by one.

import type { Arg } from '../analysis/program.js';
import { NULL_PAGE } from '../context.js';
import type { ScalarType } from '../scalar-types.js';
import type { LaneEmitter, LaneRule } from './lane-emitter.js';
import { access, check, elementsOf, pushAddress32, pushAddressHalf } from './places.js';
import type { Access, Place } from './places.js';
import { accessNamed } from '../wasm/opcodes.js';
import type { AccessOpcode } from '../wasm/opcodes.js';

export const load: LaneRule = (e) => {
  const [target] = e.inst.args;
  const found = access(e, e.inst.args[1], target);
  if (!found || found.values.some((part) => part.kind !== 'register' && part.kind !== 'sink'))
    return false;
  const known = e.unchecked?.get(e.inst);
  const read = (place: Place): void => {
    e.eachGroup(() => {
      e.scoped(() => {
        readGroup(e, found, place);
      });
    });
  };
  if (known) {
    read({ kind: 'range', local: known.local, offset: known.offset, stride: found.stride! });
    return true;
  }
  const { code } = e;
  const room = roomOf(e, found);
  const packed: Place = { kind: 'range', local: room, offset: ADDRESSES, stride: found.size };
  const place = check(e, found);
  if (place.kind === 'range' && place.stride === found.size) {
    // Threads that load one by one store their values side by side, from where they are read as
    // from a contiguous range.
    code.op('i32.eqz');
    e.when(() => {
      oneByOne(e, found, room, 'load');
      code.get(room).i32(ADDRESSES).op('i32.add').set(place.local);
    });
    read(place);
    return true;
  }
  for (const register of e.inst.defs) e.laneLocal(register);
  code.op('if').byte(0x40);
  e.nest(() => {
    read(place);
  });
  code.op('else');
  e.nest(() => {
    oneByOne(e, found, room, 'load');
    read(packed);
  });
  code.op('end');
  return true;
};

export const store: LaneRule = (e) => {
  const found = access(e, e.inst.args[0], e.inst.args[1]);
  if (!found || found.values.some((part) => part.kind === 'sink')) return false;
  const known = e.unchecked?.get(e.inst);
  const write = (place: Place): void => {
    e.eachGroup(() => {
      e.scoped(() => {
        writeGroup(e, found, place);
      });
    });
  };
  if (known) {
    write({ kind: 'range', local: known.local, offset: known.offset, stride: found.stride! });
    return true;
  }
  const { code } = e;
  const room = roomOf(e, found);
  const packed: Place = { kind: 'range', local: room, offset: ADDRESSES, stride: found.size };
  const place = check(e, found);
  if (e.diverged && found.shared && found.type.bits === 32 && isPermuted(e, place, found.size)) {
    code.op('if').byte(0x40);
    e.nest(() => {
      e.eachGroup(() => {
        e.scoped(() => {
          mergeGroup(e, found, place);
        });
      });
    });
    code.op('else');
    e.nest(() => {
      write(packed);
      oneByOne(e, found, room, 'store');
    });
    code.op('end');
    return true;
  }
  if (place.kind === 'range' && place.stride === 0) {
    storeLast(e, found, room, place.local, () => {
      write(packed);
    });
    return true;
  }
  e.pushAllExecute();
  code.op('i32.and');
  if (place.kind === 'range' && place.stride === found.size) {
    const good = e.temp('i32');
    code.tee(good).op('i32.eqz');
    e.when(() => {
      code.get(room).i32(ADDRESSES).op('i32.add').set(place.local);
    });
    write(place);
    code.get(good).op('i32.eqz');
    e.when(() => {
      oneByOne(e, found, room, 'store');
    });
    return true;
  }
  code.op('if').byte(0x40);
  e.nest(() => {
    write(place);
  });
  code.op('else');
  e.nest(() => {
    write(packed);
    oneByOne(e, found, room, 'store');
  });
  code.op('end');
  return true;
};

/** Each group has four adjacent elements of 32 bits, in some order. */
function isPermuted(e: LaneEmitter, place: Place, size: number): boolean {
  if (place.kind === 'range') return place.stride === size && size === 4;
  let all = true;
  e.eachGroup(() => {
    all &&= new Set(quadOf(e, place, size)?.lanes).size === 4;
  });
  return all;
}

/**
 * Stores for some of a group's threads by writing the others' old values back: no other code
 * accesses a block's shared memory meanwhile.
 */
function mergeGroup(e: LaneEmitter, found: Access, place: Place): void {
  if (place.kind === 'each') return;
  const { code } = e;
  const value = found.values[0]!;
  const quad = quadOf(e, place, found.size);
  const offset =
    quad?.start ?? (place.kind === 'range' ? place.offset + reach(e, found.size, 0) : 0);
  const moved = quad?.lanes.some((to, lane) => to !== lane) ? inverse(quad.lanes) : undefined;
  code.get(place.local);
  const mixed = e.temp('v128');
  e.pushLanes(value, storedAs(value, found.type));
  if (moved) code.tee(mixed).get(mixed).shuffle(moved);
  code.get(place.local).memory('v128.load', offset);
  code.get(e.guardMasks()[e.group]!);
  if (moved) code.tee(mixed).get(mixed).shuffle(moved);
  code.op('v128.bitselect').memory('v128.store', offset);
}

/**
 * Threads that store to the same place one after the other: the last one's value remains. The
 * result of the check is on the stack.
 */
function storeLast(
  e: LaneEmitter,
  found: Access,
  room: number,
  place: number,
  write: () => void,
): void {
  const { code } = e;
  const { size, log2 } = found;
  const [load, store] = copies[size]!;
  const good = e.temp('i32');
  if (e.writeBits && size === 4) {
    const last = 31 - Math.clz32(e.writeBits);
    code.op('if').byte(0x40);
    e.nest(() => {
      e.group = last >> 2;
      code.get(place);
      e.pushLanes(found.values[0]!, storedAs(found.values[0]!, found.type));
      e.group = 0;
      code.lane('i32x4.extract_lane', last & 3).memory(store, 0);
    });
    code.op('else');
    e.nest(() => {
      write();
      oneByOne(e, found, room, 'store');
    });
    code.op('end');
    return;
  }
  const bits = e.temp('i32');
  code.set(good);
  write();
  code.get(good).op('if').byte(0x40);
  e.nest(() => {
    e.pushBits(e.guardMasks());
    code.tee(bits);
    e.when(() => {
      code
        .get(place)
        .get(room)
        .i32(31)
        .get(bits)
        .op('i32.clz')
        .op('i32.sub')
        .i32(log2)
        .op('i32.shl')
        .op('i32.add')
        .memory(load, ADDRESSES)
        .memory(store);
    });
  });
  code.op('else');
  e.nest(() => {
    oneByOne(e, found, room, 'store');
  });
  code.op('end');
}

// One by one.

/** Bytes of the addresses of a unit's threads, which come before their values. */
const ADDRESSES = 256;

function roomOf(e: LaneEmitter, { size }: Access): number {
  const room = e.temp('i32');
  e.pushRoom(ADDRESSES + e.width * size);
  e.code.set(room);
  return room;
}

/**
 * Loads to or stores from the unit's adjacent values, for threads that execute the instruction, up
 * to the first fault.
 */
function oneByOne(e: LaneEmitter, found: Access, room: number, what: 'load' | 'store'): void {
  const { code } = e;
  const { address, shared, size, log2, stride, wide } = found;
  // Addresses that step need not be written out.
  const steps = stride !== undefined && address.base !== undefined;
  if (!steps)
    e.eachGroup((group) => {
      e.scoped(() => {
        const all = wide ? -1 : e.temp('v128');
        if (!wide) {
          pushAddress32(e, found);
          code.set(all);
        }
        for (const half of [0, 1]) {
          code.get(room);
          if (wide) pushAddressHalf(e, found, half);
          else code.get(all).op(`i64x2.extend_${half ? 'high' : 'low'}_i32x4_u`);
          code.memory('v128.store', 32 * group + 16 * half);
        }
      });
    });
  code.get(e.ctx).get(e.base).get(room);
  e.pushBits(e.guardMasks());
  code.i32(e.line);
  if (shared) code.get(e.contextField('shared')).op('i64.extend_i32_u');
  else code.i64(NULL_PAGE);
  code.get(elementsOf(e, shared, log2));
  if (steps) {
    code.get(e.registerLocal(address.base!));
    if (!wide) code.i32(address.offset).op('i32.add').op('i64.extend_i32_u');
    else if (address.offset) code.i64(address.offset).op('i64.add');
    // Addresses of 32 bits wrap.
    code.i64(stride).i64(wide ? -1 : 0xffffffff);
  }
  e.call(`lanes_${what}${steps ? '_steps' : ''}_${size}`);
  e.when(() => {
    e.leaveFaulted();
  });
}

// One group.

/** Bytes from the unit's first thread to a thread of the group. */
const reach = (e: LaneEmitter, stride: number, lane: number): number =>
  (4 * e.group + lane) * stride;

/** Pushes the address of one thread of the group; returns the constant to add to it. */
export function pushThread(e: LaneEmitter, place: Place, lane: number): number {
  if (place.kind === 'each') {
    e.code.get(place.addresses[e.group]!).lane('i32x4.extract_lane', lane);
    return place.offset;
  }
  e.code.get(place.local);
  return place.kind === 'apart'
    ? place.steps[4 * e.group + lane]!
    : place.offset + reach(e, place.stride, lane);
}

/**
 * Four elements of 32 bits within 16 bytes of the range: their beginning, and which of the four
 * each thread has.
 */
interface Quad {
  start: number;
  lanes: readonly [number, number, number, number];
}

function quadOf(e: LaneEmitter, place: Place, size: number): Quad | undefined {
  if (place.kind !== 'apart' || size !== 4 || place.bytes < 16) return undefined;
  const steps = place.steps.slice(4 * e.group, 4 * e.group + 4);
  const start = Math.min(...steps, place.bytes - 16);
  if (steps.some((step) => step - start > 12)) return undefined;
  return {
    start,
    lanes: steps.map((step) => (step - start) / 4) as [number, number, number, number],
  };
}

function readGroup(e: LaneEmitter, found: Access, place: Place): void {
  const { code } = e;
  const { type, values, size } = found;
  const near = place.kind === 'range' && place.stride === size ? place : undefined;
  if (size < 4) {
    readNarrow(e, found, place, near !== undefined);
    return;
  }
  const rows = e.temps(size / 4);
  const quad = quadOf(e, place, size);
  rows.forEach((row, index) => {
    if (quad && place.kind === 'apart') {
      code.get(place.local).memory('v128.load', quad.start);
      if (quad.lanes.some((from, lane) => from !== lane))
        code.tee(row).get(row).shuffle(quad.lanes);
    } else if (near) {
      code.get(near.local).memory('v128.load', near.offset + reach(e, size, 0) + 16 * index);
    } else if (size === 16) {
      const offset = pushThread(e, place, index);
      code.memory('v128.load', offset);
    } else {
      // Engines compute an offset of a lane load separately, in registers that they would fill long
      // before the loads.
      const pushAddress = (thread: number): void => {
        const offset = pushThread(e, place, thread);
        if (offset) code.i32(offset).op('i32.add');
      };
      if (size === 8) {
        pushAddress(2 * index);
        code.memory('v128.load64_zero').set(row);
        pushAddress(2 * index + 1);
        code.get(row).memory('v128.load64_lane').byte(1);
      } else {
        pushAddress(0);
        code.memory('v128.load32_zero');
        for (const lane of [1, 2, 3]) {
          // A separate load takes it in its address.
          const offset = pushThread(e, place, lane);
          code.memory('f32.load', offset).lane('f32x4.replace_lane', lane);
        }
      }
    }
    code.set(row);
  });
  const pop = (index: number, half = 0): void => {
    e.popLanes(values[index]!, half);
  };
  if (type.bits < 32) {
    values.forEach((_, index) => {
      code.get(rows[0]!);
      const over = 32 - type.bits * (index + 1);
      if (type.kind === 'signed') {
        if (over) code.i32(over).op('i32x4.shl');
        code.i32(32 - type.bits).op('i32x4.shr_s');
        cutTo16(e, values[index]!);
      } else {
        if (over) code.i32(over).op('i32x4.shl');
        code.i32(32 - type.bits).op('i32x4.shr_u');
      }
      pop(index);
    });
    return;
  }
  const mix = (a: number, b: number, lanes: readonly [number, number, number, number]): void => {
    code.get(rows[a]!).get(rows[b]!).shuffle(lanes);
  };
  if (type.bits === 64) {
    if (values.length === 1) {
      rows.forEach((row, half) => {
        code.get(row);
        pop(0, half);
      });
      return;
    }
    for (const half of [0, 1]) {
      mix(2 * half, 2 * half + 1, [0, 1, 4, 5]);
      pop(0, half);
      mix(2 * half, 2 * half + 1, [2, 3, 6, 7]);
      pop(1, half);
    }
  } else if (size === 4) {
    code.get(rows[0]!);
    pop(0);
  } else if (size === 8) {
    mix(0, 1, [0, 2, 4, 6]);
    pop(0);
    mix(0, 1, [1, 3, 5, 7]);
    pop(1);
  } else {
    transpose(
      e,
      (index) => {
        code.get(rows[index]!);
      },
      pop,
    );
  }
}

const inverse = (lanes: Quad['lanes']): Quad['lanes'] =>
  [0, 1, 2, 3].map((to) => lanes.indexOf(to)) as [number, number, number, number];

/** Four rows of four become four columns. */
function transpose(
  e: LaneEmitter,
  push: (row: number) => void,
  pop: (column: number) => void,
): void {
  const { code } = e;
  for (const high of [0, 1]) {
    const pairs = [0, 2].map((row) => {
      const local = e.temp('v128');
      push(row);
      push(row + 1);
      code.shuffle(high ? [2, 6, 3, 7] : [0, 4, 1, 5]).set(local);
      return local;
    }) as [number, number];
    for (const odd of [0, 1]) {
      code
        .get(pairs[0])
        .get(pairs[1])
        .shuffle(odd ? [2, 3, 6, 7] : [0, 1, 4, 5]);
      pop(2 * high + odd);
    }
  }
}

/** A signed narrow value in a 16-bit register has only 16 bits. */
function cutTo16(e: LaneEmitter, target: Arg): void {
  if (target.kind === 'register' && target.register.type.bits === 16)
    e.code.i32(0xffff).op('i32x4.splat').op('v128.and');
}

function readNarrow(
  e: LaneEmitter,
  { type, values, size }: Access,
  place: Place,
  near: boolean,
): void {
  const { code } = e;
  const sign = type.kind === 'signed' ? 's' : 'u';
  if (near && place.kind === 'range') {
    code
      .get(place.local)
      .memory(accessNamed(`v128.load${32 * size}_zero`), place.offset + reach(e, size, 0));
    if (size === 1) code.op(`i16x8.extend_low_i8x16_${sign}`);
    code.op(`i32x4.extend_low_i16x8_${sign}`);
  } else {
    // A load into the low bytes of zeros: a separate load and a replaced lane are two instructions
    // of the processor more.
    code.v128([0, 0, 0, 0]);
    for (let lane = 0; lane < 4; lane++) {
      const row = e.temp('v128');
      code.set(row);
      const offset = pushThread(e, place, lane);
      code
        .get(row)
        .memory(accessNamed(`v128.load${8 * size}_lane`), offset)
        .byte((lane * 4) / size);
    }
    if (type.kind === 'signed')
      code
        .i32(32 - 8 * size)
        .op('i32x4.shl')
        .i32(32 - 8 * size)
        .op('i32x4.shr_s');
  }
  if (type.kind === 'signed') cutTo16(e, values[0]!);
  e.popLanes(values[0]!);
}

/** Registers of any class may be stored as bits of their width. */
const storedAs = (value: Arg, type: ScalarType): ScalarType =>
  value.kind === 'register' ? value.register.type : type;

function writeGroup(e: LaneEmitter, found: Access, place: Place): void {
  const { code } = e;
  const { type, values, size } = found;
  const near = place.kind === 'range' && place.stride === size ? place : undefined;
  const push = (index: number, half = 0): void => {
    const value = values[index]!;
    if (type.bits === 64) e.pushHalf(value, storedAs(value, type), half);
    else e.pushLanes(value, storedAs(value, type));
  };
  if (size < 4) {
    const value = e.temp('v128');
    push(0);
    code.set(value);
    if (near) {
      // The low bytes of all lanes, side by side.
      const bytes = [0, 4, 8, 12].flatMap((first) =>
        Array.from({ length: size }, (_, byte) => first + byte),
      );
      code
        .get(near.local)
        .get(value)
        .get(value)
        .shuffleBytes(Array.from({ length: 16 }, (_, byte) => bytes[byte % bytes.length]!));
      code
        .memory(accessNamed(`v128.store${32 * size}_lane`), near.offset + reach(e, size, 0))
        .byte(0);
      return;
    }
    for (let lane = 0; lane < 4; lane++) {
      const offset = pushThread(e, place, lane);
      code
        .get(value)
        .lane('i32x4.extract_lane', lane)
        .memory(size === 1 ? 'i32.store8' : 'i32.store16', offset);
    }
    return;
  }
  const rows = e.temps(size / 4);
  const set = (row: number): void => {
    code.set(rows[row]!);
  };
  if (type.bits < 32) {
    values.forEach((_, index) => {
      push(index);
      const over = 32 - type.bits;
      code.i32(over).op('i32x4.shl');
      const shift = over - type.bits * index;
      if (shift) code.i32(shift).op('i32x4.shr_u');
      if (index) code.op('v128.or');
    });
    set(0);
  } else if (type.bits === 64 && values.length === 2) {
    for (const half of [0, 1]) {
      for (const odd of [0, 1]) {
        push(0, half);
        push(1, half);
        code.shuffle(odd ? [2, 3, 6, 7] : [0, 1, 4, 5]);
        set(2 * half + odd);
      }
    }
  } else if (type.bits === 64) {
    for (const half of [0, 1]) {
      push(0, half);
      set(half);
    }
  } else if (size === 4) {
    push(0);
    set(0);
  } else if (size === 8) {
    for (const odd of [0, 1]) {
      push(0);
      push(1);
      code.shuffle(odd ? [2, 6, 3, 7] : [0, 4, 1, 5]);
      set(odd);
    }
  } else {
    transpose(e, push, set);
  }
  const quad = quadOf(e, place, size);
  rows.forEach((row, index) => {
    if (quad && place.kind === 'apart' && new Set(quad.lanes).size === 4) {
      code.get(place.local).get(row);
      if (quad.lanes.some((to, lane) => to !== lane)) code.get(row).shuffle(inverse(quad.lanes));
      code.memory('v128.store', quad.start);
    } else if (near) {
      code
        .get(near.local)
        .get(row)
        .memory('v128.store', near.offset + reach(e, size, 0) + 16 * index);
    } else if (size === 16) {
      const offset = pushThread(e, place, index);
      code.get(row).memory('v128.store', offset);
    } else {
      const [bits, lanes] = size === 8 ? [64, 2] : [32, 4];
      for (let lane = 0; lane < lanes; lane++) {
        const offset = pushThread(e, place, index * lanes + lane);
        if (offset) code.i32(offset).op('i32.add');
        code
          .get(row)
          .memory(accessNamed(`v128.store${bits}_lane`))
          .byte(lane);
      }
    }
  });
}

const copies: Record<number, readonly [load: AccessOpcode, store: AccessOpcode]> = {
  1: ['i32.load8_u', 'i32.store8'],
  2: ['i32.load16_u', 'i32.store16'],
  4: ['i32.load', 'i32.store'],
  8: ['i64.load', 'i64.store'],
  16: ['v128.load', 'v128.store'],
};

/**
 * Goes through the threads whose bits are set, in order, up to the first fault; returns whether
 * there was one.
 */
const oneByOneText = (what: 'load' | 'store', size: number, steps: boolean): string => {
  const log2 = Math.log2(size);
  const [load, store] = copies[size]!;
  const packed = `(i32.add $room (i32.shl $lane ${log2}))`;
  const address = steps
    ? '(i64.and (i64.add $first (i64.mul $step (i64.extend_i32_u $lane))) $mask)'
    : '(i64.load (i32.add $room (i32.shl $lane 3)))';
  return `
(func $lanes_${what}${steps ? '_steps' : ''}_${size} (param $ctx $thread $room $bits $line i32)
  (param $low $elements ${steps ? '$first $step $mask ' : ''}i64) (result i32)
  (local $lane i32) (local $address i64)
  (block $done (loop $each
    (br_if $done (i32.eqz $bits))
    (local.set $lane (i32.ctz $bits))
    (local.set $bits (i32.and $bits (i32.sub $bits 1)))
    (local.set $address ${address})
    (if (i64.ge_u (i64.rotr (i64.sub $address $low) ${log2}L) $elements) (then
      (call $fault_memory $ctx (i32.add $thread $lane) $address ${size} $line)
      (return 1)))
    ${
      what === 'load'
        ? `(${store} offset=${ADDRESSES} ${packed} (${load} (i32.wrap_i64 $address)))`
        : `(${store} (i32.wrap_i64 $address) (${load} offset=${ADDRESSES} ${packed}))`
    }
    (br $each)))
  0)`;
};

export const LANE_FUNCTIONS = [1, 2, 4, 8, 16]
  .flatMap((size) =>
    [false, true].flatMap((steps) => [
      oneByOneText('load', size, steps),
      oneByOneText('store', size, steps),
    ]),
  )
  .join('\n');
