/** Conditional nodes: the device decides which work one launch of a graph does. */
import {
  f32,
  graphCondition,
  graphIf,
  graphSwitch,
  graphWhile,
  i32,
  i64,
  input,
  prepareConditions,
  u32,
  u64,
  u8,
} from 'async-cuda/core';
import type { CoreDevice, DeviceBuffer, GraphCondition, Kernel, Stream } from 'async-cuda/core';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';

import { collectGarbage } from './garbage.js';
import { failure, onDevice, openTestDevice, testDevice } from './test-device.js';

/**
 * `add` adds to a word; `down` takes one from a word; `setTo` sets a condition to a number,
 * `setFrom` to a word.
 */
const PTX = `.version 7.0
.target sm_70
.address_size 64
.extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);
.visible .entry add(.param .u64 word, .param .u32 amount) {
  .reg .b32 %r<3>; .reg .b64 %a<2>;
  ld.param.u64 %a0, [word]; cvta.to.global.u64 %a0, %a0; ld.param.u32 %r1, [amount];
  ld.global.u32 %r0, [%a0]; add.u32 %r0, %r0, %r1; st.global.u32 [%a0], %r0; ret;
}
.visible .entry setTo(.param .u64 handle, .param .u32 value) {
  .reg .b32 %r<2>; .reg .b64 %a<2>;
  ld.param.u64 %a1, [handle]; ld.param.u32 %r0, [value];
  { .param .b64 p0; .param .b32 p1; st.param.b64 [p0+0], %a1; st.param.b32 [p1+0], %r0;
  call.uni cudaGraphSetConditional, (p0, p1); }
  ret;
}
.visible .entry setFrom(.param .u64 handle, .param .u64 word) {
  .reg .b32 %r<2>; .reg .b64 %a<2>;
  ld.param.u64 %a1, [handle]; ld.param.u64 %a0, [word]; cvta.to.global.u64 %a0, %a0;
  ld.global.u32 %r0, [%a0];
  { .param .b64 p0; .param .b32 p1; st.param.b64 [p0+0], %a1; st.param.b32 [p1+0], %r0;
  call.uni cudaGraphSetConditional, (p0, p1); }
  ret;
}`;

const ONE = { grid: 1, block: 1 } as const;

/** What the driver of the tested device supports, by its version, as a program would decide. */
const versionOf = (device: CoreDevice): number => {
  const [major, minor] = device.properties.driverVersion.split('.').map(Number);
  return device.kind === 'cpu' ? Infinity : major! * 100 + minor!;
};
const probe = await openTestDevice();
const version = versionOf(probe);
await probe.close();
const hasNodes = version >= 1204;
const hasSeveral = version >= 1208;
if (!hasSeveral)
  console.warn(
    `${testDevice}: the driver is of CUDA ${version / 100}: ` +
      `${hasNodes ? 'no switch' : 'no conditional nodes'}`,
  );

describe.skipIf(!hasNodes)('with conditional nodes', () => {
  onDevice('conditional nodes', (host) => {
    let stream: Stream;
    let other: Stream;
    let add: Kernel;
    let setTo: Kernel;
    let setFrom: Kernel;
    let words: DeviceBuffer<'i32'>;
    const word = (index: number): DeviceBuffer<'i32'> => words.slice(index, index + 1);
    const set = async (...values: number[]): Promise<void> => {
      await words.write(
        stream,
        Int32Array.from({ length: 8 }, (_, i) => values[i] ?? 0),
      );
    };
    const read = async (count = 4): Promise<number[]> =>
      [...(await words.read(stream))].slice(0, count);

    beforeAll(async () => {
      const module = await host.load(PTX);
      [add, setTo, setFrom] = [
        module.kernel('add'),
        module.kernel('setTo'),
        module.kernel('setFrom'),
      ];
      [stream, other] = [
        host.device.createStream({ label: 'recorded' }),
        host.device.createStream({ label: 'other' }),
      ];
      words = host.device.alloc(i32, 8, { label: 'words' });
      await prepareConditions(host.device);
    });
    afterEach(async () => {
      await set();
    });

    test('an if runs its body at each launch for which a kernel sets the condition', async () => {
      await using graph = await stream.capture(() => {
        const condition = graphCondition(stream);
        setFrom.launch(stream, ONE, condition, word(0));
        graphIf(stream, condition, (within) => {
          add.launch(within, ONE, word(1), 10);
        });
        add.launch(stream, ONE, word(2), 1);
      });
      for (const value of [1, 0, 5, 0]) {
        await set(value, ...(await read()).slice(1));
        await graph.launch(stream);
      }
      expect(await read()).toEqual([0, 20, 4, 0]);
      expect((await graph.nodeTypes()).sort()).toEqual(['conditional', 'kernel', 'kernel']);
    });

    test('a condition has its initial value at the start of each launch', async () => {
      await using graph = await stream.capture(() => {
        const condition = graphCondition(stream, { initial: 1 });
        graphWhile(stream, condition, (within) => {
          add.launch(within, ONE, word(0), 1);
          setTo.launch(within, ONE, condition, 0);
        });
      });
      for (let i = 0; i < 3; i++) graph.launch(stream);
      expect(await read(1)).toEqual([3]);
    });

    test('a while counts down a buffer that it reads', async () => {
      await using graph = await stream.capture(() => {
        graphWhile(stream, word(0), (within) => {
          add.launch(within, ONE, word(1), 2);
          add.launch(within, ONE, word(0), -1);
        });
        add.launch(stream, ONE, word(2), 1);
      });
      for (const turns of [5, 0, 300]) {
        await set(turns);
        await graph.launch(stream);
        expect(await read(), `${turns} turns`).toEqual([0, 2 * turns, 1, 0]);
      }
    });

    test.each([
      [0, [0, 0, 1]],
      [1, [0, 1, 0]],
      [-1, [0, 1, 0]],
      [2 ** 31 - 1, [0, 1, 0]],
    ])('an if with an else reads %i', async (value, expected) => {
      await using graph = await stream.capture(() => {
        graphIf(
          stream,
          word(0),
          (within) => {
            add.launch(within, ONE, word(1), 1);
            add.launch(within, ONE, word(0), -value);
          },
          (within) => {
            add.launch(within, ONE, word(2), 1);
          },
        );
      });
      await set(value);
      await graph.launch(stream);
      expect(await read(3)).toEqual(expected);
    });

    test.each([
      [0, 1],
      [1, 10],
      [2, 100],
      [3, 0],
      [-1, 0],
    ])('a switch reads %i', async (value, expected) => {
      await using graph = await stream.capture(() => {
        graphSwitch(
          stream,
          word(0),
          [1, 10, 100].map((amount) => (within: Stream) => {
            add.launch(within, ONE, word(1), amount);
          }),
        );
      });
      await set(value);
      await graph.launch(stream);
      expect((await read())[1]).toBe(expected);
    });

    test.each([
      ['u8', u8, 256],
      ['u64', u64, 2n ** 32n],
      ['i64', i64, -1n],
    ] as const)('a buffer of %s is read whole', async (_, dtype, largest) => {
      using flag = host.device.alloc(dtype as typeof u64, 2);
      const one = typeof largest === 'bigint' ? [0n, 1n] : [0, 1];
      await using graph = await stream.capture(() => {
        graphIf(
          stream,
          flag.slice(1, 2),
          (within) => {
            add.launch(within, ONE, word(0), 1);
          },
          (within) => {
            add.launch(within, ONE, word(1), 1);
          },
        );
        graphSwitch(stream, flag.slice(1, 2), [
          () => undefined,
          (within) => {
            add.launch(within, ONE, word(2), 1);
          },
        ]);
      });
      const launch = async (value: number | bigint): Promise<void> => {
        await flag.write(
          stream,
          (dtype.name === 'u8'
            ? Uint8Array.of(9, Number(value))
            : dtype.name === 'u64'
              ? BigUint64Array.of(9n, value as bigint)
              : BigInt64Array.of(9n, value as bigint)) as never,
        );
        await graph.launch(stream);
      };
      await launch(one[0]!);
      await launch(one[1]!);
      // A number whose lower half is zero is not taken for zero, nor as the index of a body.
      if (typeof largest === 'bigint') await launch(largest);
      expect(await read()).toEqual([typeof largest === 'bigint' ? 2 : 1, 1, 1, 0]);
    });

    test('a loop within a body runs as often as each of three rows states', async () => {
      await using graph = await stream.capture(() => {
        graphWhile(stream, word(0), (outer) => {
          add.launch(outer, ONE, word(1), 2);
          graphWhile(outer, word(1), (inner) => {
            add.launch(inner, ONE, word(2), 1);
            add.launch(inner, ONE, word(1), -1);
            graphIf(inner, word(1), (deep) => {
              add.launch(deep, ONE, word(3), 1);
            });
          });
          add.launch(outer, ONE, word(0), -1);
        });
      });
      await set(3);
      await graph.launch(stream);
      expect(await read()).toEqual([0, 0, 6, 3]);
    });

    test('branches of the capture precede and follow the node; a body has its own', async () => {
      using left = host.device.createStream();
      using right = host.device.createStream();
      await using graph = await stream.capture(() => {
        other.wait(stream);
        add.launch(other, ONE, word(0), 1);
        graphIf(stream, word(0), (within) => {
          left.wait(within);
          right.wait(within);
          add.launch(left, ONE, word(1), 1);
          add.launch(right, ONE, word(2), 1);
          within.wait(left);
          add.launch(within, ONE, word(1), 1);
        });
        // Tracked: the write of the body comes first.
        add.launch(other, ONE, word(2), 5);
      });
      await graph.launch(stream);
      expect(await read()).toEqual([1, 2, 6, 0]);
    });

    test('a launch counts as a use of the memory that its bodies use', async () => {
      using source = host.device.alloc(i32, 1);
      await using graph = await stream.capture(() => {
        graphIf(stream, word(0), (within) => {
          word(1).copyFrom(within, source);
        });
      });
      await set(1);
      for (let i = 0; i < 20; i++) {
        source.fill(other, i);
        graph.launch(stream);
        word(2).copyFrom(other, word(1));
      }
      await other.finished();
      expect(await read(3)).toEqual([1, 19, 19]);
      source.close();
      expect((await failure(() => graph.launch(stream))).message).toContain('was closed');
    });

    test('fills and copies in bodies', async () => {
      await using graph = await stream.capture(() => {
        graphWhile(stream, word(0), (within) => {
          words.slice(4, 8).fill(within, 7);
          words.slice(1, 3).copyFrom(within, words.slice(4, 6));
          add.launch(within, ONE, word(0), -1);
        });
      });
      await set(2);
      await graph.launch(stream);
      expect(await read(8)).toEqual([0, 7, 7, 0, 7, 7, 7, 7]);
    });

    test('the DOT text of the graph has the node and its bodies', async () => {
      await using graph = await stream.capture(() => {
        graphIf(stream, word(0), (within) => {
          add.launch(within, ONE, word(1), 1);
        });
      });
      const [plain, verbose] = [await graph.dot(), await graph.dot({ verbose: true })];
      expect(await graph.nodeTypes()).toEqual(['kernel', 'conditional']);
      expect(`${plain}${verbose}`.toLowerCase()).toMatch(/cond|\bif\b/);
    });

    test('update takes the parameters of another graph of the same shape', async () => {
      const make = (amount: number) =>
        stream.capture(() => {
          graphIf(stream, word(0), (within) => {
            add.launch(within, ONE, word(1), amount);
          });
        });
      await using graph = await make(1);
      await using changed = await make(100);
      await set(1);
      await graph.update(changed);
      await changed.close();
      await graph.launch(stream);
      expect((await read())[1]).toBe(100);
    });

    test('a capture of a stream that waits for the host records its bodies in order', async () => {
      const graphing = (async () => {
        let open: () => void = () => undefined;
        const gate = new Promise<void>((resolve) => {
          open = resolve;
        });
        const held = stream.call(() => gate);
        const recorded = stream.capture(() => {
          graphIf(
            stream,
            word(0),
            (within) => {
              add.launch(within, ONE, word(1), 1);
            },
            (within) => {
              add.launch(within, ONE, word(2), 1);
            },
          );
          add.launch(stream, ONE, word(3), 1);
        });
        await new Promise((resolve) => setTimeout(resolve, 20));
        open();
        await held;
        return recorded;
      })();
      await using graph = await graphing;
      await graph.launch(stream);
      expect(await read()).toEqual([0, 0, 1, 1]);
    });

    describe('what is refused', () => {
      const capturing = (record: () => void): Promise<Error & { code?: string }> =>
        failure(async () => (await stream.capture(record)).close());
      const use = (condition: GraphCondition): void => {
        graphIf(stream, condition, () => undefined);
      };

      test('outside of a capture', async () => {
        for (const call of [
          () => graphIf(stream, word(0), () => undefined),
          () => graphWhile(stream, word(0), () => undefined),
          () => graphSwitch(stream, word(0), [() => undefined]),
          () => graphCondition(stream),
        ]) {
          const error = await failure(call);
          expect([error.code, error.message]).toEqual([
            'ERR_CUDA_CAPTURE',
            expect.stringContaining('is not being captured'),
          ]);
        }
      });

      test('a condition of two nodes, or of a node of another capture', async () => {
        expect(
          (
            await capturing(() => {
              const condition = graphCondition(stream);
              use(condition);
              use(condition);
            })
          ).message,
        ).toContain('decides another node');
        expect(
          (
            await capturing(() => {
              const condition = graphCondition(stream);
              graphIf(stream, word(0), () => {
                use(condition);
              });
            })
          ).message,
        ).toContain('outside of the body');
        let kept: GraphCondition | undefined;
        await (
          await stream.capture(() => {
            kept = graphCondition(stream);
            use(kept);
          })
        ).close();
        expect((await failure(() => setTo.launch(stream, ONE, kept!, 1))).message).toContain(
          'only kernels that are recorded there',
        );
      });

      test('values that are not conditions', async () => {
        using floats = host.device.alloc(f32, 1);
        expect(
          (
            await capturing(() => {
              graphIf(stream, floats as never, () => undefined);
            })
          ).message,
        ).toContain('whole numbers or bool');
        expect(
          (
            await capturing(() => {
              graphIf(stream, 1 as never, () => undefined);
            })
          ).message,
        ).toContain('condition: expected');
        expect(
          (
            await capturing(() => {
              graphSwitch(stream, word(0), []);
            })
          ).message,
        ).toContain('bodies: expected a list of 1 to 128');
      });

      test('a body that waits, throws, allocates, or uses an outer capture’s stream', async () => {
        expect(
          (
            await capturing(() => {
              graphIf(stream, word(0), (async () => undefined) as never);
            })
          ).message,
        ).toContain('Remove async');
        expect(
          (
            await capturing(() => {
              graphIf(stream, word(0), () => {
                throw new Error('of mine');
              });
            })
          ).message,
        ).toBe('of mine');
        expect(
          (
            await capturing(() => {
              graphIf(stream, word(0), (within) => {
                host.device.alloc(i32, 1, { stream: within });
              });
            })
          ).code,
        ).toBe('ERR_CUDA_CAPTURE');
        const around = await capturing(() => {
          other.wait(stream);
          add.launch(other, ONE, word(1), 1);
          graphIf(stream, word(0), () => {
            add.launch(other, ONE, word(1), 1);
          });
        });
        expect(around.message).toContain('is part of the capture around this body');
        // All of them can be used as before.
        await set(1);
        await using graph = await stream.capture(() => {
          other.wait(stream);
          graphIf(stream, word(0), () => {
            add.launch(stream, ONE, word(1), 1);
          });
          add.launch(other, ONE, word(1), 1);
        });
        await graph.launch(other);
        expect(await read(2)).toEqual([1, 2]);
      });
    });

    test.runIf(testDevice === 'cpu')('no handle is left over', async () => {
      const make = async (): Promise<void> => {
        await using graph = await stream.capture(() => {
          graphWhile(stream, word(0), () => {
            graphIf(
              stream,
              word(1),
              () => undefined,
              () => undefined,
            );
          });
        });
        await graph.launch(stream);
      };
      await make();
      // Otherwise garbage of earlier tests would be collected during this one.
      await collectGarbage();
      const before = host.device.runtime.handles.count;
      for (let i = 0; i < 20; i++) await make();
      expect(host.device.runtime.handles.count).toBe(before);
    });
  });

  test('a kernel declares a condition as a 64-bit parameter', async () => {
    await using device = await openTestDevice();
    const module = await device.loadModule(PTX);
    const setTo = module.kernel('setTo', [input(u64), u32]);
    using buffer = device.alloc(i32, 1);
    await using graph = await device.stream.capture(() => {
      const condition = graphCondition(device.stream);
      setTo.launch(device.stream, ONE, condition, 1);
      graphIf(device.stream, condition, (within) => {
        buffer.fill(within, 3);
      });
    });
    buffer.fill(device.stream, 0);
    await graph.launch(device.stream);
    expect((await buffer.read(device.stream))[0]).toBe(3);
  });

  test('a buffer whose reading kernel is not loaded yet, with what to write', async () => {
    await using device = await openTestDevice();
    using buffer = device.alloc(i32, 1);
    expect(
      (
        await failure(() =>
          device.stream.capture(() => {
            graphIf(device.stream, buffer, () => undefined);
          }),
        )
      ).message,
    ).toContain('await prepareConditions(device)');
  });
});

describe('on drivers that lack them', () => {
  const opened = async (
    without: string,
    use: (device: CoreDevice) => Promise<void>,
  ): Promise<void> => {
    process.env['ASYNC_CUDA_WITHOUT'] = without;
    try {
      await using device = await openTestDevice();
      delete process.env['ASYNC_CUDA_WITHOUT'];
      await use(device);
    } finally {
      delete process.env['ASYNC_CUDA_WITHOUT'];
    }
  };

  test('without conditional nodes the error names the version that has them', () =>
    opened('conditionals', async (device) => {
      const error = await failure(() => prepareConditions(device));
      expect([error.code, error.message]).toEqual([
        'ERR_CUDA_UNSUPPORTED',
        expect.stringContaining('needs a driver of CUDA 12.4'),
      ]);
      using flag = device.alloc(i32, 1);
      expect(
        (
          await failure(() =>
            device.stream.capture(() => {
              graphIf(device.stream, flag, () => undefined);
            }),
          )
        ).code,
      ).toBe('ERR_CUDA_UNSUPPORTED');
    }));

  test.skipIf(!hasNodes)('without switch and else a buffer’s condition becomes several nodes', () =>
    opened('switches', async (device) => {
      await prepareConditions(device);
      const { stream } = device;
      const add = (await device.loadModule(PTX)).kernel('add');
      using words = device.alloc(i32, 4);
      const word = (index: number): DeviceBuffer<'i32'> => words.slice(index, index + 1);
      await using graph = await stream.capture(() => {
        // The second condition does not depend on what the first body writes to the word.
        graphIf(
          stream,
          word(0),
          (within) => {
            word(0).fill(within, 0);
            add.launch(within, ONE, word(1), 1);
          },
          (within) => {
            add.launch(within, ONE, word(2), 1);
          },
        );
        graphSwitch(
          stream,
          word(3),
          [1, 2].map((next) => (within: Stream) => {
            word(3).fill(within, next);
            add.launch(within, ONE, word(1), 10 * next);
          }),
        );
      });
      expect((await graph.nodeTypes()).filter((type) => type === 'conditional')).toHaveLength(4);
      await words.write(stream, Int32Array.of(5, 0, 0, 0));
      await graph.launch(stream);
      expect([...(await words.read(stream))]).toEqual([0, 11, 0, 1]);
      await graph.launch(stream);
      expect([...(await words.read(stream))]).toEqual([0, 31, 1, 2]);
      const error = await failure(() =>
        stream.capture(() => {
          graphSwitch(stream, graphCondition(stream), [() => undefined]);
        }),
      );
      expect([error.code, error.message]).toEqual([
        'ERR_CUDA_UNSUPPORTED',
        expect.stringContaining('needs a driver of CUDA 12.8'),
      ]);
    }),
  );
});
