/** A module of the built product: the very instance that the product itself loads, so that it can be patched. */
export const compiled = async <Module>(path: string): Promise<Module> =>
  (await import(new URL(`../../../dist/${path}`, import.meta.url).href)) as Module;
