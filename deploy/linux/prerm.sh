#!/bin/sh
# Before the files are removed. dpkg says "remove"; RPM says how many versions are left.
set -e

case "$1" in
remove | 0)
    if [ -d /run/systemd/system ]; then
        systemctl --no-reload disable --now portolan.service
    fi
    ;;
esac
exit 0
