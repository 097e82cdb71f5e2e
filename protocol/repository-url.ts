/** A repository's URL in its parts, none of them decoded or normalised: what was checked is what git gets. */
export interface RepositoryUrl {
  readonly scheme: string;
  /** Host, and port where it isn't 443, as a setting names them. */
  readonly host: string;
  /** The clone's folder beneath `repos`: the path's parts, joined by `__`. */
  readonly folder: string;
  /** What git is given: with `.git`, since a redirect to it would not be followed. */
  readonly href: string;
}

const urlLengthMax = 2_048;
/** NAME_MAX (limits.h). */
const folderLengthMax = 255;

/**
 * RFC 3986 in what a repository at a forge needs of it. No userinfo, query, fragment, escape, white space or control
 * character: the characters that they would need are not in here.
 */
const pattern = /^([a-zA-Z][a-zA-Z0-9+.-]*):\/\/([a-zA-Z0-9.:[\]_-]*)\/([a-zA-Z0-9._/-]+)$/;

/** One part of the path. It never begins with a hyphen, and is more than dots. */
const part = /^[a-zA-Z0-9._][a-zA-Z0-9._-]*$/;

/**
 * Takes a URL apart by hand: a parser that repairs what it reads would check another URL than git is given.
 * @returns undefined for what is no `scheme://host/group[/sub…]/project[.git]`
 */
export const parseRepositoryUrl = (text: string): RepositoryUrl | undefined => {
  const [, scheme = '', authority = '', path = ''] = (text.length <= urlLengthMax && pattern.exec(text)) || [];
  if (path === '') return undefined;
  const parts = path.replace(/\.git$/, '').split('/');
  const folder = parts.join('__');
  const named = parts.every((name) => part.test(name) && name !== '.' && name !== '.git') && !folder.startsWith('.');
  if (!named || parts.length < 2 || folder.length > folderLengthMax) return undefined;
  const href = `${scheme}://${authority}/${parts.join('/')}.git`;
  // Also where a name that ends with a dot meets ".git": what git is given is checked again later.
  if (href.includes('..')) return undefined;
  return { scheme, host: authority.replace(/:443$/, ''), folder, href };
};
