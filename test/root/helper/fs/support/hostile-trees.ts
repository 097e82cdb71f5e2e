/** What a path leads to: each verb's answer by hand. */
interface Answers {
  readonly list: string;
  readonly read: string;
  readonly write: string;
  readonly delete: string;
}

/** A tree that leads a careless program out of the home. */
export interface HostileTree {
  readonly name: string;
  /** Makes it, as the user, in the home; `$OUT` is the folder outside, `$SPACE` the space. */
  readonly build: string;
  /** A path that looks as if it were beneath the home. */
  readonly path: string;
  readonly answers: Answers;
  /** What the path gives a program that checks the text of it and then opens it: see `naive`. */
  readonly naive: 'secret' | 'listing';
}

const all = (code: string): Answers => ({ list: code, read: code, write: code, delete: code });
const outside = all('outside_workspace');
/** A link as the last segment: refused, and deleted itself. */
const leaf: Answers = { list: 'symlink', read: 'symlink', write: 'symlink', delete: 'deleted' };

const chain = (length: number, target: string): string =>
  `ln -s ${target} l0; i=1; while [ $i -lt ${length} ]; do ln -s l$((i-1)) l$i; i=$((i+1)); done`;

export const hostileTrees: readonly HostileTree[] = [
  { name: 'a link to a file', build: 'ln -s ../../outside/secret l', path: 'l', answers: leaf, naive: 'secret' },
  { name: 'an absolute link to a file', build: 'ln -s "$OUT/secret" l', path: 'l', answers: leaf, naive: 'secret' },
  { name: 'a link to a folder', build: 'ln -s ../../outside l', path: 'l', answers: leaf, naive: 'listing' },
  { name: 'the same with a slash', build: 'ln -s ../../outside l', path: 'l/', answers: leaf, naive: 'listing' },
  { name: 'the same with slash and dot', build: 'ln -s ../../outside l', path: 'l/.', answers: leaf, naive: 'listing' },
  {
    name: 'the same with many slashes and dots',
    build: 'ln -s ../../outside l',
    path: './/l//././',
    answers: leaf,
    naive: 'listing',
  },
  {
    name: 'a link in the middle',
    build: 'ln -s ../../outside m',
    path: 'm/secret',
    answers: outside,
    naive: 'secret',
  },
  {
    name: 'an absolute link in the middle',
    build: 'ln -s "$OUT" m',
    path: 'm/secret',
    answers: outside,
    naive: 'secret',
  },
  {
    name: 'an absolute link that stays in the home',
    build: 'mkdir d; ln "$OUT/secret" d/secret; ln -s "$HOME/d" m',
    path: 'm/secret',
    answers: outside,
    naive: 'secret',
  },
  {
    name: 'a chain of links that ends outside',
    build: chain(30, '../../outside'),
    path: 'l29/secret',
    answers: outside,
    naive: 'secret',
  },
  {
    name: 'a link deep inside that climbs',
    build: 'mkdir -p a/b/c; ln -s ../../../../../outside a/b/c/m',
    path: 'a/b/c/m/secret',
    answers: outside,
    naive: 'secret',
  },
  {
    name: 'a link that goes down before it climbs',
    build: 'mkdir -p a/b; ln -s a/b/../../../../outside m',
    path: 'm/secret',
    answers: outside,
    naive: 'secret',
  },
  {
    name: '".." after a link, which is its target’s parent',
    build: 'mkdir a; ln -s ../../outside m; ln -s m/../outside n',
    path: 'n/secret',
    answers: outside,
    naive: 'secret',
  },
  {
    name: '".." in the path',
    build: 'mkdir a',
    path: 'a/../../../outside/secret',
    answers: outside,
    naive: 'secret',
  },
  {
    name: 'the space itself',
    build: 'echo planted-secret > "$SPACE/tmp/secret"; ln -s .. m',
    path: 'm/tmp/secret',
    answers: outside,
    naive: 'secret',
  },
  {
    name: '/proc/self/root',
    build: 'ln -s /proc/self/root m; echo "$OUT" > where',
    path: 'm$OUT/secret',
    answers: outside,
    naive: 'secret',
  },
  {
    name: '/proc/self/cwd, relative',
    build: 'ln -s ../../../../../../../../../proc/self/root m',
    path: 'm$OUT/secret',
    answers: outside,
    naive: 'secret',
  },
  {
    name: 'another user’s home',
    build:
      'mkdir -p "$OUT/u937999/home"; ln "$OUT/secret" "$OUT/u937999/home/secret"; ln -s ../../outside/u937999/home m',
    path: 'm/secret',
    answers: outside,
    naive: 'secret',
  },
];

/** Paths beneath the home that are refused, or lead where they should; no program is fooled by them. */
export const otherTrees: readonly Omit<HostileTree, 'naive'>[] = [
  { name: 'a dangling link', build: 'ln -s none l', path: 'l', answers: leaf },
  { name: 'a dangling link in the middle', build: 'ln -s none m', path: 'm/x', answers: all('not_found') },
  { name: 'a link to itself', build: 'ln -s m m', path: 'm/x', answers: all('bad_target') },
  { name: 'two links to each other', build: 'ln -s n m; ln -s m n', path: 'm/x', answers: all('bad_target') },
  { name: 'a chain of 41 links', build: `mkdir d; ${chain(41, 'd')}`, path: 'l40/x', answers: all('bad_target') },
  { name: 'a chain of 50 links', build: `mkdir d; ${chain(50, 'd')}`, path: 'l49/x', answers: all('bad_target') },
  {
    name: 'a link full of ".."',
    build: 'mkdir -p d/e; ln -s "$(printf "d/e/../../%.0s" $(seq 400))" m; ln -s m/m/m/m/m/m/m/m/m/m/m/m/m n',
    path: 'n/n/n/x',
    answers: all('bad_target'),
  },
  {
    name: 'a descriptor of the helper’s',
    build: 'ln -s /proc/self/fd m',
    path: 'm/20',
    answers: outside,
  },
  { name: 'an absolute path', build: '', path: '/etc/hostname', answers: outside },
  { name: 'NUL', build: '', path: 'a\0b', answers: outside },
  { name: 'only ".."', build: '', path: '..', answers: outside },
  { name: 'only "..", by a link', build: 'ln -s .. m', path: 'm/x', answers: outside },
  { name: 'a file in the middle', build: ': > m', path: 'm/x', answers: all('bad_target') },
  { name: 'a pipe in the middle', build: 'mkfifo m', path: 'm/x', answers: all('bad_target') },
];
