/**
 * The package's version, as in package.json. It is written here, because a bundle has no
 * package.json beside it.
 */
export const VERSION = '0.1.0';
