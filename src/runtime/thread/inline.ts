/**
 * What a device needs whose commands all run on the JS thread. Imported where one is opened: with
 * the CPU device and its compiler it is most of the package, and takes twice as long to read as all
 * the rest.
 */
export { LibraryCaller } from '../../native/library-caller.js';
export { runProcedure } from '../procedures.js';
export { ThreadLoop } from './loop.js';
export { openDevice, openDriver } from './open-driver.js';
