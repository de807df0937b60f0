#!/usr/bin/env bash
# with_cluster.sh PROGRAM… [-- PROGRAM…]: start a Ceph cluster of one monitor and one OSD in memory on
# loopback, run all programs (each a single word, or a command of several) at the same time, then those
# after "--" one after another, with TL_RADOS=rados:trace?conf=…, TL_RADOS_DIR, which contains the
# process IDs in osd.0.pid …, and CEPH_CONF; then stop the cluster. TL_RADOS_OSDS=3: this many OSDs on
# files, which may be killed and restarted, and two copies of everything. TL_RADOS_PORT: OSDs listen on
# the hundred ports from this one on, which another cluster must not use, since its OSDs could be
# mistaken for restarted ones of this cluster. Exit status 77 if Ceph's programs are not installed
# (ceph-mon ceph-osd ceph-common).
set -euo pipefail
for program in ceph-mon ceph-osd ceph ceph-authtool monmaptool; do
  command -v "$program" >/dev/null || { echo "skipped: there is no $program"; exit 77; }
done
osds=${TL_RADOS_OSDS:-1}
copies=$((osds > 1 ? 2 : 1))
kind=$([ "$osds" -gt 1 ] && echo bluestore || echo memstore)
# A share of 4 s. A placement group of a single OSD that is stopped for longer, and then queried before it
# has renewed its lease, never answers again.
lease=$([ "$osds" -gt 1 ] && echo 0.8 || echo 100)
dir=$(mktemp -d "${TMPDIR:-/tmp}/tl-rados-XXXXXX")
stop() {
  for file in "$dir"/*.pid; do kill -9 "$(cat "$file")" 2>/dev/null || true; done
  wait
  rm -rf "$dir"
}
trap stop EXIT
first=${TL_RADOS_PORT:-6800}
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
fsid=$(cat /proc/sys/kernel/random/uuid)
mkdir "$dir/mon" "$dir/run" "$dir/log" "$dir/osd"
cat >"$dir/ceph.conf" <<C
[global]
fsid = $fsid
mon_host = [v2:127.0.0.1:$port]
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
ms_bind_msgr1 = false
ms_bind_port_min = $first
ms_bind_port_max = $((first + 99))
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
keyring = $dir/keyring
run_dir = $dir/run
admin_socket = $dir/run/\$name.asok
log_file = $dir/log/\$name.log
log_to_stderr = false
crash_dir = $dir/run
osd_pool_default_size = $copies
osd_pool_default_min_size = 1
osd_pool_default_read_lease_ratio = $lease
osd_pool_default_pg_autoscale_mode = off
mon_allow_pool_size_one = true
mon_warn_on_pool_no_redundancy = false
osd_crush_chooseleaf_type = 0
[mon]
mon_data = $dir/mon/\$id
mon_cluster_log_file = $dir/log/cluster.log
mon_data_avail_crit = 1
auth_allow_insecure_global_id_reclaim = true
mon_osd_min_down_reporters = 1
mon_osd_adjust_heartbeat_grace = false
mon_osd_adjust_down_out_interval = false
[osd]
osd_data = $dir/osd/\$id
osd_objectstore = $kind
osd_heartbeat_interval = 1
osd_heartbeat_grace = 4
osd_memory_target = 939524096
memstore_device_bytes = 4294967296
bluestore_block_size = 8589934592
osd_class_update_on_start = false
C
export CEPH_CONF=$dir/ceph.conf
ceph-authtool -C "$dir/keyring" -n client.admin --gen-key --cap mon 'allow *' --cap osd 'allow *' >/dev/null
ceph-authtool "$dir/keyring" -n mon. --gen-key --cap mon 'allow *' >/dev/null
monmaptool --create --addv a "[v2:127.0.0.1:$port]" --fsid "$fsid" "$dir/monmap" >/dev/null
ceph-mon --mkfs -i a --monmap "$dir/monmap" --keyring "$dir/keyring" >/dev/null
ceph-mon -f -i a >"$dir/log/mon.out" 2>&1 &
echo $! >"$dir/mon.pid"
ceph -s --connect-timeout 60 >/dev/null
for ((i = 0; i < osds; i++)); do
  mkdir "$dir/osd/$i"
  uuid=$(cat /proc/sys/kernel/random/uuid)
  ceph osd new "$uuid" >/dev/null
  ceph-osd -i "$i" --mkfs --osd-uuid "$uuid" >"$dir/log/mkfs.$i.out" 2>&1
  ceph-osd -f -i "$i" >"$dir/log/osd.$i.out" 2>&1 &
  disown
  echo $! >"$dir/osd.$i.pid"
done
ceph osd pool create trace 8 >/dev/null 2>&1
ceph osd pool application enable trace rados >/dev/null 2>&1
echo | timeout 60 rados -p trace put ready - # once the OSD is in
export TL_RADOS_DIR=$dir
export TL_RADOS="rados:trace?conf=$dir/ceph.conf"
status=0 count=0
running=() names=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  $1 >"$dir/told.$count" 2>&1 &
  running+=($!)
  names+=("$1")
  count=$((count + 1))
  shift
done
for ((i = 0; i < count; i++)); do
  code=0
  wait "${running[i]}" || code=$?
  printf '%s\n' "--- ${names[i]}: ended with $code after $SECONDS s"
  cat "$dir/told.$i"
  [ $code = 0 ] || status=1
done
[ $# -eq 0 ] || shift
for program in "$@"; do
  code=0
  $program || code=$?
  printf '%s\n' "--- $program: ended with $code after $SECONDS s"
  [ $code = 0 ] || status=1
done
exit $status
