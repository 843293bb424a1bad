/**
 * `say` prints a line for each of its threads: its argument, and the thread's number in the grid.
 */
export const PRINTING = `
.version 7.0
.target sm_70
.address_size 64

.extern .func (.param .b32 func_retval0) vprintf
(
	.param .b64 vprintf_param_0,
	.param .b64 vprintf_param_1
);
.global .align 1 .b8 format[15] = {115, 97, 105, 100, 32, 37, 100, 32, 98, 121, 32, 37, 100, 10, 0};

.visible .entry say(
	.param .u32 say_param_0
)
{
	.local .align 8 .b8 	depot[8];
	.reg .b64 	%SP, %SPL, %args, %format, %generic;
	.reg .b32 	%value, %block, %size, %thread, %number, %ignored;

	mov.u64 	%SPL, depot;
	cvta.local.u64 	%SP, %SPL;
	ld.param.u32 	%value, [say_param_0];
	mov.u32 	%block, %ctaid.x;
	mov.u32 	%size, %ntid.x;
	mov.u32 	%thread, %tid.x;
	mad.lo.u32 	%number, %block, %size, %thread;
	st.local.u32 	[%SPL], %value;
	st.local.u32 	[%SPL+4], %number;
	mov.u64 	%format, format;
	cvta.global.u64 	%generic, %format;
	{
	.param .b64 param0;
	st.param.b64 	[param0+0], %generic;
	.param .b64 param1;
	st.param.b64 	[param1+0], %SP;
	.param .b32 retval0;
	call.uni (retval0), vprintf, (param0, param1);
	ld.param.b32 	%ignored, [retval0+0];
	}
	ret;
}
`;
