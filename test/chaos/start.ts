/**
 * Becomes the native init exactly as `workspace-runner start` does, with other entry programs for worker and gateway:
 * they prepare the faults and then load the product's own.
 */
import { fileURLToPath } from 'node:url';
import { compiled } from './entry/compiled.ts';

const { prepareStart } = await compiled<typeof import('../../deploy/start.ts')>('deploy/start.js');
const entry = (part: string): string => fileURLToPath(new URL(`./entry/${part}/main.ts`, import.meta.url));
const { program, args, environment } = prepareStart('start', process.env, () => undefined);
const [worker, gateway] = args.slice(-2);
if (!worker?.endsWith('worker/main.js') || !gateway?.endsWith('gateway/main.js')) throw new Error('not an init to be');
if (process.execve === undefined) throw new Error('this Node.js is too old');
const own = ['CHAOS_FOLDER', 'NODE_COMPILE_CACHE'].map((name) => [name, process.env[name] ?? '']);
process.execve(program, [...args.slice(0, -2), entry('worker'), entry('gateway')], {
  ...environment,
  ...Object.fromEntries(own),
});
