/** Images: bilinear resizing, textures and surfaces, Sobel, a filter in constant memory. */
import { Values } from '../host-values.js';
import { f32 } from '../reference/rounded.js';
import type { SampleModule } from '../sample-case.js';

const { fround } = Math;
const random = new Values(11);
const clamp = (v: number, most: number): number => Math.max(0, Math.min(most, v));

const [sw, sh, dw, dh] = [17, 13, 40, 31];
const source = random.bytes(sw * sh * 4);

/** Rounded as nvcc compiled it: the first product of each blend is fused with the second. */
function resized(at: number): number {
  const [k, x, y] = [at & 3, (at >> 2) % dw, Math.floor((at >> 2) / dw)];
  const place = (to: number, size: number, of: number): number =>
    fround(fround(fround(fround(to + 0.5) * size) / of) - 0.5);
  const [fx, fy] = [place(x, sw, dw), place(y, sh, dh)];
  const [ix, iy] = [Math.floor(fx), Math.floor(fy)];
  const [ax, ay] = [fround(fx - ix), fround(fy - iy)];
  const pixel = (px: number, py: number): number =>
    source[(clamp(py, sh - 1) * sw + clamp(px, sw - 1)) * 4 + k]!;
  const blend = (a: number, b: number, t: number): number =>
    f32.fma(fround(1 - t), a, fround(t * b));
  const value = blend(
    blend(pixel(ix, iy), pixel(ix + 1, iy), ax),
    blend(pixel(ix, iy + 1), pixel(ix + 1, iy + 1), ax),
    ay,
  );
  const scaled = fround(Math.min(1, Math.max(0, fround(value / 255))) * 255);
  const floor = Math.floor(scaled);
  return scaled - floor > 0.5 || (scaled - floor === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}

const [iw, ih] = [33, 21];
const image = random.bytes(iw * ih);
const untouched = new Uint8Array(iw * ih).fill(77);
const sobel = (value: number, i: number): number => {
  const [x, y] = [i % iw, Math.floor(i / iw)];
  if (x === 0 || y === 0 || x === iw - 1 || y === ih - 1) return value;
  const at = (dx: number, dy: number): number => image[i + dy * iw + dx]!;
  const gx = -at(-1, -1) + at(1, -1) - 2 * at(-1, 0) + 2 * at(1, 0) - at(-1, 1) + at(1, 1);
  const gy = -at(-1, -1) - 2 * at(0, -1) - at(1, -1) + at(-1, 1) + 2 * at(0, 1) + at(1, 1);
  return Math.min(255, Math.abs(gx) + Math.abs(gy));
};

const [n, radius] = [301, 7];
const signal = random.wildFloats(n);
const cf = random.floats(64, -1, 1);
const filtered = (_: number, i: number): number => {
  let sum = 0;
  for (let k = -radius; k <= radius; k++)
    sum = f32.fma(signal[clamp(i + k, n - 1)]!, cf[k + radius]!, sum);
  return sum;
};

const texels = random.wildFloats(32 * 5 * 4);
const pixels = random.bytes(24 * 13 * 4);

export const K11_RESIZE: SampleModule = {
  name: 'k11_resize',
  cases: [
    {
      kernel: 'resize_bilinear',
      name: '17 × 13 to 40 × 31',
      memory: { s: source, d: new Uint8Array(dw * dh * 4) },
      launches: [{ grid: [3, 4], block: [16, 8], args: ['s', 'd', sw, sh, dw, dh] }],
      outputs: {
        d: {
          equal: 'bits',
          reference: () => Uint8Array.from({ length: dw * dh * 4 }, (_, at) => resized(at)),
        },
      },
    },
    {
      // Unnormalised coordinates at the middles of texels: no filter has anything to mix.
      kernel: 'tex_sample',
      name: 'the middles of 32 × 5 texels',
      memory: { texels, o: new Float32Array(32 * 4) },
      launches: [
        {
          grid: 1,
          block: 32,
          args: [{ image: 'texture', memory: 'texels', width: 32, height: 5 }, 'o', 32],
        },
      ],
      outputs: { o: { equal: 'bits', reference: () => texels.subarray(0, 32 * 4) } },
    },
    {
      kernel: 'surf_rw',
      name: '24 × 13 pixels of four bytes',
      memory: { pixels },
      launches: [
        {
          grid: [3, 13],
          block: 8,
          args: [{ image: 'surface', memory: 'pixels', width: 24, height: 13 }, 24],
        },
      ],
      outputs: {
        pixels: {
          equal: 'bits',
          reference: () => pixels.map((value, at) => (at % 4 === 0 ? 255 - value : value)),
        },
      },
    },
    {
      kernel: 'sobel',
      name: '33 × 21',
      memory: { image, edges: untouched },
      launches: [{ grid: [3, 2], block: [16, 16], args: ['image', 'edges', iw, ih] }],
      outputs: { edges: { equal: 'bits', reference: () => untouched.map(sobel) } },
    },
    {
      kernel: 'conv1d',
      name: '301 floats of all kinds, 15 taps',
      memory: { signal, out: new Float32Array(n) },
      variables: { cf },
      launches: [{ grid: 3, block: 128, args: ['signal', 'out', n, radius] }],
      outputs: { out: { equal: 'bits', reference: () => signal.map(filtered) } },
    },
  ],
};
