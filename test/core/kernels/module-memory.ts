/** A kernel that uses a module's own variables. */
export const MODULE_MEMORY = `
.version 7.0
.target sm_70
.address_size 64

.visible .global .align 4 .u32 counter = 40;
.visible .const .align 4 .f32 weights[4] = {0f3F800000, 0f40000000, 0f40400000, 0f40800000};

// out[i] = weights[i] * counter, and then thread 0 counts one up
.visible .entry weigh(
	.param .u64 weigh_param_0
)
{
	.reg .pred 	%p<2>;
	.reg .f32 	%f<4>;
	.reg .b32 	%r<4>;
	.reg .b64 	%rd<8>;

	ld.param.u64 	%rd1, [weigh_param_0];
	cvta.to.global.u64 	%rd2, %rd1;
	mov.u32 	%r1, %tid.x;
	mul.wide.u32 	%rd3, %r1, 4;
	mov.u64 	%rd4, weights;
	add.s64 	%rd5, %rd4, %rd3;
	ld.const.f32 	%f1, [%rd5];
	mov.u64 	%rd6, counter;
	ld.global.u32 	%r2, [%rd6];
	cvt.rn.f32.u32 	%f2, %r2;
	mul.f32 	%f3, %f1, %f2;
	add.s64 	%rd7, %rd2, %rd3;
	st.global.f32 	[%rd7], %f3;
	bar.sync 	0;
	setp.ne.s32 	%p1, %r1, 0;
	@%p1 bra 	$L__BB0_2;
	add.s32 	%r3, %r2, 1;
	st.global.u32 	[counter], %r3;
$L__BB0_2:
	ret;
}
`;
