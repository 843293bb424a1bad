// The place of a unit in its block: its threads' indices, and the step to the next unit.

import { instructionsOf } from '../../analysis/liveness.js';
import type { Arg } from '../../analysis/program.js';
import { CTX, STATUS } from '../../context.js';
import { emitInterrupt, emitResume } from '../block-passes.js';
import type { LaneKernelEmitter } from '../lane-kernel.js';

/** Each of several loops over units counts all of a thread's indices, whichever code reads them. */
export function countIndices(k: LaneKernelEmitter): void {
  if (k.oneRow) return;
  const { blocks, shape } = k.kernel;
  const insts = shape.order.flatMap((index) => instructionsOf(blocks[index]!));
  for (const axis of [0, 1, 2] as const)
    if (insts.some((inst) => inst.args.some((arg) => isRead(arg, `tid.${'xyz'[axis]!}`))))
      k.tids[axis] = k.newLocal('i32');
}

export function storeFuel(k: LaneKernelEmitter): void {
  const {
    code,
    around: { linker },
  } = k;
  code
    .get(k.fuel)
    .op('global.set')
    .u32(linker.globalIndex('fuel'))
    .i32(0)
    .op('global.set')
    .u32(linker.globalIndex('carry'));
}

/** The next unit's place in its block. */
export function emitNextPlace(k: LaneKernelEmitter): void {
  const { code, tids } = k;
  if (k.oneRow || tids.every((local) => local < 0)) return;
  const x = tids[0] >= 0 ? tids[0] : (tids[0] = k.newLocal('i32'));
  code.get(x).i32(k.width).op('i32.add').tee(x).get(k.contextWord(CTX.blockDim)).op('i32.ge_u');
  k.when(() => {
    code.i32(0).set(x);
    const [, y, z] = tids;
    if (y < 0 && z < 0) return;
    const ty = y >= 0 ? y : (tids[1] = k.newLocal('i32'));
    code
      .get(ty)
      .i32(1)
      .op('i32.add')
      .tee(ty)
      .get(k.contextWord(CTX.blockDim + 4))
      .op('i32.eq');
    k.when(() => {
      code.i32(0).set(ty);
      if (z >= 0) code.get(z).i32(1).op('i32.add').set(z);
    });
  });
}

export function emitNextUnit(k: LaneKernelEmitter): void {
  const { code } = k;
  code.get(k.base).i32(k.width).op('i32.add').set(k.base);
  emitNextPlace(k);
  code.get(k.fuel).i32(0).op('i32.le_s');
  k.when(() => {
    if (k.passes) {
      emitInterrupt(
        code,
        k.passes,
        k.ctx,
        k.contextField('scratch'),
        k.framesBase(),
        k.frames.unitBytes,
        k.width,
        k.base,
        () => k.call('lanes_tell'),
      );
      return;
    }
    code.get(k.base).op('global.set').u32(k.around.linker.globalIndex('cursor'));
    storeFuel(k);
    code.i32(STATUS.yielded).op('return');
  });
}

export function prologueBytes(k: LaneKernelEmitter): Uint8Array {
  const { prologue } = k;
  if (k.passes) {
    const threads = k.contextField('threads');
    prologue.get(threads).set(k.to);
    emitResume(
      prologue,
      k.passes,
      k.from,
      k.contextField('scratch'),
      k.framesBase(),
      k.frames.unitBytes,
      k.width,
      threads,
      () => prologue.op('call').u32(k.around.linker.functionIndex('lanes_begin')),
    );
  } else if (k.kernel.layout.stateful) {
    prologue.op('global.get').u32(k.around.linker.globalIndex('fuel')).set(k.fuel);
  } else {
    prologue.i32(0).set(k.from).get(k.ctx).memory('i32.load', CTX.threads).set(k.to);
    prologue.get(k.ctx).memory('i32.load', CTX.further).set(k.further);
  }
  prologue.get(k.from).set(k.base);
  if (k.oneRow) return prologue.finish();
  const [x, y, z] = k.tids;
  if (x < 0 && y < 0 && z < 0) return prologue.finish();
  const width = (): void => {
    prologue.get(k.ctx).memory('i32.load', CTX.blockDim);
  };
  const height = (): void => {
    prologue.get(k.ctx).memory('i32.load', CTX.blockDim + 4);
  };
  // Most calls begin with the first thread, and everything would wait for three divisions.
  prologue.get(k.from).op('if').byte(0x40);
  if (x >= 0) {
    prologue.get(k.from);
    width();
    prologue.op('i32.rem_u').set(x);
  }
  for (const [local, operation] of [
    [y, 'i32.rem_u'],
    [z, 'i32.div_u'],
  ] as const) {
    if (local < 0) continue;
    prologue.get(k.from);
    width();
    prologue.op('i32.div_u');
    height();
    prologue.op(operation).set(local);
  }
  prologue.op('end');
  return prologue.finish();
}

/** Whether an operand is, or contains, a special register. */
function isRead(arg: Arg, name: string): boolean {
  switch (arg.kind) {
    case 'special':
      return arg.name === name;
    case 'vector':
      return arg.elements.some((element) => isRead(element, name));
    case 'pair':
      return isRead(arg.first, name) || isRead(arg.second, name);
    case 'not':
      return isRead(arg.operand, name);
    default:
      return false;
  }
}
