/**
 * Engines of ONNX Runtime beside onnxruntime-node, which has the same library under it and blocks
 * the event loop in `run()`: a run until its end, the longest stall of the event loop with loading
 * included, and what queueing a run costs the JS thread.
 */
import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { performance } from 'node:perf_hooks';

import type { AnyTensor, Device } from 'async-cuda';
import type { Engine } from 'async-cuda/inference';

import type { Benchmark, Contender, LocalPeer, Round, Setup } from '../benchmark.js';
import { SETTLE_MS, collectGarbage } from '../garbage.js';
import { core, inference, onnxruntime, root, tensorrt } from '../library.js';
import { longestGap } from '../loop-gaps.js';
import { DETECTOR, RESNET } from '../peers/onnxruntime.js';
import type { Subject } from '../peers/onnxruntime.js';
import { PeerAbsent } from '../peers/program.js';
import type { ProgramName } from '../peers/programs.js';
import { queueing } from '../queueing.js';
import type { Queued } from '../queueing.js';

const { f32 } = core;

/** The default number of threads of an engine: see `threads` of `loadEngine`. */
const threads = availableParallelism() > 2 ? Math.ceil((availableParallelism() * 3) / 4) : 0;
const WARM_UPS = 3;
/**
 * Runs before the first round: JavaScript engines compile what runs often, and a server's runs are
 * frequent.
 */
const WARM_RUNS = 200;
const SAMPLES = 20;
/** On a GPU a run takes a tenth of the time. */
const GPU_SAMPLES = 200;
const GPU_WARM_RUNS = 2000;
/** The tolerance of the comparison: the two may use different numbers of threads. */
const TOLERANCE = 1e-3;

/** Noise from 0 to 1. Made once: it takes longer than the event loop may be blocked. */
const pixels = new Map(
  [DETECTOR, RESNET].map((subject) => {
    const elements = subject.shape.reduce((product, extent) => product * extent, 1);
    return [
      subject,
      Float32Array.from(
        { length: elements },
        (_, i) => (Math.imul(i, 2654435761) >>> 8) / (1 << 24),
      ),
    ];
  }),
);

/** All on the GPU, and the same as a graph. */
const ON_GPU = 2;
const RECORDED = 3;

/**
 * For the peer in C: the place of tensors and the provider, as in our engine. See
 * `peers/c/onnxruntime.c`.
 */
export async function placeFor(kind: Device['kind']): Promise<number> {
  if (kind === 'cpu') return 0;
  return (await onnxruntime.findOnnxRuntime({ cuda: true })).providers.includes(
    'CUDAExecutionProvider',
  )
    ? ON_GPU
    : 1;
}

/** The results of the first contender, with which those of the others are compared. */
const found = new Map<Subject, Float32Array>();

function checkValues(subject: Subject, values: Float32Array): void {
  if (values.every((value) => value === values[0]))
    throw new Error('the model gave the same everywhere');
  const expected = found.get(subject) ?? values.slice();
  found.set(subject, expected);
  const wrong = values.findIndex(
    (value, i) =>
      !(Math.abs(value - expected[i]!) <= TOLERANCE * Math.max(1, Math.abs(expected[i]!))),
  );
  if (wrong !== -1)
    throw new Error(`output ${wrong} is ${values[wrong]}, and was ${expected[wrong]}`);
}

/** Runs a model on the pixels; returns its first output on request. */
interface Runner {
  readonly subject: Subject;
  run(read: boolean): Promise<Float32Array | undefined>;
  close(): Promise<void>;
}

/** `given`: each run writes to the outputs of the first, as the peer in C does on a GPU. */
async function open(device: Device, subject: Subject, given = false): Promise<Runner> {
  const engine: Engine = await inference.loadEngine(device, await subject.file(), {
    engine: 'onnxruntime',
  });
  const x = await device.tensor(f32, pixels.get(subject)!, [...subject.shape]);
  const {
    input,
    outputs: [output],
  } = subject;
  const kept = given ? await engine.infer({ [input]: x }) : undefined;
  return {
    subject,
    async run(read) {
      const outputs = await (kept === undefined
        ? engine.infer({ [input]: x })
        : engine.infer({ [input]: x }, { outputs: kept }));
      const values = read ? ((await outputs[output!]!.read()) as Float32Array) : undefined;
      if (kept === undefined) for (const each of Object.values(outputs)) each.close();
      return values;
    },
    async close() {
      x.close();
      for (const each of Object.values(kept ?? {})) each.close();
      await engine.close();
    },
  };
}

async function openPeer(cuda: boolean, subject: Subject): Promise<Runner> {
  const ort = await import('onnxruntime-node').catch(() => {
    throw new PeerAbsent('not installed: npm install onnxruntime-node');
  });
  const session = await ort.InferenceSession.create(await readFile(await subject.file()), {
    executionProviders: [cuda ? 'cuda' : 'cpu'],
  }).catch((error: unknown) => {
    if (!cuda) throw error;
    throw new PeerAbsent(String(error));
  });
  const feeds = {
    [session.inputNames[0]!]: new ort.Tensor('float32', pixels.get(subject)!, [...subject.shape]),
  };
  return {
    subject,
    async run() {
      const outputs = await session.run(feeds);
      return outputs[session.outputNames[0]!]!.data as Float32Array;
    },
    close: () => session.release(),
  };
}

function warmRuns({ kind }: Pick<Device, 'kind'>): number {
  return kind === 'cuda' ? GPU_WARM_RUNS : WARM_RUNS;
}

function samplesOf(device: Pick<Device, 'kind'>, count: Setup['count']): number {
  return count(device.kind === 'cuda' ? GPU_SAMPLES : SAMPLES);
}

async function timed(runner: Runner, count: number): Promise<Round> {
  for (let i = 0; i < WARM_UPS; i++) checkValues(runner.subject, (await runner.run(true))!);
  const samples: number[] = [];
  for (let i = 0; i < count; i++) {
    const begun = performance.now();
    await runner.run(false);
    samples.push(performance.now() - begun);
  }
  return { samples };
}

/** The longest gap between turns of the event loop while a model is loaded, run and closed. */
async function stalled(open: () => Promise<Runner>, count: number): Promise<Round> {
  collectGarbage();
  await new Promise((resolve) => {
    setTimeout(resolve, SETTLE_MS / 3);
  });
  const longest = await longestGap(async () => {
    const runner = await open();
    for (let i = 0; i < count; i++) await runner.run(false);
    await runner.close();
  });
  return { samples: [longest] };
}

async function contender(runner: Promise<Runner>, count: number, warmRuns = 0): Promise<Contender> {
  const opened = await runner;
  for (let i = 0; i < warmRuns; i++) await opened.run(false);
  return { round: () => timed(opened, count), close: () => opened.close() };
}

const besideNode = (start: LocalPeer['start'], bar?: LocalPeer['bar']): LocalPeer => ({
  name: 'onnxruntime-node',
  ...(bar === undefined ? {} : { bar }),
  start,
});

/** y = x + x, by ONNX Runtime. */
async function doublingEngine(device: Device): Promise<Queued> {
  const engine = await inference.loadEngine(device, doubling(), { engine: 'onnxruntime' });
  const x = await device.tensor(f32, [1]);
  const y = await device.zeros(f32, [1]);
  const outputs: Record<string, AnyTensor> = { y };
  return {
    make: () => engine.infer({ x }, { outputs }),
    async check() {
      await x.write(new Float32Array([i32()]));
      await engine.infer({ x }, { outputs });
      if ((await y.read())[0] !== 2 * (await x.read())[0]!)
        throw new Error('a run gave a wrong result');
    },
    async close() {
      await engine.close();
      x.close();
      y.close();
    },
  };
}

/**
 * Copies two numbers, by a library with TensorRT's tables: the cost of a run on the JS thread is
 * that of TensorRT itself.
 */
async function standInEngine(device: Device): Promise<Queued> {
  const { StandInTensorRT, planText, whyNoStandIn } =
    await import('../../test/tensorrt/stand-in-tensorrt.js');
  if (whyNoStandIn !== undefined) throw new Error(whyNoStandIn);
  const standIn = new StandInTensorRT('10', 101600);
  const runtime = await tensorrt.Runtime.create(device.core, {
    files: { library: standIn.path },
    anyDevice: true,
  });
  const engine = await runtime.deserialize(planText(1, 2));
  const context = await engine.createContext();
  const x = await device.tensor(f32, [2, 4], [1, 2]);
  const y = await device.zeros(f32, [2, 3]);
  const outputs: Record<string, AnyTensor> = { y };
  return {
    make: () => context.infer({ x }, { outputs }),
    async check() {
      standIn.take();
      await context.infer({ x }, { outputs });
      if (!standIn.take().includes('enqueueV3 1')) throw new Error('the library was not called');
    },
    async close() {
      await context.close();
      await engine.close();
      await runtime.close();
      x.close();
      y.close();
    },
  };
}

const i32 = (): number => Math.floor(Math.random() * (1 << 20));

/** y = x + x, of one element: a ModelProto, byte by byte. */
function doubling(): Uint8Array {
  const text = (value: string): number[] => [...Buffer.from(value)];
  const field = (number: number, bytes: readonly number[]): number[] => [
    number * 8 + 2,
    bytes.length,
    ...bytes,
  ];
  const value = (name: string): number[] => [
    ...field(1, text(name)),
    ...field(2, field(1, [8, 1, ...field(2, field(1, [8, 1]))])),
  ];
  const node = [
    ...field(1, text('x')),
    ...field(1, text('x')),
    ...field(2, text('y')),
    ...field(4, text('Add')),
  ];
  const graph = [
    ...field(1, node),
    ...field(2, text('g')),
    ...field(11, value('x')),
    ...field(12, value('y')),
  ];
  return Uint8Array.from([8, 8, ...field(7, graph), ...field(8, [...field(1, []), 16, 17])]);
}

async function queuedBy(
  engine: (device: Device) => Promise<Queued>,
  { device, count }: Setup,
): Promise<Contender> {
  const lazy = await root.Device.open(device.kind);
  const own = await queueing(lazy, count(SAMPLES / 2), await engine(lazy));
  return {
    ...own,
    close: async () => {
      await own.close?.();
      await lazy.close();
    },
  };
}

function awaited(name: string, subject: Subject, program: ProgramName, given = false): Benchmark {
  return {
    area: 'inference',
    name,
    unit: 'ms',
    statistic: 'median',
    start: async ({ device, count }) => {
      const lazy = await root.Device.open(device.kind);
      const own = await contender(
        open(lazy, subject, given),
        samplesOf(device, count),
        warmRuns(device),
      );
      return {
        ...own,
        close: async () => {
          await own.close?.();
          await lazy.close();
        },
      };
    },
    peers: [
      {
        name: 'C',
        bar: '<= 1.05',
        program,
        request: async ({ device, count }) =>
          `run ${samplesOf(device, count)} ${threads} ${await placeFor(device.kind)} ` +
          `${subject.shape.join(' ')}`,
      },
      {
        name: 'C, recorded by the library',
        bar: '<= 1.05',
        program,
        request: async ({ device, count }) => {
          if ((await placeFor(device.kind)) !== ON_GPU)
            throw new PeerAbsent('only the CUDA provider records runs');
          const shape = subject.shape.join(' ');
          return `run ${samplesOf(device, count)} ${threads} ${RECORDED} ${shape}`;
        },
      },
      besideNode(
        ({ device, count }) =>
          contender(
            openPeer(device.kind === 'cuda', subject),
            samplesOf(device, count),
            warmRuns(device),
          ),
        '<= 1.05',
      ),
    ],
  };
}

export const engineRuns: readonly Benchmark[] = [
  awaited('run of a detector by ONNX Runtime, awaited, batch of 4', DETECTOR, 'ONNX Runtime'),
  awaited(
    'run of ResNet-50 by ONNX Runtime, awaited, batch of 1',
    RESNET,
    'ResNet-50 in ONNX Runtime',
  ),
  awaited(
    'run of a detector by ONNX Runtime, awaited, batch of 4, outputs given',
    DETECTOR,
    'ONNX Runtime',
    true,
  ),
  awaited(
    'run of ResNet-50 by ONNX Runtime, awaited, batch of 1, outputs given',
    RESNET,
    'ResNet-50 in ONNX Runtime',
    true,
  ),
  {
    area: 'inference',
    name: 'longest event-loop stall, a model loaded and run by ONNX Runtime',
    unit: 'ms',
    statistic: 'longest',
    bar: '<= 5',
    start: async ({ device, count }) => {
      const lazy = await root.Device.open(device.kind);
      return {
        round: () => stalled(() => open(lazy, DETECTOR), count(SAMPLES)),
        close: () => lazy.close(),
      };
    },
    peers: [
      besideNode(({ device, count }) =>
        Promise.resolve({
          round: () => stalled(() => openPeer(device.kind === 'cuda', DETECTOR), count(SAMPLES)),
        }),
      ),
    ],
  },
  {
    area: 'inference',
    name: 'run by ONNX Runtime made and queued, time of the JS thread',
    unit: 'µs',
    statistic: 'median',
    bar: '<= 1',
    peers: [],
    start: (setup) => queuedBy(doublingEngine, setup),
  },
  {
    area: 'inference',
    name:
      'run of a TensorRT engine made and queued, time of the JS thread, a stand-in for the ' +
      'library',
    unit: 'µs',
    statistic: 'median',
    bar: '<= 1',
    peers: [],
    start: (setup) => queuedBy(standInEngine, setup),
  },
];
