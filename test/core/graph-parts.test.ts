/**
 * Objects that a graph uses: they stay as long as the graph, and a graph with a closed one is
 * refused.
 */
import { f32, u32 } from 'async-cuda/core';
import type { Graph, Texture } from 'async-cuda/core';
import { describe, expect, test } from 'vitest';

import { collectGarbage } from './garbage.js';
import { TEXELS } from './kernels/texels.js';
import { WAITING } from './kernels/waiting.js';
import { Gate, failure, onDevice, stillPending } from './test-device.js';
import type { TestDevice } from './test-device.js';

/** `put` writes 333 to its argument; `variable` is a variable of the module. */
const PUT = `.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 variable = 5;
.visible .entry put(.param .u64 word) {
  .reg .b64 %a; .reg .b32 %r;
  ld.param.u64 %a, [word]; cvta.to.global.u64 %a, %a; mov.u32 %r, 333; st.global.u32 [%a], %r; ret;
}`;
const ONE = { grid: 1, block: 1 } as const;

const live = async ({ device }: TestDevice): Promise<number> => (await device.stats()).live.buffers;

onDevice('what a graph is made of', (host) => {
  describe('and that the program no longer references', () => {
    test('a buffer stays until the graph is closed', async () => {
      using out = host.device.alloc(u32, 4);
      const before = await live(host);
      const graph = await (async () => {
        const forgotten = host.device.alloc(u32, 4);
        return host.stream.capture(() => {
          forgotten.fill(host.stream, 5);
          out.copyFrom(host.stream, forgotten);
        });
      })();
      await collectGarbage();
      await graph.launch(host.stream);
      expect([...(await out.read(host.stream))]).toEqual([5, 5, 5, 5]);
      expect(await live(host)).toBe(before + 1);
      await graph.close();
      await host.stream.finished();
      expect(await live(host)).toBe(before);
    });

    test('a buffer stays while the graph is made', async () => {
      using out = host.device.alloc(u32, 4);
      let goOn!: () => void;
      const started = new Promise<void>((resolve) => {
        void host.stream.call(() => {
          resolve();
          return new Promise<void>((done) => (goOn = done));
        });
      });
      const captured = (() => {
        const forgotten = host.device.alloc(u32, 4);
        return host.stream.capture(() => {
          forgotten.fill(host.stream, 6);
          out.copyFrom(host.stream, forgotten);
        });
      })();
      await started;
      await collectGarbage();
      goOn();
      await using graph = await captured;
      await collectGarbage();
      await graph.launch(host.stream);
      expect((await out.read(host.stream))[0]).toBe(6);
    });

    test('page-locked memory stays', async () => {
      using out = host.device.alloc(u32, 4);
      await using graph = await (async () => {
        const forgotten = await host.device.pinned(u32, 4);
        forgotten.view().fill(8);
        return host.stream.capture(() => {
          out.write(host.stream, forgotten);
        });
      })();
      await collectGarbage();
      await graph.launch(host.stream);
      expect([...(await out.read(host.stream))]).toEqual([8, 8, 8, 8]);
    });

    test('managed memory stays', async () => {
      const put = (await host.load(PUT)).kernel('put');
      await using graph = await (async () => {
        const forgotten = await host.device.managed(u32, 4);
        return host.stream.capture(() => {
          put.launch(host.stream, ONE, forgotten);
        });
      })();
      await collectGarbage();
      await graph.launch(host.stream);
    });

    test('objects of an update stay, and those that it replaces are freed', async () => {
      using out = host.device.alloc(u32, 4);
      const capture = (value: number): Promise<Graph> => {
        const forgotten = host.device.alloc(u32, 4);
        return host.stream.capture(() => {
          forgotten.fill(host.stream, value);
          out.copyFrom(host.stream, forgotten);
        });
      };
      const before = await live(host);
      await using graph = await capture(1);
      {
        await using other = await capture(2);
        await graph.update(other);
      }
      await collectGarbage();
      await graph.launch(host.stream);
      expect((await out.read(host.stream))[0]).toBe(2);
      expect(await live(host)).toBe(before + 1);
    });

    test('the image of a texture stays as long as that is open', async () => {
      const fetch = (await host.load(TEXELS)).kernel('fetch2d');
      using at = host.device.alloc(f32, 4);
      using out = host.device.alloc(f32, 4);
      await at.fill(host.stream, 0.5);
      const before = await live(host);
      let texture: Texture | undefined = await (async () => {
        const image = host.device.alloc2D(f32, { width: 4, height: 4 });
        image.fill(host.stream, 6);
        return host.device.createTexture(image);
      })();
      await collectGarbage();
      await fetch.launch(host.stream, ONE, texture, at, out, 1);
      expect((await out.read(host.stream))[0]).toBe(6);
      expect(await live(host)).toBe(before + 1);
      await texture.close();
      texture = undefined;
      await collectGarbage();
      await host.stream.finished();
      expect(await live(host)).toBe(before);
    });
  });

  describe('and that is closed', () => {
    test('a texture: a launch is refused, also where another took its handle', async () => {
      const fetch = (await host.load(TEXELS)).kernel('fetch2d');
      using at = host.device.alloc(f32, 4);
      using out = host.device.alloc(f32, 4);
      using image = host.device.alloc2D(f32, { width: 4, height: 4 });
      using other = host.device.alloc2D(f32, { width: 4, height: 4 });
      await at.fill(host.stream, 0.5);
      image.fill(host.stream, 6);
      await other.fill(host.stream, 99);
      const texture = await host.device.createTexture(image);
      await using graph = await host.stream.capture(() => {
        fetch.launch(host.stream, ONE, texture, at, out, 1);
      });
      await graph.launch(host.stream);
      expect((await out.read(host.stream))[0]).toBe(6);
      await texture.close();
      await using _inItsPlace = await host.device.createTexture(other);
      const error = await failure(() => graph.launch(host.stream));
      expect(error.code).toBe('ERR_CUDA_DISPOSED');
      expect(error.message).toMatch(/Texture<f32> of .*closed: capture it again/);
    });

    test('a surface: a launch is refused', async () => {
      const add = (await host.load(TEXELS)).kernel('add_one');
      await using array = await host.device.allocArray(f32, { width: 4, height: 1, surface: true });
      await array.write(host.stream, Float32Array.of(0, 1, 2, 3));
      const surface = await host.device.createSurface(array);
      await using graph = await host.stream.capture(() => {
        add.launch(host.stream, { grid: 1, block: 4 }, surface, 4);
      });
      await graph.launch(host.stream);
      await surface.close();
      expect(await failure(() => graph.launch(host.stream))).toMatchObject({
        code: 'ERR_CUDA_DISPOSED',
      });
    });

    test.each([1, 2])(
      'a module: a launch is refused, also where its kernel was launched before (%i)',
      async (launches) => {
        const module = await host.device.loadModule(PUT);
        const put = module.kernel('put');
        using x = host.device.alloc(u32, 1);
        for (let i = 0; i < 3; i++) put.launch(host.stream, ONE, x);
        await x.fill(host.stream, 1);
        await using graph = await host.stream.capture(() => {
          for (let i = 0; i < launches; i++) put.launch(host.stream, ONE, x);
        });
        put.launch(host.stream, ONE, x);
        await graph.launch(host.stream);
        await module.close();
        const error = await failure(() => graph.launch(host.stream));
        expect(error.code).toBe('ERR_CUDA_DISPOSED');
        expect(error.message).toContain('Module(put), closed: capture it again');
      },
    );

    test('a launch within a capture is refused', async () => {
      using x = host.device.alloc(u32, 1);
      await using inner = await host.stream.capture(() => {
        x.fill(host.stream, 1);
      });
      const error = await failure(() =>
        host.stream.capture(() => {
          inner.launch(host.stream);
        }),
      );
      expect(error.code).toBe('ERR_CUDA_CAPTURE');
      expect(error.message).toContain(
        'launching a graph is not possible while the stream is being captured',
      );
    });

    test('a module whose variable is in the graph: a launch is refused', async () => {
      const module = await host.device.loadModule(PUT);
      const variable = (await module.global('variable')).reinterpret(u32);
      await using graph = await host.stream.capture(() => {
        variable.fill(host.stream, 9);
      });
      await graph.launch(host.stream);
      await module.close();
      expect(await failure(() => graph.launch(host.stream))).toMatchObject({
        code: 'ERR_CUDA_DISPOSED',
      });
    });

    test('a module is unloaded when launches of the graph are over, not sooner', async () => {
      const gate = await Gate.of(await host.load(WAITING));
      const hold = (await host.load(WAITING)).kernel('hold');
      const module = await host.device.loadModule(PUT);
      const put = module.kernel('put');
      using stream = host.device.createStream();
      using other = host.device.createStream();
      using x = host.device.alloc(u32, 1);
      using y = host.device.alloc(u32, 1);
      await x.fill(stream, 1);
      await using graph = await stream.capture(() => {
        hold.launch(stream, ONE, x);
        put.launch(stream, ONE, y);
      });
      await stream.finished();
      const launched = graph.launch(other);
      const closed = module.close();
      expect(await stillPending(closed)).toBe(true);
      await gate.open();
      await launched;
      await closed;
      expect((await y.read(stream))[0]).toBe(333);
    });
  });
});
