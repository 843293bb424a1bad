/** Kernels with faults. Each makes the context of its device unusable. */
export const FAULTING = `
.version 7.0
.target sm_70
.address_size 64

// Reads an address that no allocation is near.
.visible .entry read_far(
	.param .u64 read_far_param_0
)
{
	.reg .b32 	%r<2>;
	.reg .b64 	%rd<4>;

	ld.param.u64 	%rd1, [read_far_param_0];
	cvta.to.global.u64 	%rd2, %rd1;
	mov.u64 	%rd3, 123145302310912;
	ld.global.u32 	%r1, [%rd3];
	st.global.u32 	[%rd2], %r1;
	ret;
}

// Writes to the null pointer.
.visible .entry write_null()
{
	.reg .b32 	%r<2>;
	.reg .b64 	%rd<2>;

	mov.u64 	%rd1, 0;
	mov.u32 	%r1, 1;
	st.global.u32 	[%rd1], %r1;
	ret;
}

// Reads four bytes at an odd address.
.visible .entry misaligned(
	.param .u64 misaligned_param_0
)
{
	.reg .b32 	%r<2>;
	.reg .b64 	%rd<3>;

	ld.param.u64 	%rd1, [misaligned_param_0];
	cvta.to.global.u64 	%rd2, %rd1;
	ld.global.u32 	%r1, [%rd2+1];
	st.global.u32 	[%rd2], %r1;
	ret;
}

.visible .entry trapped()
{
	trap;
	ret;
}

// data[i] += 1: work that is in flight when another kernel faults.
.visible .entry harmless(
	.param .u64 harmless_param_0
)
{
	.reg .b32 	%r<3>;
	.reg .b64 	%rd<3>;

	ld.param.u64 	%rd1, [harmless_param_0];
	cvta.to.global.u64 	%rd2, %rd1;
	ld.global.u32 	%r1, [%rd2];
	add.s32 	%r2, %r1, 1;
	st.global.u32 	[%rd2], %r2;
	ret;
}
`;
