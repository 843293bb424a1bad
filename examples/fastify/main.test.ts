import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

import { whyNoOcr } from '../../demo/inference/text/why-no-ocr.test-support.js';

const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const device = process.env['ASYNC_CUDA_TEST_DEVICE'] === 'cuda' ? 'cuda' : 'cpu';

/** What is on a photograph, in whichever order. */
const tasks = [
  [
    'text',
    'cafe.jpg',
    '../../demo/inference/photographs/',
    ['Cappuccino3.20', 'Espresso2.40', 'Hotchocolate3.50', 'openuntil18:30'],
    [720, 480],
    whyNoOcr,
  ],
  [
    'digits',
    'menu.jpg',
    '../../demo/inference/digits/photographs/',
    ['0', '1', '2', '3', '5', '7'],
    [600, 400],
    undefined,
  ],
] as const;

describe.each(tasks)('--task %s', (task, photograph, folder, labels, size, why) => {
  test.skipIf(why !== undefined)(
    'starts, labels a photograph, loses no request on SIGTERM, and ends with ' +
      `0${why === undefined ? '' : ` (SKIPPED: ${why})`}`,
    { tags: 'thorough' },
    async () => {
      const child = spawn(
        process.execPath,
        [
          path('../../node_modules/tsx/dist/cli.mjs'),
          path('main.ts'),
          '--port',
          '0',
          '--task',
          task,
          '--device',
          device,
          '--max-delay',
          '200',
        ],
        { stdio: ['ignore', 'pipe', 'pipe'] },
      );
      let said = '';
      try {
        const exit = once(child, 'exit') as Promise<[number | null]>;
        const origin = await new Promise<string>((resolve, reject) => {
          child.stderr.on('data', (data: Buffer) => (said += data.toString()));
          child.stdout.on('data', (data: Buffer) => {
            said += data.toString();
            const found = /listening on (http:\S+),/.exec(said);
            if (found !== null) resolve(found[1]!);
          });
          child.once('exit', () => reject(new Error(`the server ended: ${said}`)));
        });
        const body = await readFile(path(`${folder}${photograph}`));
        const post = (): Promise<Response> =>
          fetch(`${origin}/${task}`, {
            method: 'POST',
            body,
            headers: { 'content-type': 'image/jpeg' },
          });

        const first = await post();
        expect(first.status).toBe(200);
        const answer = (await first.json()) as {
          width: number;
          height: number;
          [task: string]: unknown;
        };
        expect([answer.width, answer.height]).toEqual(size);
        expect(
          (answer[task] as { label: string }[])
            .map(({ label }) => label.replaceAll(' ', ''))
            .sort(),
        ).toEqual(labels);
        expect(await (await fetch(`${origin}/healthz`)).json()).toMatchObject({ status: 'ok' });

        // Under way when the signal comes: they wait for their batch.
        const taken = [post(), post(), post()];
        while (!/in_flight 3\n/.test(await (await fetch(`${origin}/metrics`)).text()));
        child.kill('SIGTERM');
        expect((await Promise.all(taken)).map(({ status }) => status)).toEqual([200, 200, 200]);
        expect((await exit)[0]).toBe(0);
        expect(said).toContain('closed\n');
      } finally {
        child.kill('SIGKILL');
      }
    },
  );
});
