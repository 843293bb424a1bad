import { select } from '../benchmarks.js';
import { core } from '../library.js';
import { measure } from '../measure.js';
import { Programs } from '../peers/programs.js';
import { rowsOf } from '../rows.js';
import { heading, lines } from '../table.js';
const device = await core.Device.open('cpu');
const programs = new Programs(0);
console.log(await programs.start(['launches','copies','cuda.core','CuPy','PyTorch']));
const setup = { device, quick: true, programs, count: (n: number) => Math.ceil(n/5) };
console.log(heading());
for (const b of select(process.argv.slice(2), 'cuda')) {
  const m = await measure(b, setup);
  console.log(lines(rowsOf(m, { device: 'x', date: 'd', versions: {}, bars: true })));
}
await programs.close(); await device.close();
