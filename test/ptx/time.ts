import { readFileSync, readdirSync } from 'node:fs';
import { compilePtx, parsePtx } from 'async-cuda/ptx';
const S = new URL('./samples/sm_80/', import.meta.url);
const best = (f: () => void, n = 30) => {
  let b = 1e9;
  for (let i = 0; i < n; i++) {
    const t = performance.now();
    f();
    b = Math.min(b, performance.now() - t);
  }
  return b;
};
for (const f of readdirSync(S)) {
  const text = readFileSync(new URL(f, S), 'utf8');
  const n = (text.match(/;/g) ?? []).length;
  console.log(
    f,
    n,
    'statements; parse',
    best(() => {
      parsePtx(text);
    }).toFixed(2),
    'all',
    best(() => {
      compilePtx(text);
    }).toFixed(2),
  );
}
