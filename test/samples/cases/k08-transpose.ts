/** A transpose through padded tiles. */
import { Values } from '../host-values.js';
import type { SampleModule } from '../sample-case.js';

const [w, h] = [70, 45];
const x = new Values(8).wildFloats(w * h);

export const K08_TRANSPOSE: SampleModule = {
  name: 'k08_transpose',
  cases: [
    {
      kernel: 'transpose',
      name: '70 × 45, all kinds of floats',
      memory: { x, y: new Float32Array(w * h + 3) },
      launches: [{ grid: [3, 2], block: [32, 8], args: ['x', 'y', w, h] }],
      outputs: {
        y: {
          equal: 'bits',
          reference: () =>
            Float32Array.from({ length: w * h + 3 }, (_, at) =>
              at < w * h ? x[(at % h) * w + Math.floor(at / h)]! : 0,
            ),
        },
      },
    },
  ],
};
