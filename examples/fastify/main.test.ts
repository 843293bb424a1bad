import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const device = process.env['ASYNC_CUDA_TEST_DEVICE'] === 'cuda' ? 'cuda' : 'cpu';

test('starts, answers with the digits of a photograph, loses no request on SIGTERM, and ends with 0', { timeout: 120_000 }, async () => {
  const child = spawn(process.execPath, [path('../../node_modules/tsx/dist/cli.mjs'), path('main.ts'), '--port', '0', '--device', device, '--max-delay', '200'], { stdio: ['ignore', 'pipe', 'pipe'] });
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
    const body = await readFile(path('../../demo/inference/photographs/menu.jpg'));
    const post = (): Promise<Response> => fetch(`${origin}/digits`, { method: 'POST', body, headers: { 'content-type': 'image/jpeg' } });

    const first = await post();
    expect(first.status).toBe(200);
    const { width, height, digits } = (await first.json()) as { width: number; height: number; digits: { label: string }[] };
    expect([width, height]).toEqual([600, 400]);
    expect(digits.map(({ label }) => label).sort()).toEqual(['0', '1', '2', '3', '5', '7']);
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
});
