/** `npm run example:server`: the server on the best device there is, until SIGTERM or SIGINT. */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Device } from 'async-cuda';
import { loadEngine } from 'async-cuda/inference';

import { DigitDetector, ENGINE_OPTIONS, MODEL } from '../../demo/inference/digit-detector.js';
import { buildServer } from './server.js';

const { values } = parseArgs({
  options: {
    host: { type: 'string', default: '127.0.0.1' },
    port: { type: 'string', default: '8080' },
    device: { type: 'string' },
    'max-batch': { type: 'string', default: '16' },
    'max-delay': { type: 'string', default: '5' },
  },
});
const maxBatchSize = Number(values['max-batch']);

const device = await (values.device === undefined ? Device.open() : Device.open(values.device));
const engine = await loadEngine(device, fileURLToPath(MODEL), ENGINE_OPTIONS);
const detector = new DigitDetector(device, engine);
const app = buildServer({
  detect: (photographs) => detector.detect(photographs),
  batching: { maxBatchSize, maxQueueDelay: Number(values['max-delay']) },
  description: `${engine.description}, ${device.name}`,
});

// The first batches pay for what happens once: kernels that are compiled, memory that grows.
await detector.detect([{ width: 2, height: 2, data: new Uint8Array(12) }]);
await app.listen({ host: values.host, port: Number(values.port) });
console.log(`listening on ${app.listeningOrigin}, on ${engine.description}, ${device.name}`);

let stopping: Promise<void> | undefined;
async function stop(signal: string): Promise<void> {
  console.log(`${signal}: finishing what is under way`);
  await app.close();
  await engine.close();
  await device.close();
  console.log('closed');
}
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => (stopping ??= stop(signal)));
