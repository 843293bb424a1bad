/**
 * Where a thread of HTTP begins. On Node 20 the loader of TypeScript in the process does not apply
 * to its threads: it is registered again.
 */
import { register } from 'tsx/esm/api';

register();
await import('./http-thread.ts');
