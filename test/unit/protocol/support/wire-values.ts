import fc from 'fast-check';

/** Buffers become plain byte arrays, so that values compare by content and not by the class that holds it. */
export const plain = (value: unknown): unknown => {
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
};

/** True for what a message may consist of: nothing with behaviour, a foreign class or an unsafe number. */
export const isPlainData = (value: unknown): boolean => {
  if (value === null || typeof value === 'boolean') return true;
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value === 'string') return value.isWellFormed();
  if (value instanceof Uint8Array) return true;
  if (Array.isArray(value)) return Object.getPrototypeOf(value) === Array.prototype && value.every(isPlainData);
  if (typeof value !== 'object' || Object.getPrototypeOf(value) !== Object.prototype) return false;
  return Object.values(value).every(isPlainData);
};

/** Any string that UTF-8 can carry, long ones and those that begin with U+FEFF included. */
const unicode = fc.oneof(
  { weight: 6, arbitrary: fc.string({ unit: 'binary', maxLength: 12 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', minLength: 30, maxLength: 120 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'grapheme-ascii', maxLength: 100 }).map((text) => `\ufeff${text}`) },
);

const key = unicode.filter((text) => text !== '__proto__');

const leaf = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  fc.maxSafeInteger(),
  fc.integer(),
  fc.integer({ min: -200, max: 300 }),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => (Object.is(value, -0) ? 0 : value)),
  unicode,
  fc.uint8Array({ maxLength: 40 }),
);

const inner: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 3, depthSize: 'small' }, leaf, tie('array'), tie('map')),
  array: fc.array(tie('value'), { maxLength: 4 }),
  map: fc.dictionary(key, tie('value'), { maxKeys: 4, noNullPrototype: true }),
})).value;

/** Wraps a value in as many arrays and maps as the bits of `shape` say. */
const wrapped = (value: unknown, levels: number, shape: number): unknown =>
  levels === 0 ? value : wrapped((shape >> levels) & 1 ? [value] : { in: value }, levels - 1, shape);

/** The whole space of values that the link carries, down to its depth: 12 wrappings, 3 of `inner`, the message. */
const wireValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: inner },
  { weight: 1, arbitrary: fc.tuple(inner, fc.nat(12), fc.nat(0xffff)).map((parts) => wrapped(...parts)) },
);

/** A whole message: an object of such values. */
export const wireMessage: fc.Arbitrary<Record<string, unknown>> = fc.dictionary(key, wireValue, {
  maxKeys: 6,
  noNullPrototype: true,
});
