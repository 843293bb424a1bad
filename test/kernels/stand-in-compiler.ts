/** PTX in place of the compiler's, for tests of the code around the compiler. */
import type { KernelSource } from '../../src/compiler/signature.js';
import type { CompiledKernel } from '../../src/kernels/compiler.js';
import type { CodeForm } from '../../src/kernels/variant.js';

const PRODUCT = 'mul.rn.f32 %v, %v, %a; st.global.f32 [%o], %v; ret;';

/** y[i] = a * y[i], as `kernel('scale', { y: inout(f32), a: f32 }, …)` would be compiled. */
export const SCALE: CompiledKernel = {
  ptx: `.version 7.0
.target sm_70
.address_size 64
.visible .entry scale(.param .u64 y, .param .f32 a, .param .u32 n) {
  .reg .b64 %p, %o; .reg .b32 %i, %n, %c, %t; .reg .f32 %v, %a; .reg .pred %q;
  ld.param.u64 %p, [y]; cvta.to.global.u64 %p, %p; ld.param.f32 %a, [a]; ld.param.u32 %n, [n];
  mov.u32 %i, %ctaid.x; mov.u32 %c, %ntid.x; mov.u32 %t, %tid.x; mad.lo.u32 %i, %i, %c, %t;
  setp.ge.u32 %q, %i, %n; @%q ret;
  mul.wide.u32 %o, %i, 4; add.s64 %o, %o, %p; ld.global.f32 %v, [%o]; ${PRODUCT}
}`,
  entry: 'scale',
  abi: [
    { kind: 'pointer', param: 0 },
    { kind: 'scalar', param: 1, storage: 'f32' },
    { kind: 'length', param: 0 },
  ],
  cooperative: false,
  dynamicShared: false,
};

/** The compilations, in order. */
export const compilations: { source: KernelSource; form: CodeForm }[] = [];

export function compile(source: KernelSource, form: CodeForm): Promise<CompiledKernel> {
  return Promise.resolve(compileNow(source, form));
}

export function compileNow(source: KernelSource, form: CodeForm): CompiledKernel {
  compilations.push({ source, form });
  return SCALE;
}
