import { type Logger, pino } from 'pino';
import { AuditQueue } from '../../../../protocol/audit.ts';

/** One audit line, parsed. */
export type Line = Readonly<Record<string, unknown>>;

/** A log that keeps its lines. */
export const collectingLog = (): { readonly log: Logger; readonly lines: string[] } => {
  const lines: string[] = [];
  return { lines, log: pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) }) };
};

/** A real audit queue whose reader keeps everything. */
export const collectingAudit = (): { readonly audit: AuditQueue; readonly lines: () => Line[] } => {
  let text = '';
  const audit = new AuditQueue(
    (bytes, done) => {
      text += Buffer.from(bytes).toString();
      done(null, bytes.length);
    },
    (error) => {
      throw error;
    },
    () => undefined,
  );
  const lines = (): Line[] =>
    text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Line);
  return { audit, lines };
};
