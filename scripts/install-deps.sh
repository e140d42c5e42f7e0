#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Installs what the project needs from Debian's packages (scripts/packages.txt
# lists them and says what each is for). Does nothing if all of them are there,
# so that every make target can call it.
set -euo pipefail

list="$(dirname "$0")/packages.txt"
quiet=no
groups=()

usage()
{
	cat <<END
Usage: scripts/install-deps.sh [--quiet] [GROUP...]

Installs the Debian packages of the named groups, of all groups if none is named.
Groups: $(awk '!/^#/ && NF { print $1 }' "$list" | uniq | paste -sd' ').

  --quiet   say nothing if everything is there
  --help    this text

Set VGIC_DEPS=skip to leave the packages alone: then it is up to you to have them.
END
}

for arg in "$@"; do
	case "$arg" in
	--quiet) quiet=yes ;;
	--help | -h)
		usage
		exit 0
		;;
	-*)
		echo "install-deps: unknown option $arg (see --help)" >&2
		exit 2
		;;
	*)
		if ! grep -q "^$arg " "$list"; then
			echo "install-deps: there is no group '$arg' in $list" >&2
			exit 2
		fi
		groups+=("$arg")
		;;
	esac
done

[ "${VGIC_DEPS:-}" != skip ] || exit 0

# The lines of the groups that were asked for: "package reason".
wanted()
{
	awk -v groups=" ${groups[*]:-} " '
		/^#/ || !NF { next }
		groups == "  " || index(groups, " " $1 " ") {
			package = $2; $1 = ""; $2 = ""; sub(/^ +/, "")
			printf "%-24s%s\n", package, $0
		}' "$list"
}

mapfile -t packages < <(wanted | awk '{ print $1 }')

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	cat >&2 <<END
install-deps: this is not a Debian system (no dpkg-query or no apt-get), so nothing was installed.
Install the counterparts of these packages with your own package manager:

$(wanted | sed 's/^/  /')

then run make again with VGIC_DEPS=skip.
END
	exit 1
fi

mapfile -t installed < <(dpkg-query -W -f='${db:Status-Abbrev} ${Package}\n' "${packages[@]}" 2>/dev/null |
	awk '$1 == "ii" || $1 == "hi" { print $2 }')
mapfile -t missing < <(printf '%s\n' "${packages[@]}" | grep -vxF -f <(printf '%s\n' "${installed[@]:-}") || true)

if [ ${#missing[@]} -eq 0 ]; then
	[ $quiet = yes ] || echo "install-deps: all ${#packages[@]} packages are there"
	exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null; then
		echo "install-deps: these packages are missing, and installing them takes root (there is no sudo):" >&2
		echo "  apt-get install ${missing[*]}" >&2
		exit 1
	fi
	as_root=(sudo)
fi

echo "install-deps: installing ${#missing[@]} of ${#packages[@]} packages: ${missing[*]}"

apt_get()
{
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 \
		-o Dpkg::Use-Pty=0 "$@" </dev/null
}

# The package lists are fetched only if they do not know a package, or are so old that the mirror has moved on.
if ! apt_get install --simulate --no-install-recommends "${missing[@]}" >/dev/null 2>&1; then
	echo "install-deps: fetching the package lists first (apt-get update)"
	apt_get update
fi
if ! apt_get install --yes --no-install-recommends "${missing[@]}"; then
	echo "install-deps: the package lists may be out of date: once more after apt-get update"
	apt_get update
	apt_get install --yes --no-install-recommends "${missing[@]}"
fi
echo "install-deps: done"
