// Atomics on shared memory, one thread after the other in their order, without a loop. No other
// code accesses the block's shared memory meanwhile, so each is a load, an operation and a store.

import type { Arg } from '../analysis/program.js';
import { OPERATIONS, readModifyWrite } from '../rules/atomics.js';
import { scalarType } from '../scalar-types.js';
import type { LaneEmitter, LaneRule } from './lane-emitter.js';
import { pushThread } from './memory.js';
import { access, check } from './places.js';
import type { Place } from './places.js';

const B32 = scalarType('b32');

export const atomic =
  (returns: boolean): LaneRule =>
  (e) => {
    const { code, inst } = e;
    const operation = e.oneOf(...OPERATIONS);
    const [address, ...operands] = inst.args.slice(returns ? 1 : 0);
    if (
      !operation ||
      operands.length !== (operation === 'cas' ? 2 : 1) ||
      !operands.every(isLane) ||
      e.oneOf('v2', 'v4', 'noftz', 'async')
    )
      return false;
    const found = access(e, address, operands[0], inst.args.length);
    if (!found?.shared || found.type.bits !== 32 || found.size !== 4) return false;
    const [target] = returns ? inst.args : [];
    const wanted = target?.kind === 'register' && e.isUsed(target.register);
    if (wanted && !isLane(target)) return false;
    for (const register of inst.defs) e.laneLocal(register);
    const proven =
      found.stride === undefined &&
      !found.wide &&
      e.isWithin(found.address.base!, found.address.offset, 4);
    let place: Place;
    if (proven) {
      place = {
        kind: 'each',
        addresses: e.laneLocal(found.address.base!),
        offset: found.address.offset,
      };
      e.pushAllExecute();
    } else {
      place = check(e, found);
      e.pushAllExecute();
      code.op('i32.and');
    }
    const old = e.temp('i32');
    const at = e.temp('i32');
    code.op('if').byte(0x40);
    e.nest(() => {
      e.eachGroup(() => {
        e.scoped(() => {
          const values = operands.map((arg) => pushable(e, arg));
          const results = wanted ? e.temp('v128') : -1;
          for (let lane = 0; lane < 4; lane++) {
            e.scoped(() => {
              const offset = pushThread(e, place, lane);
              code.set(at);
              readModifyWrite(
                e,
                { local: at, offset },
                operation,
                found.type,
                true,
                old,
                (index) => {
                  values[index - 1]!(lane);
                },
              );
              if (!wanted) return;
              if (lane) code.get(results).get(old).lane('i32x4.replace_lane', lane).set(results);
              else code.get(old).op('i32x4.splat').set(results);
            });
          }
          if (!wanted) return;
          code.get(results);
          e.popLanes(target);
        });
      });
    });
    code.op('else');
    e.nest(() => {
      e.emitThreads();
    });
    code.op('end');
    return true;
  };

/** An operand of 32 bits from which a thread's bits can be taken. */
function isLane(arg: Arg): boolean {
  return arg.kind === 'integer' || (arg.kind === 'register' && arg.register.type.bits === 32);
}

/** Pushes a thread's operand, as bits. */
function pushable(e: LaneEmitter, arg: Arg): (lane: number) => void {
  const { code } = e;
  if (arg.kind === 'integer')
    return () => {
      code.i32(Number(BigInt.asIntN(32, arg.value)));
    };
  const type = arg.kind === 'register' ? arg.register.type : B32;
  const lanes = e.temp('v128');
  e.pushLanes(arg, type);
  code.set(lanes);
  return (lane) => {
    code.get(lanes).lane('i32x4.extract_lane', lane);
  };
}
