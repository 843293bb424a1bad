/**
 * The parts of a device whose commands all run on the JavaScript thread. They are imported where
 * one is opened: with the CPU device and its compiler they are most of the package, and take twice
 * as long to load as all the rest.
 */
export { LibraryCaller } from '../../native/library-caller.js';
export { runProcedure } from '../procedures.js';
export { ThreadLoop } from './loop.js';
export { openDevice, openDriver } from './open-driver.js';
