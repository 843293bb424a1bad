// Races of threads, blocks and streams, and accesses that are no races.

import { describe, expect, test } from 'vitest';
import type { CheckOptions, CheckReport } from '../../../ground/check-report.js';
import { CheckedDevice, kernelOf } from '../testing/checked-device.js';
import type { Shape } from '../testing/checked-device.js';

/** Puts the address of this thread's word into %r1, and that of the next thread's into %r2. */
const SHARED = `.shared .align 4 .u32 s[64];
mov.u32 %r9, s;
shl.b32 %r1, %r0, 2;
add.u32 %r2, %r1, 4;
and.b32 %r2, %r2, 127;
add.u32 %r1, %r1, %r9;
add.u32 %r2, %r2, %r9;`;

function run(
  body: string,
  shape: Shape,
  pointers = 0,
  check: boolean | CheckOptions = true,
): CheckedDevice {
  const device = new CheckedDevice(check).load(kernelOf(pointers, body));
  const params = Array.from({ length: pointers }, () => [device.words(0, 0, 0, 0)] as const);
  device.launch('k', params, shape);
  return device;
}

test('shared memory of another block of the cluster has its name', () => {
  const other =
    '.shared .align 4 .u32 s[64];\nmov.u32 %r9, s;\nmapa.shared::cluster.u32 %r8, %r9, 1;\n';
  const inCluster = (access: string): CheckedDevice => {
    const device = new CheckedDevice().load(
      kernelOf(1, `${other}${access}`).replace(') {', ') .reqnctapercluster 2, 1, 1 {'),
    );
    device.launch('k', [[device.words(0)]], { grid: 2, block: 2 });
    return device;
  };
  const memory = { space: 'shared', label: 's', offset: 8, bytes: 256 };
  expect(inCluster('st.shared::cluster.u32 [%r8+8], %r0;').fails()).toMatchObject([
    { kind: 'race', memory },
  ]);
  expect(inCluster('ld.shared::cluster.u32 %r3, [%r8+8];').fails()).toMatchObject([
    { kind: 'uninitialised', memory },
  ]);
});

describe('threads of a block', () => {
  test('a barrier orders them', () => {
    const device = run(
      `${SHARED}\nst.shared.u32 [%r1], %r0;\nbar.sync 0;\nld.shared.u32 %r3, [%r2];`,
      { block: 32 },
    );
    expect(device.fails()).toEqual([]);
  });

  test('a barrier that is missing', () => {
    // Lane 31 reads the word of lane 0, which has written it.
    const device = run(`${SHARED}\nst.shared.u32 [%r1], %r0;\nld.shared.u32 %r3, [%r9];`, {
      block: 32,
    });
    const [report, ...more] = device.fails();
    expect(more).toEqual([]);
    expect(report).toMatchObject({
      kind: 'race',
      place: { action: 'read', line: 17, thread: [1, 0, 0] },
      other: { action: 'write', line: 16, thread: [0, 0, 0] },
      memory: { space: 'shared', label: 's', offset: 0 },
      count: 31,
    });
  });

  test('one thread reads a word, then another writes it', () => {
    const device = run(
      `${SHARED}\nst.shared.u32 [%r1], %r0;\nbar.sync 0;\nld.shared.u32 %r3, ` +
        `[%r2];\nst.shared.u32 [%r1], %r3;`,
      { block: 32 },
    );
    const found = device
      .fails()
      .map(
        ({ place, other }) =>
          `${other!.action} ${other!.thread![0]}, ${place!.action} ${place!.thread![0]}`,
      );
    // Thread 0 writes what thread 31 reads after it; thread 1 writes what thread 0 has read before
    // it.
    expect(found.sort()).toEqual(['read 0, write 1', 'write 0, read 31']);
  });

  test('a half is written, then the other half, and then it is read', () => {
    const device = run(
      '.shared .align 4 .u16 s[64];\nmov.u32 %r1, s;\nshl.b32 %r2, %r0, 1;\nadd.u32 %r1, ' +
        '%r1, %r2;\nst.shared.u16 [%r1], %h0;\nsetp.eq.u32 %p0, %r0, 31;\n@%p0 ld.shared.u16 ' +
        '%h1, [s];',
      { block: 32 },
    );
    expect(device.fails()).toMatchObject([
      {
        kind: 'race',
        place: { action: 'read', thread: [31, 0, 0] },
        other: { action: 'write', thread: [0, 0, 0] },
      },
    ]);
  });

  test('accesses to different bytes of one word are no race', () => {
    const device = run(
      '.shared .align 4 .u8 s[64];\nmov.u32 %r1, s;\nadd.u32 %r1, %r1, %r0;\nst.shared.u8 ' +
        '[%r1], %h0;\nld.shared.u8 %h1, [%r1];',
      { block: 32 },
    );
    expect(device.fails()).toEqual([]);
  });

  test('atomics are no race', () => {
    const device = run(
      '.shared .align 4 .u32 s;\nsetp.eq.u32 %p0, %r0, 0;\n@%p0 st.shared.u32 [s], ' +
        '0;\nbar.sync 0;\natom.shared.add.u32 %r1, [s], 1;\nbar.sync 0;\nld.shared.u32 %r2, ' +
        '[s];',
      { block: 64 },
    );
    expect(device.fails()).toEqual([]);
  });

  test('an atomic and a plain access are a race', () => {
    const device = run(
      '.shared .align 4 .u32 s;\nsetp.eq.u32 %p0, %r0, 0;\n@%p0 st.shared.u32 [s], ' +
        '0;\nbar.sync 0;\natom.shared.add.u32 %r1, [s], 1;\nld.shared.u32 %r2, [s];',
      { block: 64 },
    );
    expect(device.fails()).toMatchObject([{ kind: 'race' }]);
  });

  test('bar.warp.sync orders its lanes', () => {
    const device = run(
      `${SHARED}\nst.shared.u32 [%r1], %r0;\nbar.warp.sync -1;\nld.shared.u32 %r3, [%r2];`,
      { block: 32 },
    );
    expect(device.fails()).toEqual([]);
  });

  test('bar.warp.sync does not order other warps', () => {
    const device = run(
      `${SHARED}\nst.shared.u32 [%r1], %r0;\nbar.warp.sync -1;\nld.shared.u32 %r3, [%r9+4];`,
      { block: 64 },
    );
    expect(device.fails()).toMatchObject([
      { kind: 'race', other: { thread: [1, 0, 0] }, place: { thread: [32, 0, 0] } },
    ]);
  });

  test('a shuffle orders nothing', () => {
    const device = run(
      `${SHARED}\nst.shared.u32 [%r1], %r0;\nshfl.sync.down.b32 %r5, %r0, 1, 31, ` +
        `-1;\nld.shared.u32 %r3, [%r9];`,
      { block: 32 },
    );
    expect(device.fails()).toMatchObject([{ kind: 'race' }]);
  });

  test('a named barrier with arrivals orders producers before consumers', () => {
    const body = `${SHARED}
setp.lt.u32 %p0, %r0, 32;
@%p0 st.shared.u32 [%r1], %r0;
@%p0 bar.arrive 1, 64;
@%p0 bra DONE;
bar.sync 1, 64;
ld.shared.u32 %r3, [%r9+4];
DONE:`;
    expect(run(body, { block: 64 }).fails()).toEqual([]);
  });

  // The destructor of a cuda::pipeline: the lane that counts its warp out is the last, and ends the
  // barriers of all.
  test(
    'to end an mbarrier that others have arrived at is no race, a plain access to ' +
      'its memory afterwards is one',
    () => {
      const ends = (after: string): readonly CheckReport[] =>
        run(
          `.shared .align 8 .b64 m;
setp.ne.u32 %p0, %r0, 0;
@!%p0 mbarrier.init.shared.b64 [m], 64;
bar.sync 0;
mbarrier.arrive.shared.b64 %rd5, [m];
shfl.sync.idx.b32 %r5, %r0, 0, 31, -1;
@!%p0 mbarrier.inval.shared.b64 [m];
${after}`,
          { block: 32 },
        ).fails();
      expect(ends('')).toEqual([]);
      expect(ends('setp.eq.u32 %p1, %r0, 1;\n@%p1 st.shared.u32 [m], %r0;')).toMatchObject([
        {
          kind: 'race',
          place: { action: 'write', thread: [1, 0, 0] },
          other: { thread: [0, 0, 0] },
        },
      ]);
    },
  );

  test('volatile accesses are strong', () => {
    const device = run(
      `${SHARED}\nst.volatile.shared.u32 [%r1], %r0;\nld.volatile.shared.u32 %r3, [%r9];`,
      { block: 32 },
    );
    expect(device.fails()).toEqual([]);
  });
});

describe('stores of the same value to the same place', () => {
  const store = (value: string): string => `st.global.u32 [%rd0], ${value};`;

  test('are reported, and fail nothing', () => {
    const device = run(store('7'), { block: 32 }, 1);
    expect(device.fails()).toEqual([]);
    expect(device.reports).toMatchObject([
      {
        kind: 'same-value',
        count: 31,
        place: { action: 'write', thread: [1, 0, 0] },
        other: { action: 'write', thread: [0, 0, 0] },
      },
    ]);
  });

  test('of two warps and of two blocks are reported likewise', () => {
    for (const shape of [{ block: 64 }, { grid: 2 }]) {
      const device = run(store('7'), shape, 1);
      expect(device.fails()).toEqual([]);
      expect(device.reports).toMatchObject([{ kind: 'same-value' }]);
    }
  });

  test('and a store of another value are a race', () => {
    const device = run(
      'setp.eq.u32 %p0, %r0, 31;\nselp.u32 %r1, 8, 7, %p0;\nst.global.u32 [%rd0], %r1;',
      { block: 32 },
      1,
    );
    expect(device.fails()).toMatchObject([{ kind: 'race', place: { thread: [31, 0, 0] } }]);
    expect(device.reports.map(({ kind }) => kind).sort()).toEqual(['race', 'same-value']);
  });

  test('fail with sameValue', () => {
    const device = run(store('7'), { block: 32 }, 1, { sameValue: true });
    expect(device.fails()).toMatchObject([{ kind: 'same-value' }]);
  });

  test('and a read are a race', () => {
    const device = run(
      `setp.eq.u32 %p0, %r0, 0;\n@%p0 ld.global.u32 %r2, [%rd0];\n${store('1')}`,
      { block: 32 },
      1,
    );
    expect(device.fails()).toMatchObject([
      { kind: 'race', place: { thread: [1, 0, 0] }, other: { thread: [0, 0, 0] } },
    ]);
  });

  test('a wide store is compared as a whole', () => {
    const device = run(
      'shl.b32 %r1, %r0, 4;\nand.b32 %r1, %r1, 16;\nst.global.v4.u32 [%rd0], {%r1, 1, 2, 3};',
      { block: 2 },
      4,
    );
    expect(device.fails()).toMatchObject([{ kind: 'race' }]);
  });
});

test('a race of two threads of a warp names the missing __syncwarp()', () => {
  const device = run(`${SHARED}\nst.shared.u32 [%r1], %r0;\nld.shared.u32 %r3, [%r9];`, {
    block: 32,
  });
  expect(device.fails()[0]?.message).toMatch(
    /^race of two threads of a warp at 0x[0-9a-f]+: .*__syncwarp\(\)/,
  );
});

describe('blocks of a launch', () => {
  const block = 'mov.u32 %r1, %ctaid.x;\nsetp.eq.u32 %p0, %r1, 0;\n';

  test('one writes what the other reads', () => {
    const device = run(
      `${block}@%p0 st.global.u32 [%rd0], %r0;\n@!%p0 ld.global.u32 %r2, [%rd0];`,
      { grid: 2 },
      1,
    );
    expect(device.fails()).toMatchObject([
      {
        kind: 'race',
        place: { action: 'read', block: [1, 0, 0] },
        other: { action: 'write', block: [0, 0, 0] },
      },
    ]);
  });

  test('relaxed atomics alone order nothing else', () => {
    const device = run(
      `${block}@%p0 st.global.u32 [%rd0], 1;\natom.global.add.u32 %r2, [%rd1], 1;\n@!%p0 ` +
        'ld.global.u32 %r2, [%rd0];',
      { grid: 2 },
      2,
    );
    expect(device.fails()).toMatchObject([{ kind: 'race' }]);
  });

  test('relaxed atomics between fences order other accesses', () => {
    const device = run(
      `${block}@%p0 st.global.u32 [%rd0], 1;\nmembar.gl;\natom.global.add.u32 %r2, [%rd1], ` +
        `1;\nmembar.gl;\n@!%p0 ld.global.u32 %r2, [%rd0];`,
      { grid: 2 },
      2,
    );
    expect(device.fails()).toEqual([]);
  });

  test('relaxed atomics between fences of a block do not order other blocks', () => {
    const device = run(
      `${block}@%p0 st.global.u32 [%rd0], 1;\nmembar.cta;\natom.global.add.u32 %r2, [%rd1], ` +
        `1;\nmembar.cta;\n@!%p0 ld.global.u32 %r2, [%rd0];`,
      { grid: 2 },
      2,
    );
    expect(device.fails()).toMatchObject([{ kind: 'race' }]);
  });

  test('atomics with release and acquire order other accesses', () => {
    const device = run(
      `${block}@%p0 st.global.u32 [%rd0], 1;\natom.acq_rel.gpu.global.add.u32 %r2, [%rd1], ` +
        `1;\n@!%p0 ld.global.u32 %r2, [%rd0];`,
      { grid: 2 },
      2,
    );
    expect(device.fails()).toEqual([]);
  });
});

describe('streams', () => {
  test('two fills of the same memory that nothing orders, of a word and of pages', () => {
    for (const bytes of [4, 3 * 65536 + 4]) {
      const device = new CheckedDevice();
      const { cu, stream } = device;
      const other = cu.cuStreamCreateWithPriority(1, 0);
      const address = cu.cuMemAlloc(bytes);
      cu.cuMemsetD8Async(address, 0, bytes, stream);
      cu.cuMemsetD8Async(address, 1, bytes, stream);
      cu.cuMemsetD8Async(address + bytes - 4, 0, 4, other);
      expect(device.fails()).toMatchObject([{ kind: 'race' }]);
    }
  });

  test('a kernel writes into pages that a fill has written as a whole', () => {
    for (const isOrdered of [true, false]) {
      const device = new CheckedDevice().load(kernelOf(1, 'st.global.u32 [%rd0+70000], %r0;'));
      const { cu, stream } = device;
      const address = cu.cuMemAlloc(200_000);
      const event = cu.cuEventCreate(2);
      cu.cuMemsetD8Async(address, 0, 200_000, stream);
      cu.cuEventRecord(event, stream);
      const other = cu.cuStreamCreateWithPriority(1, 0);
      if (isOrdered) cu.cuStreamWaitEvent(other, event, 0);
      device.launch('k', [[address]], { stream: other });
      expect(device.fails().map(({ kind }) => kind)).toEqual(isOrdered ? [] : ['race']);
    }
  });

  const store = kernelOf(1, 'st.global.u32 [%rd0], %r0;');

  function two(between: (device: CheckedDevice, other: number) => void): CheckedDevice {
    const device = new CheckedDevice().load(store);
    const other = device.cu.cuStreamCreateWithPriority(1, 0);
    const memory = device.words(0);
    device.launch('k', [[memory]]);
    between(device, other);
    device.launch('k', [[memory]], { stream: other });
    return device;
  }

  test('kernels of two streams race where nothing orders them', () => {
    expect(two(() => undefined).fails()).toMatchObject([
      { kind: 'race', place: { kernel: 'k' }, other: { kernel: 'k' } },
    ]);
  });

  test('kernels of two streams race although the first has ended by chance', () => {
    expect(
      two(({ cu }) => {
        while (cu.poll(1000));
      }).fails(),
    ).toMatchObject([{ kind: 'race' }]);
  });

  test('an event', () => {
    expect(
      two(({ cu, stream }, other) => {
        const event = cu.cuEventCreate(0);
        cu.cuEventRecord(event, stream);
        cu.cuStreamWaitEvent(other, event, 0);
      }).fails(),
    ).toEqual([]);
  });

  test('a wait of the host', () => {
    expect(two(({ cu, stream }) => cu.cuStreamSynchronize(stream)).fails()).toEqual([]);
  });

  test('an event that the host has seen', () => {
    expect(
      two(({ cu, stream }) => {
        const event = cu.cuEventCreate(0);
        cu.cuEventRecord(event, stream);
        while (cu.poll(1000));
        expect(cu.cuEventQuery(event)).toBe(0);
      }).fails(),
    ).toEqual([]);
  });

  test('a fill beside a kernel', () => {
    const device = new CheckedDevice().load(store);
    const memory = device.words(0);
    device.launch('k', [[memory]]);
    device.cu.cuMemsetD32Async(memory, 0, 1, device.cu.cuStreamCreateWithPriority(1, 0));
    expect(device.fails()).toMatchObject([{ kind: 'race', other: { kernel: 'k' } }]);
  });

  test('the default stream comes after blocking ones', () => {
    const device = new CheckedDevice().load(store);
    const memory = device.words(0);
    const blocking = device.cu.cuStreamCreateWithPriority(0, 0);
    device.launch('k', [[memory]], { stream: blocking });
    device.launch('k', [[memory]], { stream: 0 });
    device.launch('k', [[memory]], { stream: blocking });
    expect(device.fails()).toEqual([]);
  });
});
