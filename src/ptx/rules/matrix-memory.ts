// wmma.load and wmma.store: each lane moves the elements of its own fragment. A barrier of the warp
// comes just before (analysis/cuts.ts), as .sync requires.

import { emitAccessCheck } from '../emit/check.js';
import { fragmentRegisters, laneLocal, pushLaneSum } from '../emit/matrix-arrivals.js';
import type { Emitter } from '../emit/emitter.js';
import { checkedAddress, pushWideAddress } from '../emit/memory-access.js';
import { fragmentOf } from '../matrix/forms.js';
import type { MemoryFragment } from '../matrix/forms.js';
import type { Place } from '../emit/place.js';
import { bitsType, callPart } from '../emit/shared-part.js';
import type { PartValue } from '../emit/shared-part.js';
import type { Arg } from '../analysis/program.js';
import { scalarType } from '../scalar-types.js';
import { accessSpace } from './memory.js';
import { accessNamed } from '../wasm/opcodes.js';

const B64 = scalarType('b64');
const U32 = scalarType('u32');

/** Adjacent elements, in memory and in the register. */
interface Run {
  register: number;
  /** Bits of the register below the run. */
  shift: number;
  bytes: number;
  major: number;
  minor: number;
}

function runs({ operand: { type, layout }, order }: MemoryFragment): Run[] {
  const at = (index: number): { major: number; minor: number } => {
    const { row, column } = layout.element(index);
    return order === 'row' ? { major: row, minor: column } : { major: column, minor: row };
  };
  const whole = layout.width === 1 || at(1).minor === at(0).minor + 1;
  const found: Run[] = [];
  for (let register = 0; register < layout.registers; register++) {
    for (let index = 0; index < (whole ? 1 : layout.width); index++) {
      const bits = whole ? layout.width * type.bits : type.bits;
      found.push({
        register,
        shift: index * type.bits,
        bytes: bits / 8,
        ...at(register * layout.width + index),
      });
    }
  }
  return found;
}

export function wmma(e: Emitter): void {
  const { code, inst } = e;
  const [what] = inst.modifiers;
  if (what !== 'load' && what !== 'store') throw e.unsupported();
  if (!e.has('sync')) throw e.semantic("'wmma' needs .sync");
  const fragment = fragmentOf(inst.modifiers);
  if (!fragment) throw e.unsupported();
  e.argCount(2, 3);
  const {
    operand: { type, layout },
  } = fragment;
  const [target, source] = what === 'load' ? [e.arg(0), e.arg(1)] : [e.arg(1), e.arg(0)];
  const registers = fragmentRegisters(e, target, layout.registers);
  const given = inst.args[2];
  // Code compiled with `check` reports each access where the instruction is.
  if (e.around.check) {
    moveFragment(
      e,
      fragment,
      registers,
      () => {
        pushWideAddress(e, source);
      },
      given &&
        (() => {
          e.push(given, U32);
        }),
      (place) => {
        emitAccessCheck(e, place.at, source, place.bytes, accessSpace(e));
      },
    );
    return;
  }
  const values = registers.map((arg): PartValue => ({ arg, type: bitsType(type.bits) }));
  const place = e.temp('i64');
  pushWideAddress(e, source);
  code.set(place);
  callPart(e, {
    key: `${[inst.mnemonic, ...inst.modifiers].join('.')}${given ? '' : ' packed'}`,
    faults: true,
    inputs: [
      { local: place, type: B64 },
      ...(given ? [{ arg: given, type: U32 }] : []),
      ...(what === 'store' ? values : []),
    ],
    outputs: what === 'load' ? values : [],
    build: (part, inputs, outputs) => {
      const [address, stride] = inputs as [Arg, Arg?];
      moveFragment(
        part,
        fragment,
        what === 'load' ? outputs : inputs.slice(given ? 2 : 1),
        () => {
          part.push(address, B64);
        },
        given &&
          (() => {
            part.push(stride!, U32);
          }),
        () => {},
      );
    },
  });
}

/** Moves a lane's fragment; `pushStride` is present if the instruction gives one. */
function moveFragment(
  e: Emitter,
  fragment: MemoryFragment,
  registers: readonly Arg[],
  pushAddress: () => void,
  pushStride: (() => void) | undefined,
  check: (access: { at: Place; bytes: number }) => void,
): void {
  const { code } = e;
  const {
    operand: { type, layout },
    order,
  } = fragment;
  const what = e.inst.modifiers[0] as 'load' | 'store';
  const lane = laneLocal(e);
  const inMajor = order === 'row' ? 'row' : 'column';
  const inMinor = order === 'row' ? 'column' : 'row';
  // Bytes of one element: single bits count by the word within a row, and by the bit between rows.
  const elementBits = type.name === 'b1' ? 1 : type.bits;
  const base = e.temp('i64');
  const stride = e.temp('i64');
  const major = e.temp('i32');
  if (pushStride) {
    pushStride();
    code.op('i64.extend_i32_u');
  } else {
    code.i64(fragment.stride);
  }
  code.i64(elementBits).op('i64.mul').i64(3).op('i64.shr_u').set(stride);
  pushLaneSum(e, lane, layout.lane, (field) => field[inMajor] ?? 0);
  code.set(major);
  pushAddress();
  pushLaneSum(e, lane, layout.lane, (field) => (field[inMinor] ?? 0) * type.bits);
  code.i32(3).op('i32.shr_u').op('i64.extend_i32_u').op('i64.add').set(base);

  const values = registers.map(() => e.temp(type.bits === 64 ? 'i64' : 'i32'));
  const bits = bitsType(type.bits);
  if (what === 'store') {
    registers.forEach((register, index) => {
      e.push(register, bits);
      code.set(values[index]!);
    });
  }
  for (const run of runs(fragment)) {
    code.get(base).get(major);
    if (run.major) code.i32(run.major).op('i32.add');
    code.op('i64.extend_i32_u').get(stride).op('i64.mul').op('i64.add');
    if (run.minor) code.i64((run.minor * type.bits) / 8).op('i64.add');
    const place = checkedAddress(e, run.bytes, accessSpace(e));
    check({ at: place, bytes: run.bytes });
    const value = values[run.register]!;
    if (what === 'load') {
      code
        .get(place.local)
        .memory(
          accessNamed(
            run.bytes === 8
              ? 'i64.load'
              : run.bytes === 4
                ? 'i32.load'
                : `i32.load${run.bytes * 8}_u`,
          ),
          place.offset,
        );
      if (run.shift) code.i32(run.shift).op('i32.shl').get(value).op('i32.or');
      code.set(value);
    } else {
      code.get(place.local).get(value);
      if (run.shift) code.i32(run.shift).op('i32.shr_u');
      code.memory(
        accessNamed(
          run.bytes === 8
            ? 'i64.store'
            : run.bytes === 4
              ? 'i32.store'
              : `i32.store${run.bytes * 8}`,
        ),
        place.offset,
      );
    }
  }
  if (what === 'load') {
    registers.forEach((register, index) => {
      code.get(values[index]!);
      e.pop(register, bits);
    });
  }
}
