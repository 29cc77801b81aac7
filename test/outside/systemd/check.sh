# Tests the units of deploy/systemd on a machine booted by systemd, after run.ts has set it up as docs/vps.md says.
set -eu

units=/usr/local/lib/node_modules/postern/deploy/systemd
sockets='postern-agents.socket postern-https.socket postern-http.socket postern-ssh.socket postern-api.socket'

step() { echo "- $*"; }
fail() { echo "failed: $*"; journalctl -u postern -u postern-agent -o cat --no-pager | grep -v -E 'authtoken|API key|Bearer' | tail -40; exit 1; }
# Waits until a command succeeds.
soon() { for _ in $(seq 120); do if "$@" > /dev/null 2>&1; then return; fi; sleep 0.5; done; fail "still not: $*"; }
says() { journalctl -u "$1" -o cat --no-pager | grep -q "$2"; }
main() { systemctl show -p MainPID --value "$1"; }
ended() { [ "$(systemctl show -p Result --value "$1")$(systemctl show -p ExecMainStatus --value "$1")" = success0 ]; }
visit() { curl -sS --cacert /etc/postern/ca.pem --connect-to web.tunnels.example.com:443:127.0.0.1:443 https://web.tunnels.example.com/ | grep -q '^hello$'; }
status() { grep "^$2:" "/proc/$1/status" | cut -f 2; }

step 'the server starts as docs/vps.md says'
. ./service.sh > status.txt
grep -q 'Active: active (running)' status.txt || fail 'systemctl status'
systemd-analyze security postern.service --no-pager | tail -n 1
says postern 'Admin API key' || fail 'the journal does not show the API key'
[ "$(postern admin list-users --data-dir /var/lib/postern | wc -l)" = 1 ] || fail 'root cannot open the database beside it'

step 'it runs as its own user, with only the capability to open low ports'
pid=$(main postern)
[ "$(status "$pid" Uid)" -ge 1000 ] || fail 'it is root'
[ "$(status "$pid" CapEff)" = 0000000000000400 ] || fail "capabilities $(status "$pid" CapEff)"
[ "$(status "$pid" Seccomp)" = 2 ] || fail 'no system call filter'

step 'the agent starts, and visitors reach it'
install -m 0644 /var/lib/postern/ca.pem /etc/postern/ca.pem
printf 'server: localhost:7443\nca: /etc/postern/ca.pem\ntunnels:\n  web:\n    addr: 3000\n    domain: web.tunnels.example.com\n' > /etc/postern/agent.yml
install -m 0600 /dev/null /etc/postern/agent.env
journalctl -u postern -o cat --no-pager | sed -n 's/^ *Agent authtoken */POSTERN_AUTHTOKEN=/p' > /etc/postern/agent.env
cp $units/postern-agent.service /etc/systemd/system/
systemctl daemon-reload
systemctl enable --quiet --now postern-agent
systemd-run --quiet node -e 'require("http").createServer((_, response) => response.end("hello\n")).listen(3000)'
soon visit
systemd-analyze security postern-agent.service --no-pager | tail -n 1
pid=$(main postern-agent)
[ "$(status "$pid" CapBnd)$(status "$pid" Seccomp)" = 00000000000000002 ] || fail 'the agent is not confined'

step 'the sockets are opened by systemd, as docs/operate.md says'
systemctl stop postern
ended postern || fail 'it did not stop cleanly'
cp $units/*.socket /etc/systemd/system/
systemctl daemon-reload
# shellcheck disable=SC2086 # several names
systemctl enable --quiet --now $sockets
systemctl start postern
says postern '^Sockets from the service manager: ' || fail 'it does not use the sockets'
soon visit

step 'three restarts refuse no connection'
cat > visitors.mjs << 'CODE'
import { existsSync } from 'node:fs'
import http from 'node:http'
import net from 'node:net'
const faults = new Set()
let served = 0
const ask = (port, path) => new Promise((done) => {
  const request = http.get({ host: '127.0.0.1', port, path, agent: false, headers: { host: 'web.tunnels.example.com' } })
  request.on('response', (response) => { served++; response.resume().on('close', done) })
  request.on('error', (error) => { faults.add(`${port}: ${error.code}`); done() })
})
const knock = (port) => new Promise((done) => {
  const socket = net.connect(port, '127.0.0.1', () => { served++; socket.resume().end() })
  socket.on('error', (error) => faults.add(`${port}: ${error.code}`))
  socket.on('close', () => setTimeout(done, 10))
})
const again = async (once) => { while (!existsSync('restarted')) await once() }
await Promise.all([again(() => ask(7400, '/healthz')), again(() => ask(80, '/')), again(() => knock(7443)), again(() => knock(2222))])
if (served < 100 || faults.size > 0) { console.log(served, [...faults]); process.exit(1) }
CODE
node visitors.mjs & visitors=$!
for _ in 1 2 3; do sleep 1; systemctl restart postern; done
touch restarted
wait $visitors || fail 'connections were lost'
soon visit

step 'it is restarted after a crash'
kill -KILL "$(main postern)"
soon systemctl is-active postern
soon visit

step 'both reload their files, and a faulty one changes nothing'
pid=$(main postern)
echo 'log_level: debug' >> /etc/postern/postern.yml
systemctl reload postern
soon says postern '"msg":"upgrade done'
echo 'log_levels: debug' >> /etc/postern/postern.yml
if systemctl reload postern; then fail 'a reload of faulty settings succeeded'; fi
soon says postern 'log_levels.* is not a known setting'
sed -i '/^log_level/d' /etc/postern/postern.yml
printf '  more:\n    addr: 3001\n' >> /etc/postern/agent.yml
systemctl reload postern-agent
soon says postern-agent '"tunnel online","tunnel":"more"'
echo 'tunnel: 1' >> /etc/postern/agent.yml
systemctl reload postern-agent
soon says postern-agent 'configuration cannot be reloaded; nothing has changed'
[ "$(main postern)" = "$pid" ] || fail 'a reload has ended the server'
visit || fail 'a reload has ended the tunnel'

step 'both stop when told to'
systemctl stop postern-agent
ended postern-agent || fail 'the agent was killed'
# shellcheck disable=SC2086 # several names
systemctl stop $sockets postern
ended postern || fail 'the server was killed'

echo '# the units do what they say'
