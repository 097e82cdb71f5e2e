import { InitChannel } from '../../../gateway/init-channel.ts';

// Says what its parent makes happen.
const channel = new InitChannel(3, {
  drain: () => process.stdout.write('drain\n'),
  gone: () => process.stdout.write('gone\n'),
});
channel.ready();
setInterval(() => undefined, 1_000);
