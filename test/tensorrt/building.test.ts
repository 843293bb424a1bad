/**
 * Networks, parsers, configurations and builds, by TensorRT for RTX itself: it needs no GPU for
 * them.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { CudaArgumentError, CudaError } from 'async-cuda/core';
import { Builder, OnnxParser, OnnxParserError } from 'async-cuda/tensorrt';
import type {
  BuildProgress,
  BuilderConfigOptions,
  BuilderFlag,
  NetworkDefinition,
} from 'async-cuda/tensorrt';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { failure } from '../core/test-device.js';
import { FLOAT, dynamicOnnx, onnxModel, simpleOnnx } from './onnx-model.js';
import { rtx, whyNoRtx } from './real-library.js';

describe.skipIf(whyNoRtx !== undefined)(
  `TensorRT for RTX builds${whyNoRtx === undefined ? '' : ` (${whyNoRtx})`}`,
  () => {
    let builder: Builder;
    const open: { close(): Promise<void> }[] = [];
    beforeAll(async () => {
      builder = await Builder.create(rtx);
    });
    afterAll(async () => {
      for (const each of open.reverse()) await each.close();
      await builder.close();
    });

    async function parsed(model: Uint8Array): Promise<NetworkDefinition> {
      const network = await builder.createNetwork();
      const parser = await OnnxParser.create(network);
      open.push(network, parser);
      return parser.parse(model);
    }

    async function planOf(
      model: Uint8Array,
      options: BuilderConfigOptions = {},
    ): Promise<Uint8Array> {
      await using config = await builder.createConfig(options);
      return await builder.build(await parsed(model), config);
    }

    test('its version is known', () => {
      expect(builder.description).toMatch(/^TensorRT for RTX 1\.[3-7]\.\d+$/);
    });

    // async-tensorrt: parser, parses_onnx_file
    test('a model is parsed from a file', async () => {
      const path = join(mkdtempSync(join(tmpdir(), 'async-cuda-onnx-')), 'simple.onnx');
      writeFileSync(path, simpleOnnx);
      await using network = await builder.createNetwork();
      await using parser = await OnnxParser.create(network);
      expect(await parser.parseFile(path)).toBe(network);
    });

    // async-tensorrt: network, inputs_and_outputs; the declared shape of Y is the true one here
    test('a network has its inputs and outputs', async () => {
      const tensors = await (await parsed(simpleOnnx)).tensors();
      expect(tensors.inputs).toEqual([{ name: 'X', dtype: 'f32', shape: [1, 2] }]);
      expect(tensors.outputs).toEqual([{ name: 'Y', dtype: 'f32', shape: [2, 3] }]);
      expect(tensors.layers).toBeGreaterThan(0);
    });

    // async-tensorrt: network, tensor_set_name
    test('a tensor is renamed', async () => {
      const network = await parsed(simpleOnnx);
      await network.rename('Y', 'Z');
      expect((await network.tensors()).outputs.map((tensor) => tensor.name)).toEqual(['Z']);
      expect(await failure(() => network.rename('nothing', 'W'))).toBeInstanceOf(CudaArgumentError);
    });

    // async-tensorrt: memory, host_buffer_data_and_size
    test('a plan is built', async () => {
      const plan = await planOf(simpleOnnx);
      expect(plan.length).toBeGreaterThan(100);
      expect(Buffer.from(plan.subarray(0, 4)).toString()).toBe('vtrt');
    });

    test('a dynamic extent has its name, and needs a profile', async () => {
      const network = await parsed(dynamicOnnx);
      expect((await network.tensors()).inputs).toEqual([
        { name: 'x', dtype: 'f32', shape: [-1, 4], dimensions: ['batch', undefined] },
      ]);
      await using config = await builder.createConfig();
      const error = await failure(() => builder.build(network, config));
      expect(error.code).toBe('ERR_CUDA_LIBRARY');
      expect(error.message).toMatch(/profile/i);
      await using profile = await builder.createOptimizationProfile();
      await profile.setShape('x', { min: [1, 4], opt: [8, 4], max: [32, 4] });
      expect(await profile.shape('x')).toEqual({ min: [1, 4], opt: [8, 4], max: [32, 4] });
      expect(await profile.isValid()).toBe(true);
      await profile.setExtraMemoryTarget(0.5);
      expect(await profile.extraMemoryTarget()).toBe(0.5);
      expect(await config.addOptimizationProfile(profile)).toBe(0);
      expect((await builder.build(network, config)).length).toBeGreaterThan(100);
    });

    test('a configuration is read back', async () => {
      await using config = await builder.createConfig({
        memoryPoolLimits: { workspace: 1 << 20 },
        flags: ['refit'],
        optimizationLevel: 2,
        profilingVerbosity: 'detailed',
        maxAuxStreams: 1,
      });
      expect(await config.memoryPoolLimit('workspace')).toBe(1 << 20);
    });

    test('progress is reported until the end', async () => {
      const network = await parsed(simpleOnnx);
      await using config = await builder.createConfig();
      const told: BuildProgress[] = [];
      await builder.build(network, config, { progress: (progress) => told.push(progress) });
      for (const { step, steps, phase } of told) {
        expect(phase).not.toBe('');
        expect(step).toBeLessThanOrEqual(steps);
      }
    });

    test('a build is ended by a signal', async () => {
      const network = await parsed(simpleOnnx);
      await using config = await builder.createConfig();
      const reason = new Error('no longer wanted');
      await expect(
        builder.build(network, config, { signal: AbortSignal.abort(reason) }),
      ).rejects.toBe(reason);
      const later = new AbortController();
      const building = builder.build(network, config, { signal: later.signal });
      later.abort(reason);
      await expect(building).rejects.toBe(reason);
    });

    test('the event loop goes on during a build', async () => {
      let turns = 0;
      const timer = setInterval(() => turns++, 1);
      await planOf(simpleOnnx);
      clearInterval(timer);
      expect(turns).toBeGreaterThan(0);
    });

    test('messages of TensorRT go to a diagnostics channel', async () => {
      const heard: unknown[] = [];
      const listen = (message: unknown): void => {
        heard.push(message);
      };
      subscribe('async-cuda:tensorrt', listen);
      await planOf(simpleOnnx);
      await new Promise((resolve) => setTimeout(resolve, 20));
      unsubscribe('async-cuda:tensorrt', listen);
      expect(heard).toContainEqual({
        severity: expect.stringMatching(/info|warning/) as unknown,
        message: expect.stringMatching(/./) as unknown,
      });
    });

    describe('bad input', () => {
      async function parserError(model: Uint8Array): Promise<OnnxParserError> {
        const error = await failure(() => parsed(model));
        expect(error).toBeInstanceOf(OnnxParserError);
        return error as unknown as OnnxParserError;
      }

      test('a truncated model', async () => {
        const { problems } = await parserError(simpleOnnx.subarray(0, 40));
        expect(problems.length).toBeGreaterThan(0);
        expect(problems[0]!.message).not.toBe('');
      });

      test('garbage', async () => {
        // A tag of wire type 7, which protocol buffers do not have.
        const { message, problems } = await parserError(new Uint8Array(64).fill(0xff));
        expect(message).toMatch(/does not take the model/);
        expect(problems.map(({ code }) => code)).toContain('MODEL_DESERIALIZE_FAILED');
      });

      test('an unknown operator is named with its node', async () => {
        const model = onnxModel({
          nodes: [
            { op: 'Relu', inputs: ['x'], outputs: ['y'] },
            { op: 'Levitate', name: 'second', inputs: ['y'], outputs: ['z'] },
          ],
          inputs: { x: [FLOAT, [1, 2]] },
          outputs: { z: [FLOAT, [1, 2]] },
        });
        const { problems, message } = await parserError(model);
        expect(message).toMatch(/Levitate/);
        expect(
          problems.some(
            ({ node, operator, nodeName }) =>
              node === 1 && operator === 'Levitate' && nodeName === 'second',
          ),
        ).toBe(true);
      });

      test('an operator that is known, and one that is not', async () => {
        const network = await builder.createNetwork();
        const parser = await OnnxParser.create(network);
        open.push(network, parser);
        expect(await parser.supportsOperator('Conv')).toBe(true);
        expect(await parser.supportsOperator('Levitate')).toBe(false);
      });

      test('an unknown opset', async () => {
        const outcome = await parsed(
          onnxModel({
            nodes: [{ op: 'Relu', inputs: ['x'], outputs: ['y'] }],
            inputs: { x: [FLOAT, [1]] },
            outputs: { y: [FLOAT, [1]] },
            opset: 9999,
          }),
        ).catch((error: unknown) => error);
        // TensorRT refuses an opset that is too new, or warns of it and parses the model: both are
        // allowed here.
        if (outcome instanceof Error) expect(outcome).toBeInstanceOf(OnnxParserError);
        else expect((await (outcome as NetworkDefinition).tensors()).layers).toBeGreaterThan(0);
      });

      test('a file that is not there', async () => {
        const network = await builder.createNetwork();
        const parser = await OnnxParser.create(network);
        open.push(network, parser);
        expect(await failure(() => parser.parseFile('/nowhere/model.onnx'))).toBeInstanceOf(
          OnnxParserError,
        );
      });

      test('more than 8 axes, and extents that decrease', async () => {
        await using profile = await builder.createOptimizationProfile();
        const nine = new Array<number>(9).fill(1);
        expect(() => profile.setShape('x', { min: nine, opt: nine, max: nine })).toThrow(
          /at most 8 extents/,
        );
        expect(() => profile.setShape('x', { min: [4], opt: [2], max: [8] })).toThrow(
          CudaArgumentError,
        );
      });

      test('a flag of another version, and one of none', async () => {
        const error = await failure(() =>
          builder.createConfig({ flags: ['levitate' as BuilderFlag] }),
        );
        expect(error.code).toBe('ERR_CUDA_UNSUPPORTED');
        expect(error.message).toMatch(/levitate/);
        expect(await failure(() => builder.createConfig({ flags: ['fp16'] }))).toBeInstanceOf(
          CudaError,
        );
      });

      test('an invalid timing cache is ignored', async () => {
        // TensorRT for RTX 1.7 takes it without a message, and begins with an empty one.
        expect(
          (await planOf(simpleOnnx, { timingCache: new TextEncoder().encode('garbage') })).length,
        ).toBeGreaterThan(100);
      });

      test('a library that is not TensorRT', async () => {
        expect(
          (
            await failure(() =>
              Builder.create({
                flavor: 'rtx',
                files: { library: '/nowhere/libtensorrt_rtx.so.1' },
              }),
            )
          ).code,
        ).toBe('ERR_CUDA_NO_LIBRARY');
        expect(
          (
            await failure(() =>
              Builder.create({ flavor: 'rtx', files: { library: rtx.files.parser! } }),
            )
          ).code,
        ).toBe('ERR_CUDA_UNSUPPORTED');
      });

      test('objects of another kind, and of another builder', async () => {
        await using config = await builder.createConfig();
        await expect(builder.build(config as unknown as NetworkDefinition, config)).rejects.toThrow(
          /network: expected a NetworkDefinition/,
        );
        await using other = await Builder.create(rtx);
        const network = await other.createNetwork();
        expect(await failure(() => builder.build(network, config))).toBeInstanceOf(
          CudaArgumentError,
        );
        const profile = await other.createOptimizationProfile();
        expect(await failure(() => config.addOptimizationProfile(profile))).toBeInstanceOf(
          CudaArgumentError,
        );
      });

      test('a builder can be closed before its results, many times', async () => {
        for (let i = 0; i < 20; i++) {
          const other = await Builder.create(rtx);
          const network = await other.createNetwork();
          const parser = await OnnxParser.create(network);
          await parser.parse(dynamicOnnx);
          // A network may use weights of its parser, which exists until then.
          await parser.close();
          const profile = await other.createOptimizationProfile();
          await profile.setShape('x', { min: [1, 4], opt: [8, 4], max: [32, 4] });
          const config = await other.createConfig({ timingCache: new Uint8Array(0) });
          await config.addOptimizationProfile(profile);
          if (i % 2 === 0) await profile.close();
          if (i === 0) expect((await other.build(network, config)).length).toBeGreaterThan(100);
          await other.close();
          expect([network.isClosed, config.isClosed, profile.isClosed]).toEqual([true, true, true]);
          expect((await failure(() => network.tensors())).code).toBe('ERR_CUDA_DISPOSED');
          for (const each of [config, profile, parser, network, other]) await each.close();
        }
      });

      test('closed objects', async () => {
        const config = await builder.createConfig();
        await config.close();
        await config.close();
        expect(() => config.memoryPoolLimit('workspace')).toThrow(/used after it was closed/);
      });
    });
  },
);
