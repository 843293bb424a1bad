/** Calls of libraries in stream order: a stand-in records its arguments. */
import { CudaLibraryError, NativeLibrary, f32, u8 } from 'async-cuda/core';
import type {
  LibraryArgument,
  LibraryDeclaration,
  LibraryRow,
  LibraryStatuses,
  Stream,
} from 'async-cuda/core';
import * as fc from '../fast-check.js';
import { afterEach, describe, expect, test } from 'vitest';

import { StandInLibrary, whyNoStandIn } from './stand-in-library.js';
import { failure, onCpu, onDevice } from './test-device.js';

const TEXT = `
typedef struct { int width, height; } Size;
typedef struct { int x, y, width, height; } Rect;
typedef struct { uintptr_t stream; int device; double scale; uint8_t *data; } Context;

API int scalars(int32_t a, uint32_t b, float c, int64_t d, uint64_t e, double f, uintptr_t g) {
  note("scalars %d %u %.9g %lld %llu %.17g %llu", a, b, c, (long long)d,
    (unsigned long long)e, f, (unsigned long long)g);
  return answer();
}
API int structures(Size size, Rect rect, Context context, uintptr_t stream) {
  note("structures %d %d %d %d %d %d %d %.17g %d %d", size.width, size.height, rect.x, rect.y,
    rect.width, rect.height, context.device, context.scale, context.stream == stream,
    context.data != 0);
  return answer();
}
API int host(const uint8_t value[3], const double matrix[2][3], const uint8_t *const planes[3]) {
  note("host %d %d %d %.17g %.17g %lld %lld", value[0], value[1], value[2], matrix[0][0],
    matrix[1][2], (long long)(planes[1] - planes[0]), (long long)(planes[2] - planes[0]));
  return answer();
}
API int work(uintptr_t source, uintptr_t target, uintptr_t stream, int number) {
  note("work %d %d %d %llx", number, source != 0, target != 0, (unsigned long long)stream);
  return answer();
}
API size_t count(int more) { return ((size_t)1 << 40) + more; }
API const uint8_t *build(void) { static const uint8_t bytes[] = {1, 2, 3}; return bytes; }
API int version(int *major, int *minor) {
  *major = 12;
  *minor = 4;
  return answer();
}
`;

const statuses: LibraryStatuses['statuses'] = {
  [-5]: { name: 'LIB_BAD_ARGUMENT', text: 'an argument is wrong' },
  [-9]: { name: 'LIB_NO_MEMORY', means: 'memory' },
  [-27]: { name: 'LIB_OLD_DEVICE', means: 'unsupported' },
  7: { name: 'LIB_SLOW', harmless: true },
  8: { name: 'LIB_NOTHING_DONE' },
};

const row: LibraryRow = {
  name: 'the stand-in',
  base: 'standin',
  versions: [],
  windows: [],
  from: 'package',
  environment: [],
};

function declaration(path: string, more: Partial<LibraryDeclaration> = {}): LibraryDeclaration {
  return {
    name: 'Stand-in 1.2',
    statuses,
    anyDevice: true,
    files: [
      {
        library: row,
        path,
        functions: {
          scalars: { args: ['i32', 'u32', 'f32', 'i64', 'u64', 'f64', 'object'] },
          structures: {
            args: [
              { struct: { width: 'i32', height: 'i32' } },
              { struct: { x: 'i32', y: 'i32', width: 'i32', height: 'i32' } },
              { struct: { stream: 'stream', device: 'i32', scale: 'f64', data: 'in' } },
              'stream',
            ],
          },
          host: { args: [{ host: 3 }, { host: 48 }, { pointers: 'in', count: 3 }] },
          work: { args: ['in', 'out', 'stream', 'i32'] },
          unrecordable: { args: [], notCaptured: 'it allocates memory' },
          version: { args: [{ host: 4 }, { host: 4 }], notCaptured: 'it waits' },
          count: { args: ['i32'], returns: 'u64' },
          build: { args: [], returns: { host: 3 } },
          missing: { args: [] },
        },
      },
    ],
    ...more,
  };
}

const i32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const u32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const small = fc.integer({ min: 0, max: 255 });

/** Holds later work of the stream until the returned function is called. */
function hold(stream: Stream): { held: PromiseLike<void>; release: () => void } {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { held: stream.call(() => released), release };
}

if (whyNoStandIn !== undefined) describe.skip(whyNoStandIn, () => undefined);
else
  onDevice('NativeLibrary', (on) => {
    const standIn = new StandInLibrary('library', TEXT);
    const open = (more?: Partial<LibraryDeclaration>): Promise<NativeLibrary> =>
      NativeLibrary.open(on.device, declaration(standIn.path, more));
    afterEach(() => {
      standIn.answers(0);
      standIn.take();
    });

    test('numbers of every type arrive unchanged', { tags: 'random' }, async () => {
      const library = await open();
      await fc.assert(
        fc.asyncProperty(
          i32,
          u32,
          fc.float({ noNaN: true }),
          fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
          fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
          fc.double({ noNaN: true }),
          fc.maxSafeNat(),
          async (a, b, c, d, e, f, g) => {
            await library.call(on.stream, 'scalars', [a, b, c, d, e, f, g]);
            const [line = ''] = standIn.take();
            const words = line.replaceAll('inf', 'Infinity').split(' ').slice(1);
            const given = [a, b, c, d, e, f, g];
            expect(
              words.map((word, i) =>
                typeof given[i] === 'bigint'
                  ? BigInt(word)
                  : i === 2
                    ? Math.fround(Number(word))
                    : Number(word),
              ),
            ).toEqual(given);
          },
        ),
        { numRuns: 60 },
      );
    });

    test(
      'structures arrive by value, with the stream and addresses in their fields',
      { tags: 'random' },
      async () => {
        const library = await open();
        using buffer = on.device.alloc(u8, 16);
        await fc.assert(
          fc.asyncProperty(
            i32,
            i32,
            i32,
            fc.double({ noNaN: true, min: -1000, max: 1000 }),
            async (a, b, c, scale) => {
              await library.call(on.stream, 'structures', [
                [a, b],
                [c, b, a, c],
                [a, scale, buffer],
              ]);
              const words = standIn
                .take()
                .flatMap((line) => line.split(' ').slice(1))
                .map(Number);
              expect(words).toEqual([a, b, c, b, a, c, a, scale, 1, 1]);
            },
          ),
          { numRuns: 30 },
        );
      },
    );

    test(
      'bytes of the host arrive, and addresses in arrays of the host',
      { tags: 'random' },
      async () => {
        const library = await open();
        using buffer = on.device.alloc(u8, 600);
        await fc.assert(
          fc.asyncProperty(
            small,
            small,
            small,
            fc.integer(),
            fc.integer({ min: 0, max: 599 }),
            async (a, b, c, number, offset) => {
              const matrix = new Float64Array([number, 0, 0, 0, 0, -number]);
              await library.call(on.stream, 'host', [
                new Uint8Array([a, b, c]),
                matrix,
                [buffer, { buffer, byteOffset: offset }, buffer],
              ]);
              const [line = ''] = standIn.take();
              expect(line.split(' ').slice(1).map(Number)).toEqual([
                a,
                b,
                c,
                number,
                -number,
                offset,
                0,
              ]);
            },
          ),
          { numRuns: 30 },
        );
      },
    );

    test('each call receives its stream, and null is the null pointer', async () => {
      const library = await open();
      using other = on.device.createStream();
      using buffer = on.device.alloc(u8, 4);
      await library.call(on.stream, 'work', [buffer, null, 1]);
      await library.call(other, 'work', [null, buffer, 2]);
      await library.call(on.stream, 'work', [null, null, 3]);
      const lines = standIn.take().map((line) => line.split(' '));
      expect(lines.map((words) => words.slice(1, 4))).toEqual([
        ['1', '1', '0'],
        ['2', '0', '1'],
        ['3', '0', '0'],
      ]);
      expect(lines[0]![4]).toBe(lines[2]![4]);
      expect(lines[0]![4]).not.toBe(lines[1]![4]);
    });

    test("a status that is a failure rejects with the library's own name for it", async () => {
      const library = await open();
      standIn.answers(-5);
      const error = await failure(() => library.call(on.stream, 'work', [null, null, 1]));
      expect(error).toBeInstanceOf(CudaLibraryError);
      expect(error).toMatchObject({
        code: 'ERR_CUDA_LIBRARY',
        library: 'Stand-in 1.2',
        call: 'work',
        status: -5,
        statusName: 'LIB_BAD_ARGUMENT',
        operation: 'work of Stand-in 1.2',
        message: 'work of Stand-in 1.2 returned LIB_BAD_ARGUMENT (-5): an argument is wrong',
      });
      standIn.answers(-12345);
      await expect(library.call(on.stream, 'work', [null, null, 1])).rejects.toMatchObject({
        statusName: 'status -12345',
        status: -12345,
      });
    });

    test('out of memory and unsupported have error codes of their own', async () => {
      const library = await open();
      standIn.answers(-9);
      await expect(library.call(on.stream, 'work', [null, null, 1])).rejects.toMatchObject({
        code: 'ERR_CUDA_OUT_OF_MEMORY',
        statusName: 'LIB_NO_MEMORY',
      });
      standIn.answers(-27);
      await expect(library.call(on.stream, 'work', [null, null, 1])).rejects.toMatchObject({
        code: 'ERR_CUDA_UNSUPPORTED',
        statusName: 'LIB_OLD_DEVICE',
      });
    });

    test('a warning counts as success only where the table lists it as harmless', async () => {
      const library = await open();
      standIn.answers(7);
      await library.call(on.stream, 'work', [null, null, 1]);
      standIn.answers(8);
      await expect(library.call(on.stream, 'work', [null, null, 1])).rejects.toMatchObject({
        statusName: 'LIB_NOTHING_DONE',
      });
    });

    test('only the output of a failed call is undefined for later work', async () => {
      const library = await open();
      using source = on.device.alloc(f32, 4);
      using target = on.device.alloc(f32, 4);
      using last = on.device.alloc(f32, 4);
      await source.fill(on.stream, 1);
      await target.fill(on.stream, 2);
      standIn.answers(-5);
      const failed = library.call(on.stream, 'work', [source, target, 1]);
      standIn.answers(-5);
      await expect(failed).rejects.toMatchObject({ status: -5 });
      standIn.answers(0);
      standIn.take();
      await expect(library.call(on.stream, 'work', [target, last, 2])).rejects.toMatchObject({
        code: 'ERR_CUDA_UNDEFINED_CONTENTS',
        cause: { status: -5 },
      });
      expect(standIn.take()).toEqual([]);
      await expect(last.read(on.stream)).rejects.toMatchObject({
        code: 'ERR_CUDA_UNDEFINED_CONTENTS',
      });
      expect(await source.read(on.stream)).toEqual(new Float32Array(4).fill(1));
      await target.fill(on.stream, 3);
      await library.call(on.stream, 'work', [target, source, 3]);
      expect(standIn.take()).toHaveLength(1);
    });

    test('a call and work of another stream on the same memory wait for each other', async () => {
      const library = await open();
      using other = on.device.createStream();
      using buffer = on.device.alloc(u8, 4);
      await buffer.fill(on.stream, 0);
      const { held, release } = hold(on.stream);
      const first = library.call(on.stream, 'work', [null, buffer, 1]);
      const second = library.call(other, 'work', [buffer, null, 2]);
      const third = library.call(other, 'work', [null, null, 3]);
      await new Promise((resolve) => setTimeout(resolve, 30));
      expect(standIn.take()).toEqual([]);
      release();
      await Promise.all([held, first, second, third]);
      expect(standIn.take().map((line) => line.split(' ')[1])).toEqual(['1', '2', '3']);
    });

    test('memory is not freed before the call that uses it has been made', async () => {
      const library = await open();
      using other = on.device.createStream();
      const buffer = on.device.alloc(u8, 4);
      await buffer.fill(on.stream, 0);
      const { held, release } = hold(other);
      const call = library.call(other, 'work', [buffer, null, 1]);
      buffer.close();
      expect(() => library.call(other, 'work', [buffer, null, 2])).toThrow(
        /used after it was closed/,
      );
      release();
      await Promise.all([held, call]);
      expect(standIn.take().map((line) => line.split(' ').slice(1, 3))).toEqual([['1', '1']]);
    });

    test('a captured call is recorded in a graph, or refused where it cannot be', async () => {
      const library = await open();
      let refusal: unknown;
      const graph = await on.stream.capture((stream) => {
        library.call(stream, 'work', [null, null, 1]);
        try {
          library.call(stream, 'version', [new Uint8Array(4), new Uint8Array(4)]);
        } catch (error) {
          refusal = error;
        }
      });
      expect(standIn.take()).toHaveLength(1);
      expect(refusal).toMatchObject({
        code: 'ERR_CUDA_CAPTURE',
        message: expect.stringContaining('it waits') as string,
      });
      await graph.close();
    });

    test('a call outside of any stream returns what the function wrote to the host', async () => {
      const library = await open();
      const { value, hosts } = await library.ask('version', [new Int32Array(1), new Int32Array(1)]);
      expect(value).toBe(0);
      expect(hosts.flatMap((bytes) => [...bytes])).toEqual([12, 0, 0, 0, 4, 0, 0, 0]);
      expect(await library.ask('count', [7])).toEqual({ value: 2 ** 40 + 7, hosts: [] });
      expect(await library.ask('build', [])).toEqual({
        value: new Uint8Array([1, 2, 3]),
        hosts: [],
      });
      expect(() => library.call(on.stream, 'count', [7])).toThrow('returns no status');
      standIn.answers(-5);
      await expect(
        library.ask('version', [new Int32Array(1), new Int32Array(1)]),
      ).rejects.toMatchObject({
        code: 'ERR_CUDA_LIBRARY',
        call: 'version',
        statusName: 'LIB_BAD_ARGUMENT',
      });
    });

    test('a function that the installed version lacks is an error at the call', async () => {
      const library = await open();
      expect(library.has('work')).toBe(true);
      expect(library.has('missing')).toBe(false);
      expect(() => library.call(on.stream, 'missing', [])).toThrow(
        expect.objectContaining({
          code: 'ERR_CUDA_UNSUPPORTED',
          message: expect.stringContaining('Stand-in 1.2 has no function missing') as string,
        }) as Error,
      );
    });

    test('a file that is not a library is an error that names it', async () => {
      const error = await failure(() =>
        open({
          files: [{ library: row, path: '/nowhere/libnone.so', functions: { work: { args: [] } } }],
        }),
      );
      expect(error).toMatchObject({
        code: 'ERR_CUDA_NO_LIBRARY',
        message: expect.stringContaining('/nowhere/libnone.so: no such file') as string,
      });
    });

    test.each<[string, string, LibraryArgument[], string]>([
      ['too few', 'work', [null, null], 'expected 3, got 2'],
      ['a fraction', 'work', [null, null, 1.5], 'a whole number from -2147483648 to 2147483647'],
      [
        'a number beyond its type',
        'scalars',
        [0, -1, 0, 0, 0, 0, 0],
        'a whole number from 0 to 4294967295',
      ],
      ['a number for memory', 'work', [5, null, 1], 'a device buffer'],
      [
        'a structure with a field too few',
        'structures',
        [[1], [1, 2, 3, 4], [1, 2, null]],
        'a list of 2 values',
      ],
      [
        'bytes of another length',
        'host',
        [new Uint8Array(4), new Float64Array(6), [null, null, null]],
        'an array of 3 bytes',
      ],
      ['text for a number', 'scalars', [0, 0, 'x' as never, 0, 0, 0, 0], 'a number'],
    ])('wrong arguments are refused at the call: %s', async (_, name, args, message) => {
      const library = await open();
      expect(() => library.call(on.stream, name, args)).toThrow(
        expect.objectContaining({
          code: 'ERR_CUDA_INVALID_ARGUMENT',
          message: expect.stringContaining(message) as string,
        }) as Error,
      );
      expect(standIn.take()).toEqual([]);
    });

    test.runIf(onCpu)("a library of NVIDIA's is refused on a CPU device", async () => {
      await expect(open({ anyDevice: false })).rejects.toMatchObject({
        code: 'ERR_CUDA_UNSUPPORTED',
        message: expect.stringContaining('NVIDIA GPUs only') as string,
      });
    });
  });
