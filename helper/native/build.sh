#!/bin/sh
# build.sh: compiles the native program.
#
#   build.sh              dist/helper/native/workspace-runner-native, static where the C library allows it
#   build.sh --sanitize   dist/sanitize/workspace-runner-native, with address and undefined-behaviour sanitizers
#   build.sh --fuzz       dist/test/plan-fuzz, the plan parser's fuzzer, with the same sanitizers
#   build.sh --attacks    dist/test/<name> for each test/hostile/<name>.c, static
#   build.sh --all        all of these
#
# Compiles only what is older than its sources. Needs a C compiler and nothing else; runs nothing it built.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../.." && pwd)
cc=${CC:-cc}

if ! command -v "$cc" >/dev/null 2>&1; then
	echo "workspace-runner: no C compiler found; install gcc and the C library's headers (Debian: gcc libc6-dev), or set CC" >&2
	exit 1
fi

warnings='-std=c17 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Werror'
hardening='-O2 -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fPIE'
sanitizers='-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer'
linking='-Wl,-z,relro,-z,now,-z,noexecstack'

# fresh OUTPUT SOURCE...: whether the output is newer than this script and every source.
fresh() {
	[ -f "$1" ] || return 1
	output=$1
	shift
	for input in "$here/build.sh" "$here"/*.h "$@"; do
		[ "$input" -nt "$output" ] && return 1
	done
	return 0
}

# compile OUTPUT FLAGS SOURCE...: into a temporary name first, so that a running program is never written to.
compile() {
	output=$1
	flags=$2
	shift 2
	mkdir -p "$(dirname -- "$output")"
	# shellcheck disable=SC2086  # the flags are words
	"$cc" $warnings $flags -I"$here" "$@" -o "$output.$$" $linking
	mv -f "$output.$$" "$output"
}

# Static, and at a random address where the compiler can do both.
static_flags() {
	probe=$(mktemp -d)
	echo 'int main(void){return 0;}' >"$probe/p.c"
	for flags in -static-pie -static ''; do
		if "$cc" -fPIE $flags "$probe/p.c" -o "$probe/p" 2>/dev/null; then
			break
		fi
	done
	rm -rf "$probe"
	echo "$flags"
}

case "${1:-}" in
'')
	target="$root/dist/helper/native/workspace-runner-native"
	fresh "$target" "$here"/*.c || compile "$target" "$hardening $(static_flags)" "$here"/*.c
	;;
--sanitize)
	target="$root/dist/sanitize/workspace-runner-native"
	fresh "$target" "$here"/*.c || compile "$target" "$sanitizers" "$here"/*.c
	;;
--fuzz)
	target="$root/dist/test/plan-fuzz"
	set -- "$root/test/fuzz/plan-fuzz.c" "$here/plan.c" "$here/message.c"
	fresh "$target" "$@" || compile "$target" "$sanitizers" "$@"
	;;
--attacks)
	flags=$(static_flags)
	for source in "$root"/test/hostile/*.c; do
		target="$root/dist/test/$(basename -- "$source" .c)"
		fresh "$target" "$source" || compile "$target" "$hardening -pthread $flags" "$source"
	done
	;;
--all)
	for what in '' --sanitize --fuzz --attacks; do
		"$here/build.sh" $what
	done
	;;
*)
	echo "workspace-runner: build.sh [--sanitize | --fuzz | --attacks | --all]" >&2
	exit 64
	;;
esac
