import { Device, Tensor, f16, input, output, tileKernel } from '../../src/index.js';
import { Programs } from '../peers/programs.js';
import { elementBits, prove } from './matrix-product.js';
await using device = await Device.open();
const { stream } = device.core;
const programs = new Programs(device.ordinal);
for (const side of [4096, 8192]) {
  const products = side === 4096 ? 20 : 6;
  const cublas = async () => { const { samples } = await (await programs.get('cuBLAS')).round(`product 5 ${side} ${side} ${side} ${products}`); return [...samples].sort((a: number, b: number) => a - b)[2]!; };
  const made = async (from: number) => { const t = Tensor.of(device.core.alloc(f16, side * side), [side, side]); await t.writeBits(Uint16Array.from({ length: side * side }, (_, i) => elementBits(i + from))); return t; };
  const [a, b] = [await made(0), await made(7)];
  const c = Tensor.of(device.core.alloc(f16, side * side), [side, side]);
  for (const n of [256, 192, 128]) {
    const kernel: any = tileKernel('product', { c: output(f16), a: input(f16), b: input(f16) }, ({ c, a, b }, tile) => {
      let sum = 0;
      for (const part of tile.over('k')) sum = tile.dot(a.load(part), b.load(part), sum);
      c.store(sum);
    }, { axes: { c: ['m', 'n'], a: ['m', 'k'], b: ['k', 'n'] }, tile: { m: 128, n, k: { walk: 64 } } } as any);
    const op = kernel({ c, a, b });
    await op.runOn(stream);
    prove(await c.read(), side);
    const best = await cublas();
    const times: number[] = [];
    for (let i = 0; i < 5; i++) {
      const [begin, end] = [device.core.createEvent(), device.core.createEvent()];
      stream.record(begin);
      const all = Array.from({ length: products }, () => op.runOn(stream));
      stream.record(end);
      times.push(((await begin.elapsed(end)) * 1000) / products);
      await Promise.all(all);
    }
    const time = times.sort((x, y) => x - y)[2]!;
    console.log(`tile kernel ${side}, n ${n}: ${time.toFixed(1)} µs, cuBLAS ${best.toFixed(1)}, ${(best / time).toFixed(3)} of its speed`);
  }
  for (const t of [a, b, c]) t.close();
}
await programs.close();
