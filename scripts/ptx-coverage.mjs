// Writes docs/ptx-coverage.md from the rules of the PTX compiler. Run it with `npm run docs:ptx`.

import { writeFileSync } from 'node:fs';
import { coverageTable } from '../src/ptx/rules/coverage-table.ts';

writeFileSync(new URL('../docs/ptx-coverage.md', import.meta.url), coverageTable());
