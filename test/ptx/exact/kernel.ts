/** One instruction over arrays of 64-bit cells, as PTX that every device runs. */
import type { Case } from './cases.js';

export const KERNEL = 'apply';
export const BLOCK = 128;
/** Elements that one thread works on, so that a launch has few blocks. */
export const PER_THREAD = 16;

/** ptxas takes registers of 8 bits, and no others, where the other side of a conversion is bf16. */
const isByte = (instruction: string, type: string): boolean =>
  instruction.includes('bf16') && /^[su]8$/.test(type);

const width = (type: string): number =>
  Math.max(16, type === 'bf16' ? 16 : Number(/\d+/.exec(type)![0]));

/** (operands, results, count): operand k of element i is the cell at operands[i + k * count]. */
export function kernelOf({
  instruction,
  operands,
  result,
}: Pick<Case, 'instruction' | 'operands' | 'result'>): string {
  const names = ['%a', '%b', '%c'];
  const loads = operands
    .map(
      (type, index) =>
        `ld.global.b${isByte(instruction, type) ? 8 : width(type)} ${names[index]!}, ` +
        `[%at];\nadd.s64 %at, %at, %stride;`,
    )
    .join('\n');
  const used = operands.map((_, index) => names[index]!).join(', ');
  const bits = width(result);
  const registers = operands
    .map((type, index) => `.reg .b${isByte(instruction, type) ? 8 : width(type)} ${names[index]!};`)
    .join(' ');
  const apply = isByte(instruction, result)
    ? `${instruction} %byte, ${used};\ncvt.${result[0]}16.${result} %r, %byte;`
    : `${instruction} %r, ${used};`;
  return `.version 8.0
.target sm_90
.address_size 64
.visible .entry ${KERNEL}(.param .u64 operands, .param .u64 results, .param .u32 count)
{
.reg .b64 %in, %out, %at, %stride, %wide; .reg .b32 %i, %n, %t, %k, %s; .reg .pred %p;
${registers} .reg .b${bits} %r; .reg .b8 %byte;
ld.param.u64 %in, [operands]; ld.param.u64 %out, [results]; ld.param.u32 %n, [count];
cvta.to.global.u64 %in, %in; cvta.to.global.u64 %out, %out;
mov.u32 %i, %ctaid.x; mov.u32 %t, %tid.x; mad.lo.u32 %i, %i, ${BLOCK}, %t;
mul.lo.u32 %i, %i, ${PER_THREAD};
mul.wide.u32 %stride, %n, 8; mov.u32 %k, 0;
NEXT: setp.ge.u32 %p, %i, %n; @%p bra DONE;
mul.wide.u32 %at, %i, 8; add.s64 %at, %at, %in;
${loads}
${apply}
cvt.u64.u${bits} %wide, %r;
mul.wide.u32 %at, %i, 8; add.s64 %at, %at, %out; st.global.u64 [%at], %wide;
add.u32 %i, %i, 1; add.u32 %k, %k, 1; setp.lt.u32 %p, %k, ${PER_THREAD}; @%p bra NEXT;
DONE: ret;
}
`;
}
