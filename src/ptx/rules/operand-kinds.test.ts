// Operands that ptxas 13.5 accepts and rejects: registers, literals and results of every kind where
// an operand has a type of its own.

import { describe, expect, it } from 'vitest';
import { compilePtx } from '../index.js';
import { formKernel } from './form-cases.test-support.js';

const complaint = (instruction: string): string | undefined => {
  try {
    return compilePtx(formKernel(instruction, '9.0')).failures[0]?.error.message;
  } catch (error) {
    return (error as Error).message;
  }
};

const REFUSED: Readonly<Record<string, readonly string[]>> = {
  'singles where two halves stand': [
    'add.f16x2 %f1, %r1, %r2;',
    'add.f16x2 %r1, %f1, %r2;',
    'fma.rn.bf16x2 %r1, %r1, %f2, %r3;',
    'set.eq.f16x2.f16x2 %f1, %r1, %r2;',
    'set.eq.u32.f16x2 %f1, %r1, %r2;',
    'setp.eq.f16x2 %p1|%p2, %f1, %r2;',
    'neg.f16x2 %f1, %r2;',
    'cvt.rn.f16x2.f32 %f1, %f2, %f3;',
    'ex2.approx.f16x2 %f1, %r1;',
    'atom.global.add.noftz.f16x2 %f1, [%l1], %r1;',
    'red.global.add.noftz.f16x2 [%l1], %f1;',
    'cvt.rna.tf32.f32 %f1, %f2;',
  ],
  'floats where bits of another type stand': [
    'szext.wrap.u32 %r1, %r2, %f3;',
    'bmsk.wrap.b32 %f1, %r2, %r3;',
    'dp4a.u32.u32 %r1, %r2, 5, %f4;',
    'dp2a.lo.u32.u32 %r1, 0f3f800000, %r2, %r3;',
    'vadd.u32.u32.u32 %f1, %r1, %r2;',
    'vadd.u32.u32.u32 %r1, 0f3f800000, %r2;',
    'shfl.sync.idx.b32 %f1, %f2, %r3, %r2, %f1;',
    'bar.warp.sync %f1;',
    'bar.sync %f1;',
    'mapa.u64 %l1, %l2, %f1;',
    'mbarrier.arrive.shared.b64 %l1, [%r1], %f2;',
    'mbarrier.arrive.shared.b64 %d1, [%r1], %r2;',
    'mbarrier.init.shared.b64 [%r1], %f2;',
    'mbarrier.test_wait.shared.b64 %p1, [%r1], %d2;',
    'mbarrier.pending_count.b64 %f1, %l1;',
    'cvt.pack.sat.u8.s32.b32 %r1, %f1, %r2, %r3;',
    'st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %d1, [%r3];',
    'st.bulk.shared::cta [%r1], %d2, 0;',
  ],
  'operands that are not looked at when a kernel runs': [
    'nanosleep.u32 %l1;',
    'nanosleep.u32 %tid.x;',
    'createpolicy.cvt.L2.b64 %l1, %r2;',
    'createpolicy.range.global.L2::evict_last.b64 %l1, [%l2], %f1, %r2;',
    'createpolicy.fractional.L2::evict_last.b64 %d1;',
    'ld.global.L2::cache_hint.b32 %r1, [%l1], %d2;',
    'st.global.L2::cache_hint.b32 [%l1], %r1, %r2;',
    'atom.global.add.L2::cache_hint.u32 %r1, [%l1], %r2, _;',
    'cp.async.ca.shared.global [%r1], [%l1], 16, %r2, %l3;',
    'cp.async.wait_group;',
    'cp.async.bulk.prefetch.L2.global [%l1], %d1;',
    'cp.async.bulk.prefetch.L2.global [%l1], {%r1, %r2};',
    'ld.global.L2::cache_hint.u8 %h1, [%l1], %q1;',
    'createpolicy.fractional.L2::evict_last.b64 %l1, %h1;',
    'nanosleep.u32 shared;',
    'bar.arrive 1;',
    'ret 5;',
    'bra label, 5;',
  ],
  results: [
    'activemask.b32 5;',
    'activemask.b32 %p1;',
    'vote.sync.any.pred %r1, %p1, -1;',
    'vote.sync.ballot.b32 %p1, %p2, -1;',
    'vote.sync.ballot.b32 %r1|%p1, %p2, -1;',
    'match.any.sync.b32 shared, %r1, -1;',
    'match.any.sync.b32 %r1|%p1, %r1, -1;',
    'redux.sync.add.u32 %p1, %r1, -1;',
    'elect.sync %r1, -1;',
    'elect.sync _, -1;',
    'shfl.sync.idx.b32 _|%p1, %f2, %r3, %r2, %r1;',
    'shfl.sync.idx.b32 _, %f2, %r3, %r2, %r1;',
    'bar.red.popc.u32 %f1, 0, %p1;',
    'bar.red.and.pred %r1, 0, %p1;',
    'mbarrier.try_wait.shared.b64 _, [%r1], %l2;',
    'mbarrier.arrive.shared::cluster.b64 %l1, [%r1];',
    'movmatrix.sync.aligned.m8n8.trans.b16 5, %r1;',
    'ldmatrix.sync.aligned.m8n8.x1.shared.b16 %r1, [%r1];',
    'ldmatrix.sync.aligned.m8n8.x1.shared.b16 {5}, [%r1];',
    'elect.sync %p1|%p2, %r2;',
    'bar.red.or.pred %p1|%p2, 0, %p0;',
    'mbarrier.pending_count.b64 _, %l1;',
    'vadd.u32.u32.u32.add %r1.h0, %r2, %r3, %r4;',
  ],
  'predicates that are none': [
    'vote.sync.ballot.b32 %r1, shared+4, -1;',
    'setp.eq.and.u32 %p1, %r1, %r2, shared+4;',
  ],
  'registers of another width': [
    'cvta.global.u64 %l1, %r1;',
    'cvta.to.global.u64 %l1, %r1;',
    'cvta.shared.u64 %l1, %r1;',
    'cvt.rn.satfinite.e4m3x2.f32 %r1, %f1, %f2;',
    'cvt.rn.satfinite.e4m3x2.f32 %l1, %f1, %f2;',
    'cvt.rn.f16x2.e4m3x2 %r1, %r2;',
    'cvt.rn.satfinite.e2m1x2.f32 %h1, %f1, %f2;',
    'cvt.rs.satfinite.e4m3x4.f32 %l1, {%f1, %f2, %f3, %f4}, %r5;',
    'cvt.rs.satfinite.e2m1x4.f32 %r1, {%f1, %f2, %f3, %f4}, %r5;',
    'cvt.rz.ue8m0x2.f32 %r1, %f1, %f2;',
    'ld.global.v2.b32 {%r1, %l2}, [%l1];',
    'st.global.v2.b16 [%l1], {%r1, %h2};',
    'st.global.v2.b128 [%l1], {%q1, %q2};',
    'st.global.v2.b128 [%l1], {%l1, %l2};',
    'mov.b16 {%r9, %r10}, %h1;',
    'mov.b16 %h1, {%h1, %h2};',
    'mov.b32 %r1, {%h1, %h2, %h3, %h4};',
    'mov.b32 %r0, %tid;',
  ],
  'names of variables': [
    'cvta.to.shared.u64 %l1, shared;',
    'cvt.u64.u32 %l1, shared;',
    'alloca.u64 %l1, shared;',
    'stackrestore.u64 shared;',
    'isspacep.global %p1, shared;',
    'vadd.u32.u32.u32 %r1, shared+4, %r2;',
    'sub.f32.f16 %f0, shared+4, %f2;',
    'and.pred %p0, %p1, shared+4;',
  ],
  'literals where a register stands': [
    'cvt.rs.satfinite.e4m3x4.f32 %r1, {%f1, %f2, %f3, %f4}, 5;',
    'stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {5};',
    'movmatrix.sync.aligned.m8n8.trans.b16 %r1, 5;',
    'alloca.u64 %l1, %l2, 3;',
    'alloca.u64 %l1, %l2, 16777216;',
  ],
};

const TAKEN: readonly string[] = [
  'and.b32 %f1, %f1, %f2;',
  'popc.b32 %r1, %f1;',
  'prmt.b32 %f1, %r1, %r2, %r3;',
  'lop3.b32 %f1, %r1, %r2, %r3, 5;',
  'fns.b32 %r1, %r2, %r3, %f4;',
  'selp.b32 %f1, %r1, %r2, %p1;',
  'match.any.sync.b32 %r1, %f1, -1;',
  'shfl.sync.idx.b32 %f1, %f2, %f3, %f2, -1;',
  'shfl.sync.idx.b32 %r1|_, %f2, %r3, %r2, %r1;',
  'match.all.sync.b32 _|%p1, %r2, -1;',
  'elect.sync _|%p1, -1;',
  'setp.eq.u32 _|%p1, %r1, %r2;',
  'atom.global.add.u32 _, [%l1], %r1;',
  'vadd.u32.u32.u32 %r1, 5, %r2;',
  'bar.red.popc.u32 %r1, 0, 64, !%p1;',
  'barrier.cta.red.and.aligned.pred %p2, %r1, %r2, %p1;',
  'vote.sync.ballot.b32 %r1, 1, -1;',
  'ld.global.L2::cache_hint.b32 %r1, [%l1], 5;',
  'createpolicy.fractional.L2::evict_last.b64 %l1, %r1;',
  'isspacep.shared %p1, %r1;',
  'isspacep.shared %p1, shared+4;',
  'mapa.shared::cluster.u32 %r1, shared, %r2;',
  'cp.async.ca.shared.global.L2::cache_hint [%r1], [%l1], 16, %r2, %l3;',
  'cp.async.ca.shared.global.L2::cache_hint [%r1], [%l1], 16, %p2, %l3;',
  'cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster' +
    '.L2::cache_hint [%r1], [%l1], %r2, [%r3], %h1, %l2;',
  'mbarrier.arrive.shared.b64 _, [%r1];',
  'mbarrier.try_wait.shared.b64 %p1, [%r1], %l2, %r3;',
  'ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%f1}, [%r1];',
  'stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%f1};',
  'cvt.rs.f16x2.f32 %l1, %l2, %f2, %r2;',
  'cvt.pack.sat.u8.s32.b32 %l1, %l1, %r2, %f3;',
  'cvt.rn.f16x2.e2m1x2 %r1, %e1;',
  'alloca.u64 %l1, %l2, 4096;',
  'st.global.v2.f32 [%l1], {%r1, %f2};',
  'st.global.v2.b32 [%l1], {%l1, 5};',
  'vote.sync.ballot.b32 %f1, %p1, -1;',
  'shf.l.wrap.b32 %f1, %f2, %f3, %r4;',
  'mov.b32 %r1, {%e1, %e2, %e3, %e1};',
  'bar.red.popc.u32 %r0, 5, 1;',
  'cp.async.ca.shared.global.L2::cache_hint [%r1], [%l1], 16, 300;',
  'ld.global.b16 %f1, [%l1];',
  'st.global.b8 [%l1], %d1;',
];

describe('operands that ptxas rejects', () => {
  it.each(Object.entries(REFUSED))('%s', (_, instructions) => {
    expect(instructions.filter((instruction) => complaint(instruction) === undefined)).toEqual([]);
  });
});

it('operands that ptxas accepts', () => {
  expect(
    TAKEN.map((instruction) => [instruction, complaint(instruction)]).filter(
      ([, message]) => message !== undefined,
    ),
  ).toEqual([]);
});

it('the error for a register without a place names the operand', () => {
  expect(complaint('shfl.sync.idx.b32 %f1, %f2, %r3, %r2, %f1;')).toMatch(
    /^ptx:9:39: error: 'shfl\.sync\.idx\.b32' does not take this operand/,
  );
});
