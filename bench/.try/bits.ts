import { bitsOfF16, chainResult } from '../runtime/chain.js';
console.log(bitsOfF16(chainResult()).toString(16), chainResult());
