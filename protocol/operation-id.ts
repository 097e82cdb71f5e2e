import { randomBytes } from 'node:crypto';

/** 16 bytes in the form of a UUID (RFC 9562, 4). */
export const uuidText = (bytes: Uint8Array): string => {
  const hex = Buffer.from(bytes).toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
};

/** The 16 bytes of a UUID in its text form. */
export const uuidBytes = (text: string): Uint8Array => Buffer.from(text.replaceAll('-', ''), 'hex');

/** When an operation id was minted, ms since 1970. */
export const mintedAt = (operationId: string): number => Buffer.from(uuidBytes(operationId)).readUIntBE(0, 6);

/**
 * Mints the id of one operation: a UUIDv7, so that ids sort by time and can't be guessed.
 * Source: RFC 9562, 5.7 (48 bits of Unix time in ms, version, 74 random bits).
 */
export const mintOperationId = (now: number = Date.now()): string => {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(now, 0, 6);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x70, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return uuidText(bytes);
};
