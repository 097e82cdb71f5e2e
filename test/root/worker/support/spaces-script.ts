/** Under the worker's rights: prepares folders; or, as at a start, removes left-overs; then makes spaces. */
import { prepareFolders } from '../../../../worker/folders.ts';
import { Spaces } from '../../../../worker/spaces.ts';

const [action, workDir = '', ...users] = process.argv.slice(2);

const outcome = (step: () => unknown): unknown => {
  try {
    return { value: step() };
  } catch (error) {
    const { name, code, message } = error as NodeJS.ErrnoException;
    return { name, code, message };
  }
};

process.umask(0o077);
const spaces = new Spaces(workDir);
const leftovers = (): unknown => outcome(() => spaces.removeLeftovers());
const ensure = (): unknown[] => users.map((user) => outcome(() => spaces.ensure(Number(user))));
const outcomes =
  action === 'prepare'
    ? [outcome(() => prepareFolders(workDir, users[0] ?? ''))]
    : action === 'start'
      ? [leftovers(), ...ensure()]
      : ensure();
process.stdout.write(JSON.stringify(outcomes));
