/** Kernels whose threads work together, or store their indices. */
export const THREADS = `
.version 7.0
.target sm_70
.address_size 64

.extern .shared .align 16 .b8 dynamic_shared[];

// out[block] = the sum of the block's 256 elements, by halving in shared memory
.visible .entry block_sum(
	.param .u64 block_sum_param_0,
	.param .u64 block_sum_param_1
)
.maxntid 256, 1, 1
{
	.reg .pred 	%p<4>;
	.reg .b32 	%r<20>;
	.reg .b64 	%rd<9>;
	.shared .align 4 .b8 block_sum_partial[1024];

	ld.param.u64 	%rd1, [block_sum_param_0];
	ld.param.u64 	%rd2, [block_sum_param_1];
	cvta.to.global.u64 	%rd3, %rd1;
	cvta.to.global.u64 	%rd4, %rd2;
	mov.u32 	%r1, %tid.x;
	mov.u32 	%r2, %ctaid.x;
	mov.u32 	%r3, %ntid.x;
	mad.lo.s32 	%r4, %r2, %r3, %r1;
	mul.wide.u32 	%rd5, %r4, 4;
	add.s64 	%rd6, %rd4, %rd5;
	ld.global.u32 	%r5, [%rd6];
	mov.u32 	%r6, block_sum_partial;
	shl.b32 	%r7, %r1, 2;
	add.s32 	%r8, %r6, %r7;
	st.shared.u32 	[%r8], %r5;
	bar.sync 	0;
	shr.u32 	%r9, %r3, 1;
$L__BB0_1:
	setp.eq.s32 	%p1, %r9, 0;
	@%p1 bra 	$L__BB0_4;
	setp.ge.u32 	%p2, %r1, %r9;
	@%p2 bra 	$L__BB0_3;
	shl.b32 	%r10, %r9, 2;
	add.s32 	%r11, %r8, %r10;
	ld.shared.u32 	%r12, [%r11];
	ld.shared.u32 	%r13, [%r8];
	add.s32 	%r14, %r12, %r13;
	st.shared.u32 	[%r8], %r14;
$L__BB0_3:
	bar.sync 	0;
	shr.u32 	%r9, %r9, 1;
	bra.uni 	$L__BB0_1;
$L__BB0_4:
	setp.ne.s32 	%p3, %r1, 0;
	@%p3 bra 	$L__BB0_6;
	ld.shared.u32 	%r15, [block_sum_partial];
	mul.wide.u32 	%rd7, %r2, 4;
	add.s64 	%rd8, %rd3, %rd7;
	st.global.u32 	[%rd8], %r15;
$L__BB0_6:
	ret;
}

// Reverses the block's elements through dynamic shared memory.
.visible .entry reverse_block(
	.param .u64 reverse_block_param_0
)
{
	.reg .b32 	%r<14>;
	.reg .b64 	%rd<5>;

	ld.param.u64 	%rd1, [reverse_block_param_0];
	cvta.to.global.u64 	%rd2, %rd1;
	mov.u32 	%r1, %tid.x;
	mov.u32 	%r2, %ntid.x;
	mov.u32 	%r3, %ctaid.x;
	mad.lo.s32 	%r4, %r3, %r2, %r1;
	mul.wide.u32 	%rd3, %r4, 4;
	add.s64 	%rd4, %rd2, %rd3;
	ld.global.u32 	%r5, [%rd4];
	mov.u32 	%r6, dynamic_shared;
	shl.b32 	%r7, %r1, 2;
	add.s32 	%r8, %r6, %r7;
	st.shared.u32 	[%r8], %r5;
	bar.sync 	0;
	sub.s32 	%r9, %r2, %r1;
	add.s32 	%r10, %r9, -1;
	shl.b32 	%r11, %r10, 2;
	add.s32 	%r12, %r6, %r11;
	ld.shared.u32 	%r13, [%r12];
	st.global.u32 	[%rd4], %r13;
	ret;
}

// out[linear thread] = tid | ctaid << 16, four bits of x, y and z each
.visible .entry who(
	.param .u64 who_param_0
)
{
	.reg .b32 	%r<32>;
	.reg .b64 	%rd<5>;

	ld.param.u64 	%rd1, [who_param_0];
	cvta.to.global.u64 	%rd2, %rd1;
	mov.u32 	%r1, %tid.x;
	mov.u32 	%r2, %tid.y;
	mov.u32 	%r3, %tid.z;
	mov.u32 	%r4, %ctaid.x;
	mov.u32 	%r5, %ctaid.y;
	mov.u32 	%r6, %ctaid.z;
	mov.u32 	%r7, %ntid.x;
	mov.u32 	%r8, %ntid.y;
	mov.u32 	%r9, %ntid.z;
	mov.u32 	%r10, %nctaid.x;
	mov.u32 	%r11, %nctaid.y;
	mad.lo.s32 	%r12, %r6, %r11, %r5;
	mad.lo.s32 	%r13, %r12, %r10, %r4;
	mad.lo.s32 	%r14, %r13, %r9, %r3;
	mad.lo.s32 	%r15, %r14, %r8, %r2;
	mad.lo.s32 	%r16, %r15, %r7, %r1;
	shl.b32 	%r17, %r2, 4;
	or.b32  	%r18, %r1, %r17;
	shl.b32 	%r19, %r3, 8;
	or.b32  	%r20, %r18, %r19;
	shl.b32 	%r21, %r4, 16;
	or.b32  	%r22, %r20, %r21;
	shl.b32 	%r23, %r5, 20;
	or.b32  	%r24, %r22, %r23;
	shl.b32 	%r25, %r6, 24;
	or.b32  	%r26, %r24, %r25;
	mul.wide.u32 	%rd3, %r16, 4;
	add.s64 	%rd4, %rd2, %rd3;
	st.global.u32 	[%rd4], %r26;
	ret;
}

// bins[in[i]] += 1
.visible .entry histogram(
	.param .u64 histogram_param_0,
	.param .u64 histogram_param_1,
	.param .u32 histogram_param_2
)
{
	.reg .pred 	%p<2>;
	.reg .b32 	%r<8>;
	.reg .b64 	%rd<8>;

	ld.param.u64 	%rd1, [histogram_param_0];
	ld.param.u64 	%rd2, [histogram_param_1];
	ld.param.u32 	%r2, [histogram_param_2];
	mov.u32 	%r3, %ctaid.x;
	mov.u32 	%r4, %ntid.x;
	mov.u32 	%r5, %tid.x;
	mad.lo.s32 	%r1, %r3, %r4, %r5;
	setp.ge.u32 	%p1, %r1, %r2;
	@%p1 bra 	$L__BB3_2;
	cvta.to.global.u64 	%rd3, %rd1;
	cvta.to.global.u64 	%rd4, %rd2;
	cvt.u64.u32 	%rd5, %r1;
	add.s64 	%rd6, %rd4, %rd5;
	ld.global.u8 	%r6, [%rd6];
	mul.wide.u32 	%rd7, %r6, 4;
	add.s64 	%rd7, %rd3, %rd7;
	atom.global.add.u32 	%r7, [%rd7], 1;
$L__BB3_2:
	ret;
}
`;
