/**
 * Where a thread of HTTP begins. What runs TypeScript in the process does not in its threads, on
 * Node 20: it is asked for again.
 */
import { register } from 'tsx/esm/api';

register();
await import('./http-thread.ts');
