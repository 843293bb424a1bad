// Addresses in the shared memory of a cluster's blocks. All of them are ordinary addresses, and the
// shared memories of blocks are at equal distances: mapping from block to block is arithmetic.

import { CTX } from '../context.js';
import type { Emitter } from '../emit/emitter.js';
import { scalarType } from '../scalar-types.js';

const B32 = scalarType('b32');
const U32 = scalarType('u32');
const U64 = scalarType('u64');

/** Pushes an operand of 32 or 64 bits as an address. */
function pushAddress(e: Emitter, index: number): void {
  const type = e.type();
  e.push(e.arg(index), type.bits === 64 ? U64 : U32);
  if (type.bits !== 64) e.code.op('i64.extend_i32_u');
}

/**
 * Maps the address on the stack to the same place of another block, whose rank `pushRank` pushes.
 */
export function mapToRank(e: Emitter, pushRank: () => void): void {
  const { code } = e;
  const address = e.temp('i64');
  code.set(address).get(e.ctx).get(address);
  pushRank();
  e.call('map_to_rank');
}

export function mapAddress(e: Emitter): void {
  e.argCount(3);
  const type = e.type();
  pushAddress(e, 1);
  mapToRank(e, () => {
    e.push(e.arg(2), B32);
  });
  if (type.bits !== 64) e.code.op('i32.wrap_i64');
  e.pop(e.arg(0), type.bits === 64 ? U64 : U32);
}

export function blockRank(e: Emitter): void {
  e.argCount(2);
  e.code.get(e.ctx);
  pushAddress(e, 1);
  e.call('rank_of');
  e.pop(e.arg(0), B32);
}

/** The address for a block that does not exist: an access to it is a fault. */
const NOWHERE = 0n;

export const CLUSTER_FUNCTIONS = `
(func $cluster_blocks (param $ctx i32) (result i32) (local $word i32)
  (local.set $word (i32.load offset=${CTX.cluster} $ctx))
  (i32.mul (i32.mul (i32.add (i32.and $word 255) 1) (i32.add (i32.and (i32.shr_u $word 8) 255) 1))
    (i32.add (i32.and (i32.shr_u $word 16) 255) 1)))

;; The rank of the block to whose memory an address belongs; this block's own rank for an address in
;; no other block.
(func $rank_of (param $ctx i32) (param $address i64) (result i32) (local $stride $rank i32)
  (local $offset i64)
  (local.set $rank (i32.load offset=${CTX.clusterRank} $ctx))
  (local.set $stride (i32.load offset=${CTX.clusterStride} $ctx))
  (if (i32.eqz $stride) (then (return $rank)))
  (local.set $offset (i64.sub $address (i64.extend_i32_u
        (i32.sub (i32.load offset=${CTX.shared} $ctx) (i32.mul $rank $stride)))))
  (if (i64.ge_u $offset (i64.mul (i64.extend_i32_u $stride)
        (i64.extend_i32_u (call $cluster_blocks $ctx)))) (then (return $rank)))
  (i32.wrap_i64 (i64.div_u $offset (i64.extend_i32_u $stride))))

;; The beginning of the shared memory of the block to whose memory an address belongs.
(func $shared_of (param $ctx i32) (param $address i64) (result i32)
  (i32.add (i32.load offset=${CTX.shared} $ctx)
    (i32.mul (i32.sub (call $rank_of $ctx $address) (i32.load offset=${CTX.clusterRank} $ctx))
      (i32.load offset=${CTX.clusterStride} $ctx))))

;; The same offset in another block of the cluster.
(func $map_to_rank (param $ctx i32) (param $address i64) (param $rank i32) (result i64)
  (if (i32.ge_u $rank (call $cluster_blocks $ctx)) (then (return ${NOWHERE}L)))
  (i64.add $address (i64.mul (i64.extend_i32_u (i32.load offset=${CTX.clusterStride} $ctx))
    (i64.extend_i32_s (i32.sub $rank (call $rank_of $ctx $address))))))

;; Whether an address is in the shared memory of some block of the cluster.
(func $is_cluster_shared (param $ctx i32) (param $address i64) (result i32)
  (i64.lt_u (i64.sub $address (i64.extend_i32_u (call $shared_of $ctx $address)))
    (i64.extend_i32_u (i32.load offset=${CTX.sharedBytes} $ctx))))
`;
