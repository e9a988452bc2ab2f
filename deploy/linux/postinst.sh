#!/bin/sh
# After an installation or an upgrade, of Debian's package and of the RPM.
set -e

if command -v systemd-sysusers >/dev/null; then
    systemd-sysusers portolan.conf
elif ! id portolan >/dev/null 2>&1; then
    useradd --system --user-group --home-dir /var/lib/portolan --no-create-home --shell /usr/sbin/nologin portolan
fi

# Only where systemd runs. A server that does not run stays stopped.
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl try-restart portolan.service
fi
exit 0
