import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AgentFault } from '../../agent/agent-fault.ts'
import { ServiceFault } from '../../agent/dial-upstream.ts'
import type { AgentEvent } from '../../agent/events.ts'
import { AgentTunnel } from '../../agent/tunnel.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import { linesDisplay } from './lines.ts'

function tunnelOf(url: string, labels?: Record<string, string>): AgentTunnel {
  const tunnel = new AgentTunnel({
    name: 'web',
    asks: labels ? { labels } : { proto: 'https', opts: {} },
    forwardsTo: 'http://localhost:3000',
    forwardsProto: '',
    metadata: '',
    target: { accept() {} },
  })
  tunnel.online(tunnel.main, { id: 'tn_1', url, proto: 'https', opts: {}, token: new Secret('t'), tunnelId: 'tn_1' })
  return tunnel
}

const tunnel = tunnelOf('https://quiet-fox.example.com')
const visitor = { address: '192.0.2.1:4711', proto: 'https' }
const end = { visitor, durationMs: 12.4, bytesIn: 10, bytesOut: 2000, error: undefined, requestId: '' }

const server = { host: 'tunnels.example.com', port: 7443 }
/** Another node of it. */
const other = { host: 'node-2.example.com', port: 7443 }

const events: readonly AgentEvent[] = [
  { type: 'online', server, session: 'ts_1', region: 'eu', serverVersion: '0.1.0', isResumed: false },
  { type: 'tunnel-online', tunnel },
  { type: 'tunnel-online', tunnel: tunnelOf('', { app: 'shop' }) },
  { type: 'connection-opened', tunnel, visitor },
  { type: 'connection-closed', tunnel, end },
  { type: 'request' },
  { type: 'offline', fault: new AgentFault('lost', 'the connection ended'), retryMs: 312.7 },
  { type: 'online', server: other, session: 'ts_1', region: 'eu', serverVersion: '0.1.0', isResumed: true },
  {
    type: 'tunnel-refused',
    tunnel,
    fault: new AgentFault('refused', 'The name is taken.', { serverCode: 'ERR_NGROK_334' }),
  },
  { type: 'tunnel-stopped', tunnel, message: 'Over\nquota.' },
  { type: 'command', name: 'update', error: 'no update is available' },
  { type: 'command', name: 'stop', error: '' },
]

function printed(format: 'auto' | 'lines' | 'json', level: 'info' | 'debug', shownEvents = events): string {
  let text = ''
  const display = linesDisplay({
    openLines: () => ({
      write(line) {
        text += line
      },
      flush: async () => {},
    }),
    format,
    level,
    now: () => Date.UTC(2026, 0, 2, 3, 4, 5, 678),
  })
  for (const event of shownEvents) display.event(event)
  display.updated({ version: '0.2.0' })
  display.updated({ version: '0.2.0', error: new Error('disk full') })
  return text
}

test('each event is one line, and connections are logged at debug only', () => {
  const expected = `\
03:04:05.678 INFO  connected server=tunnels.example.com:7443 session=ts_1 region=eu server_version=0.1.0
03:04:05.678 INFO  tunnel online tunnel=web url=https://quiet-fox.example.com forwards_to=http://localhost:3000
03:04:05.678 INFO  tunnel online tunnel=web labels={"app":"shop"} forwards_to=http://localhost:3000
03:04:05.678 DEBUG connection opened tunnel=web visitor=192.0.2.1:4711 proto=https
03:04:05.678 DEBUG connection closed tunnel=web visitor=192.0.2.1:4711 duration_ms=12 bytes_in=10 bytes_out=2000
03:04:05.678 WARN  not connected; retrying reason="the connection ended" retry_ms=313
03:04:05.678 INFO  connected again server=node-2.example.com:7443 session=ts_1 region=eu server_version=0.1.0
03:04:05.678 WARN  tunnel refused; retrying tunnel=web url=https://quiet-fox.example.com forwards_to=http://localhost:3000 reason="The name is taken." code=ERR_NGROK_334
03:04:05.678 WARN  tunnel stopped by the server tunnel=web url=https://quiet-fox.example.com forwards_to=http://localhost:3000 reason="Over\\nquota."
03:04:05.678 INFO  command name=update refused="no update is available"
03:04:05.678 INFO  command name=stop
03:04:05.678 INFO  updated; restart to use it version=0.2.0
03:04:05.678 WARN  update failed version=0.2.0 reason="disk full"
`
  assert.equal(printed('lines', 'debug'), expected)
  assert.equal(printed('auto', 'info'), expected.replace(/^.* DEBUG .*\n/gm, ''))
})

test('as JSON each line is an object with the same fields', () => {
  const lines = printed('json', 'info').trimEnd().split('\n')
  assert.deepEqual(JSON.parse(lines[1] ?? ''), {
    time: '2026-01-02T03:04:05.678Z',
    level: 'info',
    msg: 'tunnel online',
    tunnel: 'web',
    url: 'https://quiet-fox.example.com',
    forwards_to: 'http://localhost:3000',
  })
  for (const line of lines) JSON.parse(line)
})

const down = (requestId: string): AgentEvent => ({
  type: 'connection-closed',
  tunnel,
  end: { ...end, error: new ServiceFault('nothing listens at a'), requestId },
})

test('a failed visit is logged with the request id of its error page', () => {
  const text = printed('lines', 'info', [down('r1'), down(''), { type: 'service-up', tunnel }])
  assert.deepEqual(
    text
      .split('\n')
      .slice(0, 3)
      .map((line) => line.slice(13)),
    [
      'WARN  service does not answer tunnel=web reason="nothing listens at a" request=r1',
      'WARN  service does not answer tunnel=web reason="nothing listens at a"',
      'INFO  service answers again tunnel=web url=https://quiet-fox.example.com forwards_to=http://localhost:3000',
    ],
  )
  assert.match(printed('lines', 'debug', [down('r2')]), /DEBUG connection closed .* request=r2 reason=/)
})

test('a flood of failed visits does not fill the log: some are logged per minute, and the rest are counted', () => {
  let [text, time] = ['', 0]
  const display = linesDisplay({
    openLines: () => ({
      write(line) {
        text += line
      },
      flush: async () => {},
    }),
    format: 'lines',
    level: 'info',
    now: () => time,
  })
  for (let i = 0; i < 100; i++) display.event(down(`r${i}`))
  assert.equal(text.trimEnd().split('\n').length, 30)
  time = 60_000
  text = ''
  display.event(down('later'))
  assert.match(text, / request=later untold=70\n$/)
})
