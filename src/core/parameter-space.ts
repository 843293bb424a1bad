/** The most bytes of all parameters of a kernel together (4,096 before sm_70 or CUDA 12.1). */
export const MAX_PARAMETER_BYTES = 32764;
