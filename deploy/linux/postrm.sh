#!/bin/sh
# After the files were removed. dpkg says "purge" where the configuration goes, too. The user stays: files of its own may be left.
set -e

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
fi
if [ "$1" = purge ]; then
    rm -rf /var/lib/portolan /var/cache/portolan
    rmdir /etc/portolan 2>/dev/null || true
fi
exit 0
