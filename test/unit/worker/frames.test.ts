import { describe, expect, it } from 'vitest';
import { FrameReader } from '../../../worker/helpers/frames.ts';

/** A frame of a helper, by hand. */
const frame = (reply: object): Buffer => {
  const body = Buffer.from(JSON.stringify(reply));
  const prefix = Buffer.alloc(4);
  prefix.writeUInt32BE(body.length, 0);
  return Buffer.concat([prefix, body]);
};

describe('replies of a helper', () => {
  it('are put together from pieces that all come in the same place', () => {
    const reader = new FrameReader();
    const bytes = Buffer.concat([frame({ kind: 'ready' }), frame({ kind: 'dropped' })]);
    const place = Buffer.alloc(5);
    const replies: unknown[] = [];
    for (let at = 0; at < bytes.length; at += place.length) {
      const size = bytes.copy(place, 0, at, at + place.length);
      replies.push(...reader.push(place.subarray(0, size)));
    }
    expect(replies).toStrictEqual([{ kind: 'ready' }, { kind: 'dropped' }]);
  });
});
