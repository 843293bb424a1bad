/**
 * Kernels that run for long. `hold` runs until the module's variable `gate` is not zero: a test
 * decides when the work ends, whatever the machine's load. The gate is not an argument, so that
 * tracking does not delay its writers.
 */
export const WAITING = `
.version 7.0
.target sm_70
.address_size 64

.visible .global .align 4 .u32 gate = 0;

// Waits for the gate, then data[0] += 1.
.visible .entry hold(
	.param .u64 hold_param_0
)
{
	.reg .pred 	%p<2>;
	.reg .b32 	%r<4>;
	.reg .b64 	%rd<5>;

	ld.param.u64 	%rd1, [hold_param_0];
	cvta.to.global.u64 	%rd2, %rd1;
	mov.u64 	%rd3, gate;
$L__BB0_1:
	ld.volatile.global.u32 	%r1, [%rd3];
	setp.eq.s32 	%p1, %r1, 0;
	@%p1 bra 	$L__BB0_1;
	ld.global.u32 	%r2, [%rd2];
	add.s32 	%r3, %r2, 1;
	st.global.u32 	[%rd2], %r3;
	ret;
}

// data[thread] = the seed after "rounds" rounds of a linear congruential generator
.visible .entry spin(
	.param .u64 spin_param_0,
	.param .u32 spin_param_1,
	.param .u32 spin_param_2
)
{
	.reg .pred 	%p<3>;
	.reg .b32 	%r<11>;
	.reg .b64 	%rd<5>;

	ld.param.u64 	%rd1, [spin_param_0];
	ld.param.u32 	%r9, [spin_param_1];
	ld.param.u32 	%r8, [spin_param_2];
	mov.u32 	%r3, %ctaid.x;
	mov.u32 	%r4, %ntid.x;
	mov.u32 	%r5, %tid.x;
	mad.lo.s32 	%r1, %r3, %r4, %r5;
	mov.u32 	%r10, 0;
	setp.eq.s32 	%p1, %r8, 0;
	@%p1 bra 	$L__BB1_2;
$L__BB1_1:
	mad.lo.s32 	%r9, %r9, 1664525, 1013904223;
	add.s32 	%r10, %r10, 1;
	setp.lt.u32 	%p2, %r10, %r8;
	@%p2 bra 	$L__BB1_1;
$L__BB1_2:
	cvta.to.global.u64 	%rd2, %rd1;
	mul.wide.u32 	%rd3, %r1, 4;
	add.s64 	%rd4, %rd2, %rd3;
	st.global.u32 	[%rd4], %r9;
	ret;
}

// Never ends; it stores its count to memory that is not used.
.visible .entry forever(
	.param .u64 forever_param_0
)
{
	.reg .b32 	%r<3>;
	.reg .b64 	%rd<3>;

	ld.param.u64 	%rd1, [forever_param_0];
	cvta.to.global.u64 	%rd2, %rd1;
$L__BB2_1:
	ld.volatile.global.u32 	%r1, [%rd2];
	add.s32 	%r2, %r1, 1;
	st.volatile.global.u32 	[%rd2], %r2;
	bra.uni 	$L__BB2_1;
}
`;

/** What `spin` writes. */
export function spun(seed: number, rounds: number): number {
  let value = seed | 0;
  for (let i = 0; i < rounds; i++) value = (Math.imul(value, 1664525) + 1013904223) | 0;
  return value;
}
