import { writeFileSync } from 'node:fs';
import { heavyModule } from '../kernels/heavy-module.js';
writeFileSync('/tmp/benchpeers/heavy.ptx', heavyModule(Number(process.argv[2])));
