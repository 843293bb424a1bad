/** Kernels that store their arguments. */
export const PARAMETERS = `
.version 7.0
.target sm_70
.address_size 64

// Integers, each widened to 64 bits.
.visible .entry integers(
	.param .u64 integers_param_0,
	.param .u8 integers_param_1,
	.param .s8 integers_param_2,
	.param .u16 integers_param_3,
	.param .s16 integers_param_4,
	.param .u32 integers_param_5,
	.param .s32 integers_param_6,
	.param .u64 integers_param_7,
	.param .s64 integers_param_8
)
{
	.reg .b64 	%rd<11>;

	ld.param.u64 	%rd1, [integers_param_0];
	cvta.to.global.u64 	%rd2, %rd1;
	ld.param.u8 	%rd3, [integers_param_1];
	st.global.u64 	[%rd2], %rd3;
	ld.param.s8 	%rd4, [integers_param_2];
	st.global.u64 	[%rd2+8], %rd4;
	ld.param.u16 	%rd5, [integers_param_3];
	st.global.u64 	[%rd2+16], %rd5;
	ld.param.s16 	%rd6, [integers_param_4];
	st.global.u64 	[%rd2+24], %rd6;
	ld.param.u32 	%rd7, [integers_param_5];
	st.global.u64 	[%rd2+32], %rd7;
	ld.param.s32 	%rd8, [integers_param_6];
	st.global.u64 	[%rd2+40], %rd8;
	ld.param.u64 	%rd9, [integers_param_7];
	st.global.u64 	[%rd2+48], %rd9;
	ld.param.s64 	%rd10, [integers_param_8];
	st.global.u64 	[%rd2+56], %rd10;
	ret;
}

.visible .entry floats(
	.param .u64 floats_param_0,
	.param .f32 floats_param_1,
	.param .f64 floats_param_2
)
{
	.reg .f32 	%f<2>;
	.reg .f64 	%fd<3>;
	.reg .b64 	%rd<3>;

	ld.param.u64 	%rd1, [floats_param_0];
	cvta.to.global.u64 	%rd2, %rd1;
	ld.param.f32 	%f1, [floats_param_1];
	cvt.f64.f32 	%fd1, %f1;
	st.global.f64 	[%rd2], %fd1;
	ld.param.f64 	%fd2, [floats_param_2];
	st.global.f64 	[%rd2+8], %fd2;
	ret;
}

// Words of one and two bytes whose type the PTX does not tell: f8, f16, bf16, bool.
.visible .entry words(
	.param .u64 words_param_0,
	.param .b16 words_param_1,
	.param .b16 words_param_2,
	.param .b8 words_param_3,
	.param .b8 words_param_4,
	.param .b8 words_param_5
)
{
	.reg .b16 	%rs<6>;
	.reg .b64 	%rd<3>;

	ld.param.u64 	%rd1, [words_param_0];
	cvta.to.global.u64 	%rd2, %rd1;
	ld.param.b16 	%rs1, [words_param_1];
	st.global.u16 	[%rd2], %rs1;
	ld.param.b16 	%rs2, [words_param_2];
	st.global.u16 	[%rd2+2], %rs2;
	ld.param.u8 	%rs3, [words_param_3];
	st.global.u16 	[%rd2+4], %rs3;
	ld.param.u8 	%rs4, [words_param_4];
	st.global.u16 	[%rd2+6], %rs4;
	ld.param.u8 	%rs5, [words_param_5];
	st.global.u16 	[%rd2+8], %rs5;
	ret;
}

// struct { int a; double b; float c; } by value
.visible .entry structure(
	.param .u64 structure_param_0,
	.param .align 8 .b8 structure_param_1[24],
	.param .u32 structure_param_2
)
{
	.reg .b32 	%r<3>;
	.reg .f32 	%f<2>;
	.reg .f64 	%fd<5>;
	.reg .b64 	%rd<3>;

	ld.param.u64 	%rd1, [structure_param_0];
	cvta.to.global.u64 	%rd2, %rd1;
	ld.param.u32 	%r1, [structure_param_1];
	cvt.rn.f64.s32 	%fd1, %r1;
	st.global.f64 	[%rd2], %fd1;
	ld.param.f64 	%fd2, [structure_param_1+8];
	st.global.f64 	[%rd2+8], %fd2;
	ld.param.f32 	%f1, [structure_param_1+16];
	cvt.f64.f32 	%fd3, %f1;
	st.global.f64 	[%rd2+16], %fd3;
	ld.param.u32 	%r2, [structure_param_2];
	cvt.rn.f64.s32 	%fd4, %r2;
	st.global.f64 	[%rd2+24], %fd4;
	ret;
}

// out[0] = 1 where the second pointer is null, else 0
.visible .entry is_null(
	.param .u64 is_null_param_0,
	.param .u64 is_null_param_1
)
{
	.reg .pred 	%p<2>;
	.reg .b32 	%r<2>;
	.reg .b64 	%rd<4>;

	ld.param.u64 	%rd1, [is_null_param_0];
	cvta.to.global.u64 	%rd2, %rd1;
	ld.param.u64 	%rd3, [is_null_param_1];
	setp.eq.s64 	%p1, %rd3, 0;
	selp.u32 	%r1, 1, 0, %p1;
	st.global.u32 	[%rd2], %r1;
	ret;
}

// One byte from the second pointer to the first, for each thread
.visible .entry bytes(
	.param .u64 bytes_param_0,
	.param .u64 bytes_param_1
)
{
	.reg .b16 	%rs<2>;
	.reg .b32 	%r<2>;
	.reg .b64 	%rd<8>;

	ld.param.u64 	%rd1, [bytes_param_0];
	ld.param.u64 	%rd2, [bytes_param_1];
	cvta.to.global.u64 	%rd3, %rd1;
	cvta.to.global.u64 	%rd4, %rd2;
	mov.u32 	%r1, %tid.x;
	cvt.u64.u32 	%rd5, %r1;
	add.s64 	%rd6, %rd4, %rd5;
	ld.global.u8 	%rs1, [%rd6];
	add.s64 	%rd7, %rd3, %rd5;
	st.global.u8 	[%rd7], %rs1;
	ret;
}
`;
