import { openLog } from '../../../gateway/log.ts';

// Logs 256 MiB to a standard error that nobody reads, and tells by how much the process grew.
const { log } = openLog('info');
const line = 'x'.repeat(1024);
const before = process.memoryUsage().rss;
for (let round = 0; round < 256; round += 1) {
  for (let count = 0; count < 1024; count += 1) log.info(line);
  await new Promise((resolve) => setImmediate(resolve));
}
process.send?.(process.memoryUsage().rss - before);
