import { expect, test } from 'vitest';

import { parseOptions } from './options.js';

test("without arguments text is read from the demo's own photographs, by whatever is there", () => {
  const { task, images, out, device, engine } = parseOptions([]);
  expect({ task, device, engine }).toEqual({ task: 'text', device: undefined, engine: 'auto' });
  expect(images).toHaveLength(4);
  expect(out).toMatch(/text\.png$/);
});

test('photographs and the picture are those that are named', () => {
  expect(parseOptions(['a.jpg', '--out', 'b.png', 'c.png'])).toMatchObject({
    images: ['a.jpg', 'c.png'],
    out: 'b.png',
  });
});

test.each([
  [['--task', 'cats'], '--task: expected text or digits, got cats'],
  [['--engine', 'tf'], '--engine: expected auto, tensorrt or onnxruntime, got tf'],
])('%j is refused', (args, message) => {
  expect(() => parseOptions(args)).toThrow(message);
});
