/** Most axes of a tensor: Dims::MAX_DIMS */
export const MOST_DIMS = 8;
