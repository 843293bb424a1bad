/** Frames of videos from a script in place of ffmpeg, and from ffmpeg where it is installed. */
import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CudaArgumentError, CudaDisposedError, Device, u8 } from 'async-cuda';
import { CudaLibraryError } from 'async-cuda/core';
import { encodeFrames, frames } from 'async-cuda/images';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { failure, onDevice } from '../core/test-device.js';
import { RGB, RGB_BYTES, firstValues } from './frames.test-support.js';

/** FFMPEG is the path of an ffmpeg that is not on the PATH. */
const realFfmpeg = process.env['FFMPEG'] ?? 'ffmpeg';
const noFfmpeg = process.platform === 'win32' || spawnSync(realFfmpeg, ['-version']).status !== 0;

onDevice('Frames of ffmpeg', (host) => {
  let device: Device;
  let folder: string;
  beforeAll(async () => {
    device = Device.of(host.device);
    folder = await mkdtemp(join(tmpdir(), 'async-cuda-frames-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  const withScripts = process.platform === 'win32' ? describe.skip : describe;
  withScripts('of a script that plays ffmpeg', () => {
    let scripts = 0;

    /** An executable in place of ffmpeg. */
    async function script(body: string): Promise<string> {
      const path = join(folder, `ffmpeg-${scripts++}`);
      await writeFile(
        path,
        `#!${process.execPath}\nconst { writeFileSync, writeSync, readSync } = ` +
          `require('node:fs');\nconst args = process.argv.slice(2);\n${body}\n`,
      );
      await chmod(path, 0o755);
      return path;
    }
    const SAYS_SIZE =
      `process.stderr.write("Input #0, mov, from 'x':\\n  Stream #0:0: Video: h264, yuv420p, ` +
      `640x480, 25 fps\\nOutput #0, rawvideo, to 'pipe:1':\\n  Metadata:\\n  Stream #0:0(und): ` +
      'Video: rawvideo (RGB[24] / 0x18424752), rgb24(pc), 4x2 [SAR 1:1 DAR 2:1], q=2-31, 5 ' +
      `fps\\n");`;

    test('arguments are in ffmpeg’s order, and the size is that of its output', async () => {
      const told = join(folder, 'args.json');
      const ffmpeg = await script(
        `writeFileSync(${JSON.stringify(told)}, JSON.stringify(args)); ${SAYS_SIZE} ` +
          `process.stdout.write(Buffer.alloc(${RGB_BYTES * 2}, 9));`,
      );
      expect(
        await firstValues(
          frames(device, {
            input: 'a film.mp4',
            pixelFormat: 'rgb24',
            ffmpeg,
            inputArgs: ['-ss', '1'],
            args: ['-vf', 'fps=5'],
          }),
        ),
      ).toEqual([9, 9]);
      expect(JSON.parse(await readFile(told, 'utf8'))).toEqual([
        '-nostdin',
        '-hide_banner',
        '-nostats',
        '-ss',
        '1',
        '-i',
        'a film.mp4',
        '-map',
        '0:v:0',
        '-vf',
        'fps=5',
        '-f',
        'rawvideo',
        '-pix_fmt',
        'rgb24',
        'pipe:1',
      ]);
      expect(
        await firstValues(frames(device, { input: new URL('file:///tmp/b.mp4'), ...RGB, ffmpeg })),
      ).toEqual([9, 9]);
      expect(JSON.parse(await readFile(told, 'utf8'))).toEqual([
        '-nostdin',
        '-hide_banner',
        '-nostats',
        '-i',
        '/tmp/b.mp4',
        '-map',
        '0:v:0',
        '-s',
        '4x2',
        '-f',
        'rawvideo',
        '-pix_fmt',
        'rgb24',
        'pipe:1',
      ]);
    });

    test('where it is not installed the error has how to install it', async () => {
      const error = await failure(() =>
        firstValues(
          frames(device, { input: 'a.mp4', pixelFormat: 'rgb24', ffmpeg: join(folder, 'absent') }),
        ),
      );
      expect(error).toMatchObject({
        code: 'ERR_CUDA_NO_LIBRARY',
        message: expect.stringContaining('apt install ffmpeg') as string,
      });
      expect(
        await failure(() =>
          encodeFrames({ output: 'b.mp4', ...RGB, frameRate: 25, ffmpeg: join(folder, 'absent') }),
        ),
      ).toMatchObject({ code: 'ERR_CUDA_NO_LIBRARY' });
    });

    test('where it fails the error has the last lines of its output', async () => {
      const ffmpeg = await script(
        `process.stderr.write("a.mp4: No such file or directory\\nError opening input ` +
          `files\\n"); process.exitCode = 254;`,
      );
      for (const size of [{}, { width: 4, height: 2 }]) {
        const error = await failure(() =>
          firstValues(frames(device, { input: 'a.mp4', pixelFormat: 'rgb24', ffmpeg, ...size })),
        );
        expect(error).toBeInstanceOf(CudaLibraryError);
        expect(error).toMatchObject({
          code: 'ERR_CUDA_LIBRARY',
          library: 'ffmpeg',
          status: 254,
          message:
            'ffmpeg failed (exit code 254):\na.mp4: No such file or directory\nError opening ' +
            'input files',
        });
      }
    });

    test('where it fails within the video the earlier frames come first', async () => {
      const ffmpeg = await script(
        `${SAYS_SIZE} process.stdout.write(Buffer.alloc(30, 9), () => { ` +
          `process.stderr.write('out of memory\\n'); process.exitCode = 1; });`,
      );
      let seen = 0;
      const error = await failure(async () => {
        for await (const frame of frames(device, { input: 'a', pixelFormat: 'rgb24', ffmpeg }))
          seen += frame.data[0]!;
      });
      expect([seen, error.code]).toEqual([9, 'ERR_CUDA_LIBRARY']);
    });

    test('where it ends without a size, that is an error', async () => {
      const ffmpeg = await script(`process.stdout.write('bytes');`);
      expect(
        await failure(() =>
          firstValues(frames(device, { input: 'a', pixelFormat: 'rgb24', ffmpeg })),
        ),
      ).toMatchObject({
        code: 'ERR_CUDA_FORMAT',
        message: expect.stringContaining('Pass width and height') as string,
      });
    });

    const ENDLESS = (told: string): string =>
      `writeFileSync(${JSON.stringify(told)}, String(process.pid)); ${SAYS_SIZE} const more ` +
      `= () => process.stdout.write(Buffer.alloc(${RGB_BYTES}, 5), (error) => { if (!error) ` +
      'setImmediate(more); }); more();';
    const alive = (pid: number): boolean => {
      try {
        return process.kill(pid, 0);
      } catch {
        return false;
      }
    };

    test('leaving the loop, also by an error, ends it', async () => {
      const told = join(folder, 'pid');
      const ffmpeg = await script(ENDLESS(told));
      for await (const frame of frames(device, { input: 'a', pixelFormat: 'rgb24', ffmpeg }))
        if (frame.index === 3) break;
      expect(alive(Number(await readFile(told, 'utf8')))).toBe(false);
      await failure(async () => {
        for await (const frame of frames(device, { input: 'a', pixelFormat: 'rgb24', ffmpeg }))
          throw new Error(String(frame.index));
      });
      expect(alive(Number(await readFile(told, 'utf8')))).toBe(false);
    });

    test('a signal ends it, also while the caller is busy', async () => {
      const told = join(folder, 'pid');
      const ffmpeg = await script(ENDLESS(told));
      const controller = new AbortController();
      const error = await failure(async () => {
        for await (const frame of frames(device, {
          input: 'a',
          pixelFormat: 'rgb24',
          ffmpeg,
          signal: controller.signal,
        })) {
          expect(frame.index).toBe(0);
          controller.abort(new Error('enough'));
          for (let i = 0; i < 200 && alive(Number(await readFile(told, 'utf8'))); i++)
            await sleep(5);
          expect(alive(Number(await readFile(told, 'utf8')))).toBe(false);
        }
      });
      expect(error.message).toBe('enough');
    });

    test('a signal ends it after the end of ffmpeg’s output: the reason is the error', async () => {
      const told = join(folder, 'closed');
      // Its output is closed before the process ends.
      const ffmpeg = await script(
        `${SAYS_SIZE} process.stdout.write(Buffer.alloc(${RGB_BYTES}, 5), () => { ` +
          `require('node:fs').closeSync(1); writeFileSync(${JSON.stringify(told)}, 'now'); ` +
          'setInterval(() => {}, 1000); });',
      );
      const controller = new AbortController();
      const error = await failure(async () => {
        for await (const frame of frames(device, {
          input: 'a',
          pixelFormat: 'rgb24',
          ffmpeg,
          signal: controller.signal,
        })) {
          expect(frame.index).toBe(0);
          while ((await readFile(told, 'utf8').catch(() => '')) === '') await sleep(5);
          setTimeout(() => {
            controller.abort(new Error('enough'));
          }, 50);
        }
      });
      expect(error.message).toBe('enough');
    });

    test('a signal that aborts during the start, or before a size, ends it', async () => {
      const ffmpeg = await script(`setInterval(() => {}, 1000);`);
      for (const size of [{}, { width: 4, height: 2 }]) {
        for (const wait of [0, 50]) {
          const controller = new AbortController();
          const waiting = failure(() =>
            firstValues(
              frames(device, {
                input: 'a',
                pixelFormat: 'rgb24',
                ffmpeg,
                signal: controller.signal,
                ...size,
              }),
            ),
          );
          if (wait > 0) await sleep(wait);
          controller.abort(new Error('enough'));
          expect((await waiting).message).toBe('enough');
        }
      }
    });

    test('a process that was killed by another signal is an error with its name', async () => {
      const ffmpeg = await script(`process.kill(process.pid, 'SIGKILL');`);
      expect(
        await failure(() =>
          firstValues(
            frames(device, { input: 'a', ...RGB, ffmpeg, signal: new AbortController().signal }),
          ),
        ),
      ).toMatchObject({ code: 'ERR_CUDA_LIBRARY', statusName: 'SIGKILL' });
    });

    test('it waits while the caller is slow', async () => {
      const count = join(folder, 'count');
      const ffmpeg = await script(
        `let n = 0; ${SAYS_SIZE} const block = Buffer.alloc(${RGB_BYTES * 1000}, 5); for ` +
          '(;;) { let at = 0; while (at < block.length) { try { at += writeSync(1, block, at); ' +
          `} catch (e) { if (e.code === 'EPIPE') process.exit(0); if (e.code !== 'EAGAIN') ` +
          `throw e; } } writeFileSync(${JSON.stringify(count)}, String(++n)); }`,
      );
      for await (const frame of frames(device, { input: 'a', pixelFormat: 'rgb24', ffmpeg })) {
        expect(frame.index).toBe(0);
        await sleep(300);
        // The capacity of pipe and stream: some hundred KiB, in blocks of 24.
        expect(Number(await readFile(count, 'utf8').catch(() => '0'))).toBeLessThan(60);
        break;
      }
    });

    test('frames of tensors and of the host are written in the order of the calls', async () => {
      const told = join(folder, 'encoded');
      const ffmpeg = await script(
        `const chunks = [JSON.stringify(args) + '\\n']; process.stdin.on('data', (chunk) => ` +
          `chunks.push(chunk.toString('hex'))); process.stdin.on('end', () => ` +
          `writeFileSync(${JSON.stringify(told)}, chunks.join('')));`,
      );
      const output = join(folder, 'made.mp4');
      await using encoder = await encodeFrames({
        output,
        ...RGB,
        frameRate: 12.5,
        ffmpeg,
        args: ['-c:v', 'ffv1'],
      });
      using tensor = await device.full(u8, [2, 4, 3], 7);
      await Promise.all([
        encoder.write(tensor),
        encoder.write(new Uint8Array(RGB_BYTES).fill(8)),
        encoder.write(tensor),
      ]);
      await encoder.end();
      const [args, hex] = (await readFile(told, 'utf8')).split('\n');
      expect(JSON.parse(args!)).toEqual([
        '-nostdin',
        '-hide_banner',
        '-nostats',
        '-f',
        'rawvideo',
        '-pix_fmt',
        'rgb24',
        '-s',
        '4x2',
        '-r',
        '12.5',
        '-i',
        'pipe:0',
        '-c:v',
        'ffv1',
        '-n',
        output,
      ]);
      expect(hex).toBe('07'.repeat(24) + '08'.repeat(24) + '07'.repeat(24));
      expect(() => encoder.write(new Uint8Array(RGB_BYTES))).toThrow(CudaDisposedError);
    });

    test('other values are refused, and failures of the encoder reported', async () => {
      const ffmpeg = await script(
        `process.stderr.write('Unknown encoder\\n'); process.exitCode = 8;`,
      );
      const encoder = await encodeFrames({ output: 'x', ...RGB, frameRate: 1, ffmpeg });
      using wrong = await device.zeros(u8, [4, 2, 3]);
      expect(() => encoder.write(wrong)).toThrow(CudaArgumentError);
      expect(() => encoder.write(new Uint8Array(23))).toThrow(CudaArgumentError);
      const error = await failure(async () => {
        for (;;) await encoder.write(new Uint8Array(RGB_BYTES));
      });
      expect(error).toMatchObject({
        code: 'ERR_CUDA_LIBRARY',
        message: 'ffmpeg failed (exit code 8):\nUnknown encoder',
      });
      expect(await failure(() => encoder.end())).toMatchObject({ code: 'ERR_CUDA_LIBRARY' });
      await encoder.close();
    });

    test('a signal ends the encoder', async () => {
      const ffmpeg = await script(`setInterval(() => {}, 1000);`);
      const controller = new AbortController();
      await using encoder = await encodeFrames({
        output: 'x',
        ...RGB,
        frameRate: 1,
        ffmpeg,
        signal: controller.signal,
      });
      await encoder.write(new Uint8Array(RGB_BYTES));
      const ended = failure(() => encoder.end());
      await sleep(5);
      controller.abort(new Error('enough'));
      expect(await ended).toMatchObject({ message: 'enough' });
    });

    test('a signal ends the encoder while a write waits for the end of ffmpeg', async () => {
      const ffmpeg = await script(`require('node:fs').closeSync(0); setInterval(() => {}, 1000);`);
      const controller = new AbortController();
      await using encoder = await encodeFrames({
        output: 'x',
        ...RGB,
        frameRate: 1,
        ffmpeg,
        signal: controller.signal,
      });
      const writing = failure(async () => {
        for (;;) await encoder.write(new Uint8Array(RGB_BYTES));
      });
      await sleep(300);
      controller.abort(new Error('enough'));
      expect((await writing).message).toBe('enough');
    });
  });

  const withFfmpeg = noFfmpeg ? describe.skip : describe;
  withFfmpeg(noFfmpeg ? 'SKIPPED: there is no ffmpeg here' : 'of ffmpeg itself', () => {
    test('an encoded video can be decoded', async () => {
      const output = join(folder, `video-${host.mode}.mkv`);
      const options = { width: 16, height: 8, pixelFormat: 'rgb24', ffmpeg: realFfmpeg } as const;
      const values = Array.from({ length: 5 }, (_, n) =>
        Uint8Array.from({ length: 384 }, (__, i) => i * 7 + n * 31),
      );
      await using encoder = await encodeFrames({
        output,
        ...options,
        frameRate: 5,
        args: ['-c:v', 'ffv1', '-pix_fmt', 'gbrp'],
      });
      for (const each of values) {
        using tensor = await device.tensor(u8, each, [8, 16, 3]);
        await encoder.write(tensor);
      }
      await encoder.end();
      const back: number[][] = [];
      for await (const frame of frames(device, {
        input: output,
        pixelFormat: 'rgb24',
        ffmpeg: realFfmpeg,
      }))
        back.push([...(await frame.upload().andThen((tensor) => tensor.read()))]);
      expect(back).toEqual(values.map((each) => [...each]));
      let scaled = 0;
      for await (const frame of frames(device, {
        input: output,
        width: 6,
        height: 4,
        pixelFormat: 'nv12',
        ffmpeg: realFfmpeg,
      }))
        scaled += frame.data.length;
      expect(scaled).toBe(5 * 36);
      expect(await failure(() => encodeFrames({ output, ...options, frameRate: 5 }))).toMatchObject(
        { argument: 'options.output' },
      );
      expect(
        (
          await failure(() =>
            firstValues(
              frames(device, {
                input: join(folder, 'absent.mkv'),
                pixelFormat: 'rgb24',
                ffmpeg: realFfmpeg,
              }),
            ),
          )
        ).message,
      ).toContain('No such file');
    });
  });
});
