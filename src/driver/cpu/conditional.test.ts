/**
 * Conditional nodes of the embedded device: which body runs, how often, and what a graph with such
 * nodes refuses.
 */
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';

import { openCpu } from './open.js';
import { messageOf, packParams, resultOf } from './testing/open-fake.js';

/**
 * `down` decrements a word and sets the condition to the result; `add` adds to a word; `set` sets
 * the condition.
 */
const PTX = `.version 8.3
.target sm_80
.address_size 64
.extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);
.visible .entry down(.param .u64 word, .param .u64 handle) {
  .reg .b32 %r<3>; .reg .b64 %a<3>;
  ld.param.u64 %a0, [word]; ld.param.u64 %a1, [handle]; ld.global.u32 %r0, [%a0];
  sub.u32 %r0, %r0, 1; st.global.u32 [%a0], %r0;
  { .param .b64 p0; .param .b32 p1; st.param.b64 [p0+0], %a1; st.param.b32 [p1+0], %r0;
  call.uni cudaGraphSetConditional, (p0, p1); }
  ret;
}
.visible .entry set(.param .u64 handle, .param .u32 value) {
  .reg .b32 %r<3>; .reg .b64 %a<3>;
  ld.param.u64 %a1, [handle]; ld.param.u32 %r0, [value];
  { .param .b64 p0; .param .b32 p1; st.param.b64 [p0+0], %a1; st.param.b32 [p1+0], %r0;
  call.uni cudaGraphSetConditional, (p0, p1); }
  ret;
}
.visible .entry add(.param .u64 word, .param .u32 amount) {
  .reg .b32 %r<3>; .reg .b64 %a<3>;
  ld.param.u64 %a0, [word]; ld.param.u32 %r1, [amount]; ld.global.u32 %r0, [%a0];
  add.u32 %r0, %r0, %r1; st.global.u32 [%a0], %r0;
  ret;
}`;

type Value = number | readonly [address: number];

function open() {
  const cu = openCpu({ memoryBytes: 64 * 2 ** 20, multiprocessors: 2, print: () => undefined });
  cu.cuInit(0);
  const context = cu.cuDevicePrimaryCtxRetain(0);
  cu.cuCtxSetCurrent(context);
  const [stream, aside] = [
    cu.cuStreamCreateWithPriority(1, 0),
    cu.cuStreamCreateWithPriority(1, 0),
  ];
  const module = cu.cuModuleLoadDataEx(Buffer.from(PTX), {});
  const words = cu.cuMemAllocManaged(64, 1);
  const view = cu.hostView(words, 64);
  const seen = new Int32Array(view.buffer, view.byteOffset, 16);
  const launch = (name: string, on: number, ...values: Value[]): void => {
    const params = packParams(values);
    cu.cuLaunchKernel(
      cu.cuModuleGetFunction(module, name),
      1,
      1,
      1,
      1,
      1,
      1,
      0,
      on,
      params,
      0,
      params.byteLength,
    );
  };
  const word = (index: number): readonly [number] => [words + 4 * index];
  const wide = (handle: bigint): readonly [number] => [Number(handle)];
  /** Creates a condition of the graph that is being captured on `on`. */
  const condition = (on = stream, first = 0): bigint =>
    cu.cuGraphConditionalHandleCreate(cu.cuStreamGetCaptureInfo(on).graph!, context, first, 1);
  /** Adds the next node of the capture on `on`, with its bodies. */
  const conditional = (
    handle: bigint,
    type: number,
    bodies: readonly ((on: number) => void)[],
    on = stream,
  ): number[] => {
    const { graph, dependencies } = cu.cuStreamGetCaptureInfo(on);
    const added = cu.cuGraphAddNode(graph!, dependencies!, {
      handle,
      type,
      size: bodies.length,
      ctx: context,
    });
    cu.cuStreamUpdateCaptureDependencies(on, [added.node], 1);
    bodies.forEach((body, index) => {
      const within = cu.cuStreamCreateWithPriority(1, 0);
      cu.cuStreamBeginCaptureToGraph(within, added.bodies[index]!, [], 2);
      body(within);
      expect(cu.cuStreamEndCapture(within)).toBe(added.bodies[index]);
      cu.cuStreamDestroy(within);
    });
    return added.bodies;
  };
  const captured = (record: () => void): number => {
    cu.cuStreamBeginCapture(stream, 2);
    record();
    return cu.cuStreamEndCapture(stream);
  };
  const run = (exec: number): number[] => {
    cu.cuGraphLaunch(exec, stream);
    cu.cuStreamSynchronize(stream);
    return [...seen.subarray(0, 4)];
  };
  return {
    cu,
    context,
    stream,
    aside,
    seen,
    launch,
    word,
    wide,
    condition,
    conditional,
    captured,
    run,
  };
}

test('a while node runs its body until a kernel sets the condition to zero, in each launch', () => {
  const { cu, seen, launch, word, wide, condition, conditional, captured, run } = open();
  const graph = captured(() => {
    const handle = condition(undefined, 1);
    conditional(handle, 1, [
      (within) => {
        launch('add', within, word(1), 10);
        launch('down', within, word(0), wide(handle));
      },
    ]);
  });
  const exec = cu.cuGraphInstantiate(graph, 0);
  seen[0] = 5;
  expect(run(exec)).toEqual([0, 50, 0, 0]);
  // The default is assigned again: the body runs, though the last launch left zero.
  seen[0] = 2;
  expect(run(exec)).toEqual([0, 70, 0, 0]);
});

test.each([
  [0, [0, 7, 0]],
  [1, [7, 0, 0]],
  [9, [7, 0, 0]],
])(
  'an if node whose condition is %i runs the right body, and the next node comes after it',
  (value, expected) => {
    const { cu, stream, seen, launch, word, wide, condition, conditional, captured, run } = open();
    const exec = cu.cuGraphInstantiate(
      captured(() => {
        const handle = condition();
        launch('set', stream, wide(handle), value);
        conditional(handle, 0, [
          (within) => {
            launch('add', within, word(0), 7);
          },
          (within) => {
            launch('add', within, word(1), 7);
          },
        ]);
        launch('add', stream, word(3), 1);
      }),
      0,
    );
    expect(run(exec).slice(0, 3)).toEqual(expected);
    expect(seen[3]).toBe(1);
  },
);

test.each([
  [0, [1, 0, 0]],
  [2, [0, 0, 1]],
  [3, [0, 0, 0]],
  [0xffffffff, [0, 0, 0]],
])('a switch node whose condition is %i', (value, expected) => {
  const { cu, stream, launch, word, wide, condition, conditional, captured, run } = open();
  const exec = cu.cuGraphInstantiate(
    captured(() => {
      const handle = condition();
      launch('set', stream, wide(handle), value);
      conditional(
        handle,
        2,
        [0, 1, 2].map((index) => (within: number) => {
          launch('add', within, word(index), 1);
        }),
      );
    }),
    0,
  );
  expect(run(exec).slice(0, 3)).toEqual(expected);
});

test('conditional nodes within conditional nodes', () => {
  const { cu, seen, launch, word, wide, condition, conditional, captured, run } = open();
  const exec = cu.cuGraphInstantiate(
    captured(() => {
      const outer = condition(undefined, 1);
      conditional(outer, 1, [
        (within) => {
          const inner = condition(within);
          launch('add', within, word(2), 2);
          launch('down', within, word(2), wide(inner));
          conditional(
            inner,
            0,
            [
              (deep) => {
                launch('add', deep, word(1), 1);
              },
            ],
            within,
          );
          launch('down', within, word(0), wide(outer));
        },
      ]);
    }),
    0,
  );
  seen[0] = 4;
  seen[2] = -2;
  // Each turn makes the third word one larger, and -1, 0, 1, 2 are seen: all but 0 count.
  expect(run(exec)).toEqual([0, 3, 2, 0]);
});

test('the nodes of bodies are in the drawing of the graph, and in no list but their own', () => {
  const { cu, stream, launch, word, wide, condition, conditional, captured } = open();
  let bodies: number[] = [];
  const graph = captured(() => {
    const handle = condition();
    launch('set', stream, wide(handle), 1);
    bodies = conditional(handle, 2, [
      (within) => {
        launch('add', within, word(0), 1);
      },
      () => undefined,
    ]);
  });
  expect(cu.cuGraphGetNodes(graph).map((node) => cu.cuGraphNodeGetType(node))).toEqual([0, 13]);
  expect(bodies.map((body) => cu.cuGraphGetNodes(body).length)).toEqual([1, 0]);
  const path = join(tmpdir(), `async-cuda-conditional-${process.pid}.dot`);
  cu.cuGraphDebugDotPrint(graph, path, 0);
  const text = readFileSync(path, 'utf8');
  expect(text).toContain('switch (2 bodies)');
  expect(text.match(/subgraph cluster_/g)).toHaveLength(2);
});

test('a graph of the same shape replaces one, whose memory may then be freed', () => {
  const { cu, stream, seen, launch, word, wide, condition, conditional, captured, run } = open();
  const make = (amount: number, type = 0): number =>
    captured(() => {
      const handle = condition();
      launch('set', stream, wide(handle), 1);
      conditional(handle, type, [
        (within) => {
          launch('add', within, word(0), amount);
        },
      ]);
    });
  const first = make(1);
  const exec = cu.cuGraphInstantiate(first, 0);
  const second = make(100);
  expect(cu.cuGraphExecUpdate(exec, second).result).toBe(0);
  for (const graph of [first, second]) cu.cuGraphDestroy(graph);
  expect(run(exec)[0]).toBe(100);
  seen[0] = 0;
  const other = make(1, 2);
  expect(cu.cuGraphExecUpdate(exec, other).result).toBe(5);
  expect(run(exec)[0]).toBe(100);
});

test('what a conditional node cannot be made of is refused', () => {
  const { cu, context, stream, captured, condition, conditional, run } = open();
  const graph = captured(() => {
    const handle = condition();
    const { graph: own, dependencies } = cu.cuStreamGetCaptureInfo(stream);
    const add = (change: object): unknown =>
      resultOf(() =>
        cu.cuGraphAddNode(own!, dependencies!, {
          handle,
          type: 0,
          size: 1,
          ctx: context,
          ...change,
        }),
      );
    expect([
      add({ handle: 3n }),
      add({ type: 3 }),
      add({ size: 3 }),
      add({ type: 1, size: 2 }),
      add({ ctx: 77 }),
    ]).toEqual([
      ...Array<string>(4).fill('CUDA_ERROR_INVALID_VALUE'),
      'CUDA_ERROR_INVALID_CONTEXT',
    ]);
    expect(resultOf(() => cu.cuGraphConditionalHandleCreate(own!, context, 0, 2))).toBe(
      'CUDA_ERROR_INVALID_VALUE',
    );
    conditional(handle, 0, [
      (within) => {
        // A body cannot take another graph's condition, nor allocate.
        const inner = cu.cuStreamGetCaptureInfo(within);
        expect(
          resultOf(() =>
            cu.cuGraphAddNode(inner.graph!, [], {
              handle: condition(),
              type: 0,
              size: 1,
              ctx: context,
            }),
          ),
        ).toBe('CUDA_ERROR_INVALID_VALUE');
      },
    ]);
    expect(add({})).toBe('CUDA_ERROR_INVALID_VALUE');
  });
  expect(resultOf(() => cu.cuGraphClone(graph))).toBe('CUDA_ERROR_NOT_SUPPORTED');
  const exec = cu.cuGraphInstantiate(graph, 0);
  cu.cuStreamBeginCapture(stream, 2);
  expect(
    messageOf(() => {
      cu.cuGraphLaunch(exec, stream);
    }),
  ).toContain('a graph with conditional nodes cannot be part of another');
  expect(resultOf(() => cu.cuStreamEndCapture(stream))).toBe(
    'CUDA_ERROR_STREAM_CAPTURE_INVALIDATED',
  );
  expect(run(exec)).toEqual([0, 0, 0, 0]);
});

test('a number that is no condition is set without harm', () => {
  const { cu, stream, seen, launch, word, wide } = open();
  for (const handle of [0n, 3n, 8n, 2n ** 40n]) launch('set', stream, wide(handle), 5);
  launch('set', stream, word(0), 5);
  cu.cuStreamSynchronize(stream);
  expect([...seen]).toEqual(Array(16).fill(0));
});
