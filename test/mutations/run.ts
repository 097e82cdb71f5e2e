/**
 * Breaks the code on purpose, one security property at a time, in a scratch copy, and checks that the named test
 * goes red: a test that can't fail is a defect. `npm run mutations [-- words of a file or property]`.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** One way to break the code. */
interface Mutation {
  /** The file to change, relative to the root. */
  readonly file: string;
  /** A text that occurs there exactly once. */
  readonly find: string;
  readonly replace: string;
  /** The test file that must go red, and with ` > ` the name of the test. */
  readonly test: string;
  /** What is lost by this change. */
  readonly property: string;
}

const root = new URL('../..', import.meta.url).pathname.replace(/\/$/, '');
const wanted = process.argv[2];

const mutations: readonly Mutation[] = readdirSync(join(root, 'test/mutations'))
  .filter((name) => name.endsWith('.json'))
  .sort()
  .flatMap((name) => JSON.parse(readFileSync(join(root, 'test/mutations', name), 'utf8')) as Mutation[])
  .filter(({ file, property, test }) => wanted === undefined || `${file} ${property} ${test}`.includes(wanted));

/** A copy that others may read, as the gateway's user must, with the installed packages linked in. */
const makeScratch = (): string => {
  const scratch = mkdtempSync('/var/tmp/runner-mutations-');
  execFileSync('chmod', ['755', scratch]);
  const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], { cwd: root, encoding: 'utf8' });
  for (const file of files.split('\0').filter((name) => name !== '')) {
    mkdirSync(join(scratch, dirname(file)), { recursive: true });
    cpSync(join(root, file), join(scratch, file));
  }
  cpSync(join(root, 'dist'), join(scratch, 'dist'), { recursive: true });
  for (const folder of ['node_modules', 'deploy/runtime/node_modules']) {
    symlinkSync(join(root, folder), join(scratch, folder));
  }
  return scratch;
};

const build = (scratch: string, file: string): boolean => {
  if (/\.[ch]$/.test(file)) {
    return spawnSync('sh', ['helper/native/build.sh', '--all'], { cwd: scratch, stdio: 'ignore' }).status === 0;
  }
  // A mutation need not satisfy the type checker; it must only run.
  spawnSync('node_modules/.bin/tsc', ['-p', '.', '--noUnusedLocals', 'false'], { cwd: scratch, stdio: 'ignore' });
  return true;
};

/** Longer than any one test may take (vitest.config.ts), ms: one that hangs is red. */
const testRunMs = 600_000;

const testRun = (scratch: string, test: string): 'red' | 'green' | 'broken' => {
  const [file = '', name] = test.split(' > ');
  const report = join(scratch, 'report.json');
  rmSync(report, { force: true });
  const only = name === undefined ? [] : ['-t', name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')];
  const args = ['run', file, ...only, '--bail=1', '--reporter=json', `--outputFile=${report}`];
  spawnSync(join(scratch, 'node_modules/.bin/vitest'), args, { cwd: scratch, stdio: 'ignore', timeout: testRunMs });
  try {
    const seen = JSON.parse(readFileSync(report, 'utf8')) as { numFailedTests: number; numPassedTests: number };
    if (seen.numFailedTests > 0) return 'red';
    return seen.numPassedTests > 0 ? 'green' : 'broken';
  } catch {
    return 'broken';
  }
};

const tryMutation = (scratch: string, { file, find, replace, test }: Mutation): string => {
  const path = join(scratch, file);
  const text = readFileSync(path, 'utf8');
  if (text.split(find).length !== 2) return 'broken: the text to find does not occur exactly once';
  writeFileSync(
    path,
    text.replace(find, () => replace),
  );
  try {
    if (!build(scratch, file)) return 'broken: it does not compile';
    return testRun(scratch, test);
  } finally {
    // Built again as well: a broken native program must not be there still when the next thing is broken.
    writeFileSync(path, text);
    build(scratch, file);
  }
};

const scratch = makeScratch();
let survived = 0;
try {
  for (const mutation of mutations) {
    const outcome = tryMutation(scratch, mutation);
    if (outcome !== 'red') survived += 1;
    process.stdout.write(
      `${outcome === 'red' ? 'ok  ' : 'MISS'} ${outcome.padEnd(6)} ${mutation.file}: ${mutation.property}\n`,
    );
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
process.stdout.write(`${mutations.length - survived} went red, ${survived} did not\n`);
process.exitCode = survived === 0 && mutations.length > 0 ? 0 : 1;
