#!/usr/bin/env bash
# Installs the Debian packages brisk builds with; does nothing where all are there. Needs root (or sudo) only to install.
#   scripts/install_dependencies.sh build|test|demo|package
set -euo pipefail
packages=(g++ cmake ninja-build libfmt-dev nlohmann-json3-dev libcli11-dev libdnnl-dev
  zlib1g-dev libzstd-dev libpng-dev libjpeg-dev)
case "${1:-build}" in
  build) ;;
  test) packages+=(libgtest-dev libbenchmark-dev clang-format openmpi-bin mpich) ;;
  demo) packages+=(bible-kjv fortunes) ;;
  package) packages+=(dpkg-dev file) ;;  # which package each library it is linked to comes from
  *) echo "usage: scripts/install_dependencies.sh build|test|demo|package" >&2; exit 2 ;;
esac
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
echo "installing: ${missing[*]}" >&2
as_root=""
[ "$(id -u)" -eq 0 ] || as_root="sudo"
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq >&2
$as_root apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
