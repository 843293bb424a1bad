// Barriers and warp operations that some threads do not reach.

import { expect, test } from 'vitest';
import { openCpu } from '../open.js';
import { messageOf } from '../testing/open-fake.js';
import { CheckedDevice, kernelOf } from '../testing/checked-device.js';

function reports(body: string, block: number) {
  const device = new CheckedDevice().load(kernelOf(0, body));
  device.launch('k', [], { block });
  return device.fails();
}

const HALF = 'setp.lt.u32 %p0, %r0, 16;\n';

test('part of the block has exited', () => {
  expect(reports(`${HALF}@%p0 ret;\nbar.sync 0;`, 64)).toMatchObject([
    { kind: 'divergent-barrier', place: { line: 11, thread: [16, 0, 0] } },
  ]);
});

test('one warp at two barriers', () => {
  expect(reports(`${HALF}@%p0 bra A;\nbar.sync 0;\nbra B;\nA: bar.sync 0;\nB:`, 32)).toMatchObject([
    { kind: 'divergent-barrier' },
  ]);
});

test('barrier.sync may be reached from two places', () => {
  expect(
    reports(`${HALF}@%p0 bra A;\nbarrier.sync 0;\nbra B;\nA: barrier.sync 0;\nB:`, 32),
  ).toEqual([]);
});

test('counts that differ', () => {
  expect(
    reports(
      'setp.lt.u32 %p0, %r0, 32;\n@%p0 bra A;\nbarrier.sync 1, 64;\nbra B;\nA: barrier.sync ' +
        '1, 32;\nB:',
      64,
    ).map(({ kind }) => kind),
  ).toContain('barrier-count');
});

test('a count that is no multiple of the warp', () => {
  expect(reports('mov.u32 %r1, 33;\nbar.sync 1, %r1;', 33)).toMatchObject([
    { kind: 'barrier-count' },
  ]);
});

test('a mask without the lane itself', () => {
  expect(reports('bar.warp.sync 0xfffffffe;', 32)).toMatchObject([
    { kind: 'warp-mask', place: { thread: [0, 0, 0] } },
  ]);
});

test('masks of one operation that differ', () => {
  expect(
    reports(
      `${HALF}selp.b32 %r1, -1, 0xffff00ff, %p0;\nshfl.sync.idx.b32 %r2, %r0, 0, 31, %r1;`,
      32,
    ).map(({ kind }) => kind),
  ).toContain('warp-mask');
});

test('a mask may name lanes that have exited, or do not exist', () => {
  expect(
    reports('setp.lt.u32 %p0, %r0, 4;\n@%p0 ret;\nshfl.sync.idx.b32 %r2, %r0, 0, 31, -1;', 20),
  ).toEqual([]);
});

test('a barrier that no block has', () => {
  expect(reports('mov.u32 %r1, 17;\nbar.sync %r1;', 32)).toMatchObject([
    { kind: 'barrier-count', place: { line: 10 }, count: 32 },
  ]);
  expect(reports('mov.u32 %r1, -1;\nbarrier.sync %r1, 32;', 32)).toMatchObject([
    { kind: 'barrier-count' },
  ]);
  expect(reports('mov.u32 %r1, 15;\nbar.sync %r1;', 32)).toEqual([]);
});

test('a shuffle from a lane that its mask does not name', () => {
  const shuffle = (mask: number, source: string, control = 31): string =>
    `setp.ge.u32 %p0, %r0, 8;\n@%p0 ret;\n${source}\nshfl.sync.idx.b32 %r2, %r0, %r1, ` +
    `${control}, ${mask};`;
  const [report] = reports(shuffle(255, 'mov.u32 %r1, 20;'), 32);
  expect(report).toMatchObject({ kind: 'warp-mask', place: { line: 12, thread: [0, 0, 0] } });
  expect(report!.message).toMatch('lane 20, which its mask 0xff does not name');
  expect(reports(shuffle(255, 'mov.u32 %r1, 7;'), 32)).toEqual([]);
  // Within a segment of the warp the number is relative to its first lane.
  expect(reports(shuffle(255, 'mov.u32 %r1, 20;', 0x181f), 32)).toEqual([]);
  expect(reports(shuffle(255, 'mov.u32 %r1, 12;', 0x1807), 32)).toEqual([]);
  // There is no lane after the last one, which may ignore its value.
  expect(reports(shuffle(255, 'add.u32 %r1, %r0, 1;'), 32)).toEqual([]);
});

const STUCK = `${HALF}@%p0 bra A;\nbarrier.sync 1;\nbra B;\nA: barrier.sync 2;\nB:`;

test('threads that wait for ever are described, in a report', () => {
  const [report] = reports(STUCK, 32);
  expect(report).toMatchObject({
    kind: 'deadlock',
    waits: [
      { threads: '0-15', line: 13, instruction: 'barrier.sync 2' },
      { threads: '16-31', line: 11, instruction: 'barrier.sync 1' },
    ],
  });
});

test('threads that wait for ever are described without the checker, too', () => {
  const cu = openCpu({ memoryBytes: 2 ** 24 });
  cu.cuInit(0);
  cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(0));
  const func = cu.cuModuleGetFunction(
    cu.cuModuleLoadDataEx(kernelOf(0, `${HALF}@%p0 bra A;\nbar.warp.sync -1;\nA: bar.sync 0;`), {}),
    'k',
  );
  cu.cuLaunchKernel(func, 1, 1, 1, 32, 1, 1, 0, 0, new Int32Array(2), 0, 0);
  expect(messageOf(() => cu.cuCtxSynchronize())).toContain(
    '16 threads from thread (0,0,0) on at PTX line 12 (bar.sync 0), 16 threads from thread ' +
      '(16,0,0) on at PTX line 11 (bar.warp.sync with mask 0xffffffff)',
  );
});
