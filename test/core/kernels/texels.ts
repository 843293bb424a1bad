/** Kernels that read textures and write surfaces, one thread for each of `n` points. */

const HEAD = `.version 7.0
.target sm_75
.address_size 64
`;

/** A kernel of a texture, points of four words, and four words of result for each. */
const fetch = (name: string, declarations: string, instruction: string): string => `
.visible .entry ${name}(.param .u64 tex, .param .u64 at, .param .u64 out, .param .u32 n) {
  .reg .pred %q; .reg .b32 %i, %n, %b, %t, %r<4>, %p<4>; .reg .b64 %tex, %at, %out, %o;
  ${declarations}
  ld.param.u64 %tex, [tex]; ld.param.u64 %at, [at]; ld.param.u64 %out, [out]; ld.param.u32 %n, [n];
  mov.u32 %b, %ctaid.x; mov.u32 %t, %tid.x; mov.u32 %i, %ntid.x; mad.lo.u32 %i, %b, %i, %t;
  setp.ge.u32 %q, %i, %n; @%q ret;
  cvta.to.global.u64 %at, %at; cvta.to.global.u64 %out, %out; mul.wide.u32 %o, %i, 16;
  add.u64 %at, %at, %o; add.u64 %out, %out, %o;
  ld.global.v4.u32 {%p0, %p1, %p2, %p3}, [%at];
  ${instruction}
  st.global.v4.u32 [%out], {%r0, %r1, %r2, %r3}; ret;
}`;

const XYZ = '.reg .f32 %x, %y, %z;';
const FLOATS = 'mov.b32 %x, %p0; mov.b32 %y, %p1; mov.b32 %z, %p2;';
const RESULT = '.reg .f32 %f<4>;';
const BITS = 'mov.b32 %r0, %f0; mov.b32 %r1, %f1; mov.b32 %r2, %f2; mov.b32 %r3, %f3;';

/** Reads floats at float coordinates, and gives their bits. */
const sample = (name: string, instruction: string, coordinates: string): string =>
  fetch(
    name,
    `${XYZ} ${RESULT}`,
    `${FLOATS} ${instruction} {%f0, %f1, %f2, %f3}, [%tex, {${coordinates}}]; ${BITS}`,
  );

export const TEXELS = `${HEAD}
${fetch('fetch1d', RESULT, `tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%tex, {%p0}]; ${BITS}`)}
${sample('fetch2d', 'tex.2d.v4.f32.f32', '%x, %y')}
${fetch('fetch2d_u32', XYZ, `${FLOATS} tex.2d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [%tex, {%x, %y}];`)}
${sample('fetch3d', 'tex.3d.v4.f32.f32', '%x, %y, %z, %z')}
${sample('layer2d', 'tex.a2d.v4.f32.f32', '%p3, %x, %y, %y')}
.visible .entry add_one(.param .u64 surf, .param .u32 width) {
  .reg .pred %q; .reg .b32 %x, %y, %w; .reg .b64 %s; .reg .f32 %f;
  ld.param.u64 %s, [surf]; ld.param.u32 %w, [width]; mov.u32 %x, %tid.x; mov.u32 %y, %ctaid.x;
  setp.ge.u32 %q, %x, %w; @%q ret; shl.b32 %x, %x, 2;
  suld.b.2d.b32.trap {%w}, [%s, {%x, %y}]; mov.b32 %f, %w; add.f32 %f, %f, 0f3F800000;
  mov.b32 %w, %f;
  sust.b.2d.b32.trap [%s, {%x, %y}], {%w}; ret;
}
`;
