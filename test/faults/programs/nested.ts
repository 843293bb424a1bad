/**
 * Nested operations: as deep as possible, deeper than the stack allows, and a chain of the same
 * length. Prints the result of each.
 */
import { CoreDevice } from 'async-cuda/core';
import type { CudaArgumentError } from 'async-cuda/core';
import { parallel, setDefaultDevice, value, zip } from 'async-cuda/ops';
import type { DeviceOp } from 'async-cuda/ops';

const NESTINGS: Readonly<Record<string, (op: DeviceOp<number>) => DeviceOp<number>>> = {
  zip: (op) => zip(op, 1).map(([x]) => x),
  parallel: (op) => parallel(op, value(1)).map(([x]) => x),
  label: (op) => op.label('x'),
  orElse: (op) => op.orElse(() => value(1)),
  ensure: (op) => op.ensure(() => undefined),
  andThen: (op) => value(1).andThen(() => op),
};

const [kind = 'zip', thread = 'worker'] = process.argv.slice(2);
const around = NESTINGS[kind]!;
const device = await CoreDevice.open(process.env['ASYNC_CUDA_TEST_DEVICE'] as 'cpu' | 'cuda', {
  thread: thread as 'worker',
});
setDefaultDevice(device);
const stream = device.createStream();

let op: DeviceOp<number> = value(0).on(stream);
for (let i = 0; i < 500; i++) op = around(op);
const nested = await op;

for (let i = 0; i < 20_000; i++) op = around(op);
const tooDeep = await op.then<unknown, unknown>(
  (given) => ({ given }),
  (error) => {
    const { code, argument, message, cause } = error as CudaArgumentError;
    return { code, argument, message, cause: { name: (cause as Error | undefined)?.name } };
  },
);

let chain: DeviceOp<number> = value(0).on(stream);
for (let i = 0; i < 20_000; i++) chain = chain.andThen((x) => value(x + 1));
const chained = await chain;

stream.close();
await device.close();
console.log(JSON.stringify({ nested, tooDeep, chained }));
