#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Makes the guest that demo and boot test boot: Debian's arm64 cloud kernel,
# unmodified, and an initial RAM disk with busybox and the kernel's modules for
# virtio disks.
#
#   make-guest-image.sh [BUILD_DIR]      (default: build)
#
# Leaves BUILD_DIR/guest/vmlinuz and BUILD_DIR/guest/initrd.img. What is there
# already is kept; remove BUILD_DIR/guest to fetch anew. The packages come from
# the Debian mirrors that this machine uses, checked with its keys, but with package
# lists of our own: apt's state on this machine, its list of architectures among
# it, is not touched. No root rights are needed.
set -eu

src=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:-build}/guest"
guest=$(cd "${1:-build}/guest" && pwd)
kernel_package=linux-image-cloud-arm64
busybox_package=busybox-static

say()
{
	echo "guest image: $*"
}

fail()
{
	echo "guest image: $*" >&2
	exit 1
}

# apt with its own state, for arm64. Run with the command's name first.
own_apt()
{
	command=$1
	shift
	"$command" \
		-o Dir::State="$guest/apt/state" \
		-o Dir::State::lists="$guest/apt/lists" \
		-o Dir::State::status="$guest/apt/status" \
		-o Dir::Cache="$guest/apt/cache" \
		-o APT::Architecture=arm64 \
		-o APT::Architectures::=arm64 \
		-o APT::Sandbox::User=root \
		-o APT::Update::Post-Invoke::=true \
		-o Acquire::Languages=none \
		-o Acquire::Retries=3 \
		-q "$@"
}

update_lists()
{
	mkdir -p "$guest/apt/state" "$guest/apt/lists/partial" "$guest/apt/cache/archives/partial"
	: >"$guest/apt/status"
	say "fetching the lists of Debian's arm64 packages"
	# One source that does not answer is no harm if the others have what is needed.
	own_apt apt-get update >"$guest/apt/update.log" 2>&1 || true
}

# The package that PACKAGE stands for: the kernel's name changes with each version.
resolve_kernel()
{
	own_apt apt-cache depends "$kernel_package" 2>/dev/null |
		sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1
}

# download PACKAGE FILE: fetch it, and keep it as FILE.
download()
{
	say "fetching $1"
	rm -rf "$guest/apt/download"
	mkdir -p "$guest/apt/download"
	if ! (cd "$guest/apt/download" && own_apt apt-get download "$1") >"$guest/apt/download.log" 2>&1; then
		cat "$guest/apt/update.log" "$guest/apt/download.log" >&2
		fail "cannot fetch the package $1 (arm64) from the mirrors in /etc/apt; is the network there?"
	fi
	mv "$guest"/apt/download/*.deb "$2"
}

fetch_packages()
{
	[ -s "$guest/kernel.deb" ] && [ -s "$guest/busybox.deb" ] && return
	command -v apt-get >/dev/null || fail "apt-get is needed to fetch the guest's packages: this is for Debian 12"
	update_lists
	kernel=$(resolve_kernel)
	if [ -z "$kernel" ]; then
		cat "$guest/apt/update.log" >&2
		fail "the mirrors in /etc/apt have no $kernel_package for arm64 (messages of apt-get update above)"
	fi
	download "$kernel" "$guest/kernel.deb"
	download "$busybox_package" "$guest/busybox.deb"
}

# unpack_file DEB PATTERN FILE: the one file in the package that matches.
unpack_file()
{
	rm -rf "$guest/unpack"
	mkdir -p "$guest/unpack"
	dpkg-deb --fsys-tarfile "$1" | tar -x -C "$guest/unpack" --wildcards "$2" ||
		fail "$1 is damaged: remove it and try again"
	find "$guest/unpack" -type f -exec mv {} "$3" \;
	rm -rf "$guest/unpack"
	[ -s "$3" ] || fail "there is no $2 in $1"
}

# The names of guest-image/modules, without its comments.
module_names()
{
	sed '/^#/d' "$src/guest-image/modules"
}

# unpack_modules DEB DIR: all of them, in one pass over the package.
unpack_modules()
{
	rm -rf "$guest/unpack" "$2"
	mkdir -p "$guest/unpack" "$2"
	# The names have no blanks.
	dpkg-deb --fsys-tarfile "$1" |
		tar -x -C "$guest/unpack" --wildcards $(module_names | sed 's|.*|./lib/modules/*/&.ko|') ||
		fail "$1 is damaged, or lacks a module: remove it and try again"
	find "$guest/unpack" -type f -name '*.ko' -exec mv {} "$2" \;
	rm -rf "$guest/unpack"
}

have_modules()
{
	for module in $(module_names); do
		[ -s "$guest/modules/$module.ko" ] || return 1
	done
}

# The archive has the same bytes each time: fixed order, owner and times.
make_initrd()
{
	say "making the initial RAM disk"
	root=$guest/initrd
	rm -rf "$root"
	mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/tmp"
	cp "$src/guest-image/init" "$src/guest-image/selftest" "$src/guest-image/disktest" \
		"$src/guest-image/migratetest" "$root/"
	cp "$guest/busybox" "$root/bin/busybox"
	mkdir "$root/modules"
	module_names >"$root/modules/order"
	for module in $(module_names); do
		cp "$guest/modules/$module.ko" "$root/modules/"
	done
	chmod 755 "$root/init" "$root/selftest" "$root/disktest" "$root/migratetest" "$root/bin/busybox"
	find "$root" -exec touch -h -d @0 {} +
	# Not compressed: an emulated CPU takes longer to decompress it than to copy it.
	(cd "$root" && find . | LC_ALL=C sort | cpio -o -H newc --reproducible --owner 0:0 --quiet) \
		>"$guest/initrd.img.new" || fail "cpio failed"
	mv "$guest/initrd.img.new" "$guest/initrd.img"
	rm -rf "$root"
}

initrd_is_current()
{
	[ -s "$guest/initrd.img" ] &&
		[ -z "$(find "$src/guest-image" "$guest/busybox" "$guest/modules" -newer "$guest/initrd.img")" ]
}

for tool in dpkg-deb tar cpio flock; do
	command -v $tool >/dev/null || fail "$tool is missing: make deps installs it"
done
# Tests run beside each other: the first makes the image, the others wait for it.
exec 9>"$guest/lock"
flock 9
if [ ! -s "$guest/vmlinuz" ] || [ ! -s "$guest/busybox" ] || ! have_modules; then
	# All from one package: a module of another version is refused by the kernel.
	fetch_packages
	unpack_file "$guest/kernel.deb" './boot/vmlinuz-*' "$guest/vmlinuz"
	unpack_modules "$guest/kernel.deb" "$guest/modules"
	unpack_file "$guest/busybox.deb" './bin/busybox' "$guest/busybox"
	rm -rf "$guest/kernel.deb" "$guest/busybox.deb" "$guest/apt"
fi
initrd_is_current || make_initrd
say "ready in $guest"
