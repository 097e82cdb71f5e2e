/** A bind mount of a host path, read-only unless said otherwise. */
export interface Bind {
  readonly host: string;
  readonly inside: string;
  readonly writable?: boolean;
}

interface ConfigOptions {
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly binds: readonly Bind[];
}

/** The rights of the seed's compose file: these three and no other. */
const capabilities = ['CAP_SETUID', 'CAP_SETGID', 'CAP_CHOWN'];

const mount = (destination: string, type: string, ...options: string[]) => ({
  destination,
  type,
  source: type,
  options: ['nosuid', 'noexec', ...options],
});

/**
 * The OCI runtime configuration (config.json of a bundle whose root file system is `rootfs`): what a container
 * engine makes of `read_only`, `cap_drop: [ALL]`, three `cap_add`, `no-new-privileges` and one tmpfs on /tmp.
 * The network is the host's, so that a test reaches the service by loopback. No cgroup, no terminal.
 */
export const ociConfig = ({ command, environment, binds }: ConfigOptions) => ({
  ociVersion: '1.0.2',
  hostname: 'workspace-runner',
  root: { path: 'rootfs', readonly: true },
  process: {
    terminal: false,
    cwd: '/',
    user: { uid: 0, gid: 0 },
    args: command,
    env: Object.entries(environment).map(([key, value]) => `${key}=${value}`),
    noNewPrivileges: true,
    capabilities: {
      bounding: capabilities,
      effective: capabilities,
      permitted: capabilities,
      inheritable: [],
      ambient: [],
    },
  },
  mounts: [
    mount('/proc', 'proc', 'nodev'),
    mount('/dev', 'tmpfs', 'strictatime', 'mode=755', 'size=64k'),
    mount('/dev/pts', 'devpts', 'newinstance', 'ptmxmode=0666', 'mode=0620', 'gid=5'),
    mount('/dev/shm', 'tmpfs', 'nodev', 'mode=1777', 'size=64m'),
    mount('/dev/mqueue', 'mqueue', 'nodev'),
    { destination: '/tmp', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'nodev', 'mode=1777', 'size=256m'] },
    ...binds.map(({ host, inside, writable }) => ({
      destination: inside,
      type: 'bind',
      source: host,
      options: ['rbind', 'nosuid', 'nodev', writable ? 'rw' : 'ro'],
    })),
  ],
  linux: {
    namespaces: [{ type: 'pid' }, { type: 'mount' }, { type: 'ipc' }, { type: 'uts' }],
    maskedPaths: ['/proc/acpi', '/proc/kcore', '/proc/keys', '/proc/latency_stats', '/proc/timer_list', '/proc/scsi'],
    readonlyPaths: ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'],
  },
});
