#!/bin/sh
# Sets a checkout up and runs one command in it: start, test, bench, chaos, mutations, build or check.
#
# Everything that is missing is fetched or built first: a Node.js that is new enough (from the npm registry,
# pinned in deploy/runtime), the packages of the lock file, the compiled TypeScript and the native program.
# What is there already is left alone, so a second start costs a fraction of a second.
set -eu

command=$1
shift
root=$(cd "$(dirname "$0")/.." && pwd -P)
cd "$root"

fail() {
  echo "workspace-runner: $*" >&2
  exit 1
}

[ "$(uname -s)" = Linux ] || fail 'this service runs on Linux only.'
for tool in npm cc flock sha256sum; do
  command -v "$tool" >/dev/null || fail "\"$tool\" is missing (Debian packages: npm, gcc with libc6-dev, util-linux, coreutils)."
done
case $command in
  start | test | bench | chaos | mutations) [ "$(id -u)" = 0 ] || fail "\"npm $command\" must be run as root: it starts tools as other users." ;;
esac

# One set-up at a time: two commands in a fresh checkout must not install over each other.
mkdir -p dist
exec 9>dist/.setup-lock
flock 9

new_enough() { "$1" -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 24 ? 0 : 1)' 2>/dev/null; }
pinned="$root/deploy/runtime/node_modules/.bin"
if ! { command -v node >/dev/null && new_enough node; }; then
  if ! { [ -x "$pinned/node" ] && [ deploy/runtime/node_modules/.package-lock.json -nt deploy/runtime/package-lock.json ]; }; then
    echo 'workspace-runner: fetching the pinned Node.js …' >&2
    (cd deploy/runtime && npm ci --silent --no-audit --no-fund >&2) || fail 'the pinned Node.js could not be fetched.'
    touch deploy/runtime/node_modules/.package-lock.json
  fi
  PATH="$pinned:$PATH"
  export PATH
  new_enough node || fail 'the pinned Node.js does not run on this machine.'
fi

if ! [ node_modules/.package-lock.json -nt package-lock.json ]; then
  echo 'workspace-runner: installing packages …' >&2
  npm ci --silent --no-audit --no-fund >&2 || fail 'the packages of the lock file could not be installed.'
  touch node_modules/.package-lock.json
fi

sources=$(find protocol gateway worker helper deploy tsconfig*.json package-lock.json -name node_modules -prune -o -type f \( -name '*.ts' -o -name '*.json' \) -print | sort | xargs sha256sum | sha256sum)
if [ "$(cat dist/.built 2>/dev/null)" != "$sources" ]; then
  echo 'workspace-runner: building …' >&2
  for folder in protocol gateway worker helper deploy; do find "dist/$folder" -name '*.js' -delete 2>/dev/null || true; done
  node_modules/.bin/tsc -p . >&2 || fail 'the TypeScript does not compile.'
  echo "$sources" >dist/.built
fi
sh helper/native/build.sh >&2 || fail 'the native program could not be built.'
flock -u 9
exec 9>&-

case $command in
  build) ;;
  start) exec node dist/deploy/cli.js start --checkout "$@" ;;
  check)
    node_modules/.bin/biome check .
    node_modules/.bin/tsc --noEmit -p test
    ;;
  test)
    node_modules/.bin/biome check .
    node_modules/.bin/tsc --noEmit -p test
    sh helper/native/build.sh --all >&2
    exec node_modules/.bin/vitest run "$@"
    ;;
  mutations)
    sh helper/native/build.sh --all >&2
    exec node_modules/.bin/tsx test/mutations/run.ts "$@"
    ;;
  chaos)
    command -v strace >/dev/null || fail '"strace" is missing (Debian package: strace).'
    exec node_modules/.bin/tsx test/chaos/main.ts "$@"
    ;;
  bench) exec node_modules/.bin/tsx test/bench/main.ts "$@" ;;
  *) fail "there is no command \"$command\"." ;;
esac
