/**
 * A stream's bytes as text: what is not valid UTF-8 becomes U+FFFD.
 * @param cut true when the stream went on: then an incomplete last character is left out
 */
export const textOf = (bytes: Buffer, cut: boolean): string =>
  // A decoder in streaming mode keeps back what the next piece might complete; there is none.
  cut ? new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true }) : bytes.toString('utf8');
