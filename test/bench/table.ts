/** One number of the result. */
export interface Figure {
  /** Empty where the row says it all. */
  readonly name: string;
  readonly value: number;
  readonly unit: 'ms' | 'µs' | '×' | '/s' | 'MB/s' | 'MiB' | '';
}

/** One line of the result. */
export interface Row {
  readonly what: string;
  readonly figures: readonly Figure[];
  /** What is asked of it, when something is. */
  readonly target?: { readonly wanted: string; readonly met: boolean };
}

/** Makes a figure. */
export const figure = (name: string, value: number, unit: Figure['unit'] = ''): Figure => ({ name, value, unit });

/** Three digits are more than a machine repeats. */
const digits = (value: number): string =>
  value.toFixed(Number.isInteger(value) || value >= 100 ? 0 : value >= 10 ? 1 : 2);

const textOf = ({ name, value, unit }: Figure): string =>
  `${name} ${digits(value)}${unit === '/s' ? unit : ` ${unit}`}`.trim();

/** The rows as text, in columns. */
export const tableOf = (rows: readonly Row[]): string => {
  const cells = rows.map(({ what, figures, target }) => [
    what,
    figures.map(textOf).join(', '),
    target === undefined ? '' : `${target.met ? 'met' : 'MISSED'}: ${target.wanted}`,
  ]);
  const widths = [0, 1].map((column) => Math.max(...cells.map((cell) => cell[column]?.length ?? 0)));
  return cells
    .map((cell) =>
      cell
        .map((text, column) => text.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
};
