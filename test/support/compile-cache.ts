import { fileURLToPath } from 'node:url';

/**
 * The environment of a TypeScript file that is started by itself: its types need not be stripped each time, which takes as
 * long as all else of its start. Whoever can't write there strips them again.
 */
export const compileCache = {
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../dist/compile-cache', import.meta.url)),
};
