/**
 * The package's version, as package.json has it. Written down, since a bundle has no package.json
 * beside it.
 */
export const VERSION = '0.1.0';
