/** Kernels that print, with lines of the program in order among theirs. */
import { CoreDevice, i32 } from 'async-cuda/core';
import type { Stream } from 'async-cuda/core';

import { PRINTING } from '../../core/kernels/printing.js';

const [what, thread = 'worker'] = process.argv.slice(2) as [
  string,
  'worker' | 'inline' | undefined,
];
const device = await CoreDevice.open(process.env['ASYNC_CUDA_TEST_DEVICE'] as 'cpu' | 'cuda', {
  thread,
});
const { stream } = device;
const module = await device.loadModule(PRINTING);
const say = module.kernel('say');
const one = { grid: 1, block: 1 };
const line = (text: string): void => void process.stdout.write(`${text}\n`);
const said = (value: number, on: Stream = stream) => say.launch(on, one, value);

switch (what) {
  case 'launch':
    line('begin');
    for (let i = 0; i < 3; i++) {
      await said(i);
      line(`after ${i}`);
    }
    break;
  case 'sync':
    said(1);
    said(2);
    await stream.finished();
    line('after');
    break;
  case 'read': {
    using small = device.alloc(i32, 4);
    using large = device.alloc(i32, 1 << 18);
    small.fill(stream, 1);
    said(1);
    await small.read(stream);
    line('small');
    said(2);
    await large.read(stream);
    line('large');
    break;
  }
  case 'call':
    said(1);
    await stream.call(() => line('called'));
    said(2);
    await device.finished();
    line('synchronized');
    break;
  case 'graph': {
    const graph = await stream.capture(() => {
      said(1);
      said(2);
    });
    line('captured');
    await graph.launch(stream);
    line('once');
    await graph.launch(stream);
    line('twice');
    break;
  }
  case 'streams': {
    const other = device.createStream();
    // Created here: the first stream's work may end before the second one's function is called.
    let open!: () => void;
    const opened = new Promise<void>((resolve) => (open = resolve));
    other.call(() => opened);
    const held = said(2, other);
    await said(1);
    line('first');
    open();
    await held;
    line('second');
    break;
  }
  case 'close':
    said(1);
    await device.close();
    line('closed');
    break;
  case 'unawaited':
    line('begin');
    said(1);
    await new Promise((resolve) => setTimeout(resolve, 20));
    said(2);
    break;
  case 'closed-stream': {
    const other = device.createStream();
    said(1, other);
    other.close();
    break;
  }
  case 'exit':
    await said(1);
    process.exit(3);

  case 'much':
    // More than a pipe holds, after Node has opened the pipe.
    line('begin');
    await say.launch(stream, { grid: 50, block: 256 }, 7);
    line('end');
    break;
  case 'late':
    // The work ends before it is awaited, and the wait still includes its text.
    for (let i = 0; i < 50; i++) {
      const launched = said(i);
      await new Promise((resolve) => setTimeout(resolve, i % 3));
      await launched;
      line(`after ${i}`);
    }
    break;
  default:
    throw new Error(`no program '${what}'`);
}
