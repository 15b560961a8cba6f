#!/bin/sh
# store SHARED PATH SIZE SHA256 PARTIAL HOW: write standard input (HOW it is packed: gzip, plain) to PARTIAL,
# check it, give it its name. A link that breaks ends the input early, which the size tells.
LC_ALL=C
CDPATH=
export LC_ALL
umask 077
cd -- "$1" || exit 3
path=$2 size=$3 sha256=$4 partial=$5
trap 'rm -f -- "$partial"' EXIT
trap 'exit 4' HUP INT PIPE TERM
unpack() {
  case $1 in gzip) gzip -dc ;; *) cat ;; esac
}
digest() {
  if command -v sha256sum >/dev/null; then
    sha256sum
  elif command -v shasum >/dev/null; then
    shasum -a 256
  else
    openssl dgst -sha256
  fi
}
# dd and not cat: it brings the data to the disk before the file gets its name.
said=$(unpack "$6" | dd of="$partial" bs=1048576 conv=fsync 2>&1) || {
  printf '%s\n' "$said" >&2
  exit 3
}
here=$(wc -c <"$partial") || exit 3
if [ "$here" -ne "$size" ]; then
  printf 'gpuci-delivery short\n'
  exit 5
fi
case $(digest <"$partial" 2>/dev/null) in
  *"$sha256"*) checked=yes ;;
  '') checked=no ;;
  *)
    printf 'gpuci-delivery damaged\n'
    exit 5
    ;;
esac
mv -f -- "$partial" "$path" || exit 3
printf 'gpuci-delivery stored %s\n' "$checked"
