import { z } from 'zod';
import type { Operation } from '../operation.ts';
import type { ResultOf } from './outcome.ts';

type Fields = Readonly<Record<string, unknown>>;

/** What an answer says besides the result. */
const envelopeFields: readonly string[] = ['operationId', 'replayed', 'outputExpired'];

/** The fields of the worker's reply; of a newer service, those that this version knows. */
const replyFields = (row: Operation, body: Fields): Fields => {
  const { result, streams } = row;
  const known = (name: string): boolean =>
    result instanceof z.ZodObject ? Object.hasOwn(result.shape, name) : !envelopeFields.includes(name);
  return Object.fromEntries(Object.entries(body).filter(([name]) => known(name) && !streams.includes(name)));
};

const textsOf = (row: Operation, body: Fields): readonly (readonly [string, string])[] =>
  row.streams.flatMap((name) => {
    const text = Object.hasOwn(body, name) ? body[name] : undefined;
    return typeof text === 'string' ? [[name, text] as const] : [];
  });

/** The whole result of an operation in the body of an answer; undefined when it doesn't fit the row. */
export const wholeResult = <Row extends Operation>(row: Row, body: Fields): ResultOf<Row> | undefined => {
  const reply = row.result.safeParse(replyFields(row, body));
  const texts = textsOf(row, body);
  if (!reply.success || texts.length !== row.streams.length) return undefined;
  // The row's own schema has just said so; its type is lost where rows are handled without their names.
  return { ...Object(reply.data), ...Object.fromEntries(texts) } as ResultOf<Row>;
};

/** What is left of a result whose outputs have expired: the fields that are there and fit the row. */
export const partialResult = <Row extends Operation>(row: Row, body: Fields): Partial<ResultOf<Row>> => {
  const shape: Readonly<Record<string, unknown>> = row.result instanceof z.ZodObject ? row.result.shape : {};
  const fields = Object.entries(replyFields(row, body)).flatMap(([name, value]) => {
    const schema = shape[name];
    const parsed = schema instanceof z.ZodType ? schema.safeParse(value) : undefined;
    return parsed?.success ? [[name, parsed.data] as const] : [];
  });
  return Object.fromEntries([...fields, ...textsOf(row, body)]) as Partial<ResultOf<Row>>;
};
