// The loads of rows ahead, at the beginning of a block: see `prefetching.ts`.

import { CTX } from '../../context.js';
import type { PassLocals } from '../block-passes.js';
import type { LaneKernelEmitter } from '../lane-kernel.js';
import { testPlace } from '../places.js';
import type { Access } from '../places.js';
import { LINE } from '../prefetching.js';
import type { PrefetchedRows } from '../prefetching.js';
import { enterWhole, leaveWhole } from './whole-units.js';

/**
 * The least bytes from row to row: rows nearer to each other are in caches already, or processors
 * prefetch them.
 */
const LEAST_BETWEEN_ROWS = 1024;

/** A block with more rows has many threads, and with them other work than memory accesses. */
const MOST_PREFETCHED_ROWS = 32;

/** An entry of the table of rows that are loaded two at a time. */
const ROWS = { places: 0, steps: 16, count: 32, bytes: 40 } as const;

/**
 * Bytes that the blocks of a grid access together which caches do not hold: with 8 MB prefetching
 * rows took a transpose 1.25 times as long, from 26 MB on 0.7 times.
 */
const FAR = 18 * 2 ** 20;

/** At the start of a block: loads of the lines of its rows. */
export function prefetchRows(k: LaneKernelEmitter, { release, ready, left }: PassLocals): void {
  const { code, base, width } = k;
  const { prefetched } = k.codePlan;
  if (!prefetched) return;
  const { insts, pairs, size } = prefetched;
  const { lanes, threads } = k.effort;
  const none = {};
  const [rows, row] = [
    k.contextWord(CTX.blockDim + 4),
    k.tids[1] >= 0 ? k.tids[1] : (k.tids[1] = k.newLocal('i32')),
  ];
  const registers = [...new Set(insts.flatMap(({ defs }) => defs))];
  k.block = undefined;
  enterWhole(k);
  k.openLabel('block', none);
  // A call that resumes what another one has interrupted does not need it.
  code.get(base).get(release).op('i32.or').get(ready).op('i32.or').get(left).op('i32.or');
  k.branchTo(none, 'br_if');
  code
    .get(k.contextWord(CTX.blockDim))
    .i32(width)
    .op('i32.ne')
    .get(rows)
    .i32(MOST_PREFETCHED_ROWS)
    .op('i32.gt_u')
    .op('i32.or');
  k.branchTo(none, 'br_if');
  code.get(rows).op('f64.convert_i32_u');
  for (const offset of [0, 4, 8])
    code
      .get(k.contextWord(CTX.gridDim + offset))
      .op('f64.convert_i32_u')
      .op('f64.mul');
  code.f64(FAR / (new Set(pairs.flat()).size * width * size)).op('f64.lt');
  k.branchTo(none, 'br_if');
  k.conditionally(() => {
    for (const register of registers) k.bindRegister(register, k.newLocal(register.type.wasm));
    for (const inst of insts) k.emitInst(inst);
    const { table, last } = emitRowTable(k, prefetched, rows, row);
    loadRows(k, table, last, Math.log2(size), Math.ceil((width * size) / LINE), none);
    for (const { id } of registers) k.registerLocals.delete(id);
  });
  k.endInstruction();
  k.closeLabel();
  leaveWhole(k);
  Object.assign(k.effort, { lanes, threads });
}

/**
 * The rows of each pair of places, as a table: where they begin, the step from one to the next, and
 * their number. Returns locals of the table and of its last entry.
 */
function emitRowTable(
  k: LaneKernelEmitter,
  { insts, ofRow, pairs }: PrefetchedRows,
  rows: number,
  row: number,
): { table: number; last: number } {
  const { code } = k;
  const push = ({ base: register, offset }: Access['address']): void => {
    code.get(k.registerLocal(register!));
    if (offset) code.i64(offset).op('i64.add');
  };
  const firsts = new Map(pairs.flat().map((access) => [access, k.newLocal('i64')]));
  for (const [{ address }, first] of firsts) {
    push(address);
    code.set(first);
  }
  code.i32(1).set(row);
  for (const inst of insts) if (ofRow.has(inst)) k.emitInst(inst);
  code.i32(0).set(row);
  const [table, at, count] = [k.newLocal('i32'), k.newLocal('i32'), k.newLocal('i32')];
  /** The last entry: its step, and the place after its rows. */
  const sides = [0, 8].map((offset) => ({
    place: ROWS.places + offset,
    steps: ROWS.steps + offset,
    step: k.newLocal('i64'),
    last: k.newLocal('i64'),
    next: k.newLocal('i64'),
  }));
  k.pushRoom(ROWS.bytes * pairs.length);
  code.tee(table).i32(ROWS.bytes).op('i32.sub').set(at);
  pairs.forEach((pair, index) => {
    const done = {};
    k.openLabel('block', done);
    sides.forEach(({ step }, side) => {
      push(pair[side]!.address);
      code.get(firsts.get(pair[side]!)!).op('i64.sub').set(step);
    });
    if (index > 0) {
      // They may continue where the last ones end.
      sides.forEach(({ step, last, next }, side) => {
        code
          .get(step)
          .get(last)
          .op('i64.eq')
          .get(firsts.get(pair[side]!)!)
          .get(next)
          .op('i64.eq')
          .op('i32.and');
        if (side) code.op('i32.and');
      });
      k.when(() => {
        code.get(at).get(count).get(rows).op('i32.add').tee(count).memory('i32.store', ROWS.count);
        for (const { step, next } of sides)
          code
            .get(next)
            .get(step)
            .get(rows)
            .op('i64.extend_i32_u')
            .op('i64.mul')
            .op('i64.add')
            .set(next);
        k.branchTo(done);
      });
    }
    code
      .get(at)
      .i32(ROWS.bytes)
      .op('i32.add')
      .tee(at)
      .get(rows)
      .tee(count)
      .memory('i32.store', ROWS.count);
    sides.forEach(({ place, steps, step, last, next }, side) => {
      const first = firsts.get(pair[side]!)!;
      code
        .get(at)
        .get(first)
        .memory('i64.store', place)
        .get(at)
        .get(step)
        .tee(last)
        .memory('i64.store', steps);
      code
        .get(first)
        .get(step)
        .get(rows)
        .op('i64.extend_i32_u')
        .op('i64.mul')
        .op('i64.add')
        .set(next);
    });
    k.closeLabel();
  });
  return { table, last: at };
}

/**
 * Loads this many lines of all rows in a table, with `last` its last entry. The same few
 * instructions load all of them, one row after the other: processors then detect the step, and
 * prefetch.
 */
function loadRows(
  k: LaneKernelEmitter,
  table: number,
  last: number,
  log2: number,
  lines: number,
  none: object,
): void {
  const { code } = k;
  const [each, skipped, again, left] = [{}, {}, {}, k.newLocal('i32')];
  const sides = [0, 8].map((offset) => ({
    place: ROWS.places + offset,
    steps: ROWS.steps + offset,
    first: k.newLocal('i64'),
    step: k.newLocal('i64'),
    at: k.newLocal('i32'),
    by: k.newLocal('i32'),
  }));
  k.openLabel('loop', each);
  code.get(table).get(last).op('i32.gt_u');
  k.branchTo(none, 'br_if');
  k.openLabel('block', skipped);
  code.get(table).memory('i32.load', ROWS.count).set(left);
  for (const { place, steps, first, step, at, by } of sides) {
    code
      .get(table)
      .memory('i64.load', steps)
      .tee(step)
      .i64(LEAST_BETWEEN_ROWS - 1)
      .op('i64.add')
      .i64(2 * LEAST_BETWEEN_ROWS - 1)
      .op('i64.lt_u');
    k.branchTo(skipped, 'br_if');
    // Steps of 32 bits do not wrap around: the rows are between the first and the last.
    code
      .get(step)
      .i64(2n ** 31n)
      .op('i64.add')
      .i64(2n ** 32n)
      .op('i64.ge_u');
    k.branchTo(skipped, 'br_if');
    for (const end of [false, true]) {
      if (end)
        code
          .get(first)
          .get(left)
          .i32(1)
          .op('i32.sub')
          .op('i64.extend_i32_u')
          .get(step)
          .op('i64.mul')
          .op('i64.add');
      else code.get(table).memory('i64.load', place).tee(first);
      testPlace(k, false, log2, true, k.width);
      code.op('i32.eqz');
      k.branchTo(skipped, 'br_if');
    }
    code.get(first).op('i32.wrap_i64').set(at).get(step).op('i32.wrap_i64').set(by);
  }
  k.openLabel('loop', again);
  for (const { at } of sides)
    for (let line = 0; line < lines; line++)
      code
        .get(at)
        .memory('i32.load8_u', LINE * line)
        .op('drop');
  for (const { at, by } of sides) code.get(at).get(by).op('i32.add').set(at);
  code.get(left).i32(1).op('i32.sub').tee(left);
  k.branchTo(again, 'br_if');
  k.closeLabel();
  k.closeLabel();
  code.get(table).i32(ROWS.bytes).op('i32.add').set(table);
  k.branchTo(each);
  k.closeLabel();
}
