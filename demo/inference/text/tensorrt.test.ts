/**
 * TensorRT takes the models, with the ranges of shapes that the reader uses: TensorRT for RTX
 * builds without a GPU.
 */
import { readFile } from 'node:fs/promises';
import { Builder, OnnxParser } from 'async-cuda/tensorrt';
import { describe, expect, test } from 'vitest';

import { rtx, whyNoRtx } from '../../../test/tensorrt/real-library.js';
import { findOcrModels } from './ocr-models.js';
import { DETECTION_OPTIONS, RECOGNITION_OPTIONS } from './text-reader.js';
import { whyNoOcr } from './why-no-ocr.test-support.js';

const why = whyNoOcr === undefined ? whyNoRtx : `SKIPPED: ${whyNoOcr}`;

describe.skipIf(why !== undefined)(
  `TensorRT for RTX${why === undefined ? '' : ` (${why})`}`,
  () => {
    test.each([
      ['detection', DETECTION_OPTIONS],
      ['recognition', RECOGNITION_OPTIONS],
    ] as const)(
      'builds an engine of the %s',
      { tags: 'thorough', timeout: 300_000 },
      async (model, { tensorrt }) => {
        const bytes = await readFile((await findOcrModels())[model]);
        await using builder = await Builder.create(rtx);
        await using network = await builder.createNetwork();
        await using parser = await OnnxParser.create(network);
        await parser.parse(bytes);
        await using config = await builder.createConfig();
        await using profile = await builder.createOptimizationProfile();
        await profile.setShape('x', tensorrt!.shapes!['x']!);
        await config.addOptimizationProfile(profile);
        expect((await builder.build(network, config)).length).toBeGreaterThan(1e6);
      },
    );
  },
);
