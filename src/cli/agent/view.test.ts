import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { Agent } from '../../agent/agent.ts'
import { AgentFault } from '../../agent/agent-fault.ts'
import { AgentTunnel } from '../../agent/tunnel.ts'
import { TunnelFigures } from '../../agent/tunnel-figures.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import type { KeySignal, Keys } from './keys.ts'
import { Canvas, type Screen } from './screen.ts'
import { viewDisplay, viewLines } from './view.ts'

class TestKeys implements Keys {
  heard: ((signal: KeySignal) => void) | undefined
  continued: (() => void) | undefined
  readonly sent: KeySignal[] = []

  hold(heard: (signal: KeySignal) => void): void {
    this.heard = heard
  }

  release(): void {
    this.heard = undefined
  }

  send(signal: KeySignal): void {
    this.sent.push(signal)
  }

  onContinue(run: () => void): () => void {
    this.continued = run
    return () => {
      this.continued = undefined
    }
  }
}

class TestScreen implements Screen {
  columns = 80
  rows = 24
  isBusy = false
  written: string[] = []
  resized: (() => void) | undefined
  readonly keys = new TestKeys()

  write(text: string): void {
    this.written.push(text)
  }

  onResize(run: () => void): () => void {
    this.resized = run
    return () => {
      this.resized = undefined
    }
  }

  /** The text of the last frame. */
  get shown(): string {
    return stripVTControlCharacters(this.written.at(-1) ?? '').replaceAll('\r', '')
  }
}

function tunnelOf(name: string, url: string, forwardsTo: string, labels?: Record<string, string>): AgentTunnel {
  const tunnel = new AgentTunnel({
    name,
    asks: labels ? { labels } : { proto: 'https', opts: {} },
    forwardsTo,
    forwardsProto: '',
    metadata: '',
    target: { accept() {} },
  })
  tunnel.online(tunnel.main, { id: name, url, proto: 'https', opts: {}, token: new Secret('t'), tunnelId: name })
  return tunnel
}

const plain = (_style: unknown, text: string): string => text
const server = { host: 'tunnels.example.com', port: 7443 }
const state = {
  status: 'online' as const,
  reason: '',
  retryAt: 0,
  server,
  session: 'ts_1',
  secondSession: '',
  region: 'eu',
  serverVersion: '0.1.0',
  inspector: 'http://127.0.0.1:4040',
  note: '',
  down: new Map<AgentTunnel, string>(),
}

/** A time of day in the local time zone. */
const at = (hours: number, minutes: number, seconds: number): number =>
  new Date(2026, 0, 2, hours, minutes, seconds).getTime()

test('the view shows session, server, latency, tunnels, connections and requests', () => {
  const figures = new TunnelFigures()
  for (let i = 0; i < 12; i++) figures.opened()
  for (let i = 0; i < 11; i++) figures.closed()
  for (const ms of [1.23, 4, 8, 100, 20_000]) figures.took(ms)
  const shop = { tunnel: 'a-shop-with-a-long-name', time: at(23, 59, 59) }
  const web = { tunnel: 'web', time: at(9, 8, 7) }
  figures.saw({ ...web, method: 'GET', path: '/a?b=1', status: 200, durationMs: 1.23 })
  figures.saw({ ...shop, method: 'POST', path: '/\x1b[2Jhook', status: 503, durationMs: 100 })
  figures.saw({ ...web, method: 'GET', path: '/slow', status: undefined, durationMs: undefined })
  const agent = {
    figures,
    latencyMs: 12.6,
    tunnels: new Set([
      tunnelOf('web', 'https://quiet-fox.example.com', 'http://localhost:3000'),
      tunnelOf('shop', '', 'https://localhost:8443', { app: 'shop', env: 'test' }),
    ]),
  }
  const frame = { agent, version: '0.1.0', state, rows: 24, paint: plain, now: 0 }
  assert.equal(
    viewLines(frame).join('\n'),
    `\
Postern (Ctrl+C to quit)

Session       online ts_1
Server        tunnels.example.com:7443, region eu, version 0.1.0
Latency       13 ms
Version       0.1.0
Inspector     http://127.0.0.1:4040
Forwarding    https://quiet-fox.example.com -> http://localhost:3000
              app=shop env=test -> https://localhost:8443
Connections   12 total, 1 open, p50 8.0 ms, p90 20 s

Requests
09:08:07  web               ...            GET     /slow
23:59:59  a-shop-with-a-lo  503    100 ms  POST    /\\u001b[2Jhook
09:08:07  web               200    1.2 ms  GET     /a?b=1`,
  )
  assert.equal(viewLines({ ...frame, rows: 14 }).length, 13, 'what does not fit is not shown')
})

test('the view shows why there is no session, when the next attempt is, and messages', () => {
  const agent = { figures: new TunnelFigures(), latencyMs: undefined, tunnels: new Set<AgentTunnel>() }
  const offline = {
    ...state,
    status: 'offline' as const,
    reason: 'the connection ended',
    retryAt: 4200,
    note: 'mind this',
  }
  const lines = viewLines({
    agent,
    version: '0.1.0',
    state: offline,
    rows: 24,
    paint: plain,
    now: 1000,
  })
  assert.equal(lines[2], 'Session       offline the connection ended; retrying in 4 s')
  assert.equal(lines.at(-1), 'mind this')
})

test('a frame is drawn in one write, without clearing first, and only when it has changed', () => {
  const screen = new TestScreen()
  const canvas = new Canvas(screen)
  canvas.draw(['one', 'two'])
  canvas.draw(['one', 'two'])
  canvas.draw(['one', 'three'])
  canvas.close()
  canvas.draw(['late'])
  assert.deepEqual(screen.written, [
    '\x1b[?1049h\x1b[?25l\x1b[?7l',
    '\x1b[?2026h\x1b[Hone\x1b[K\r\ntwo\x1b[K\x1b[J\x1b[?2026l',
    '\x1b[?2026h\x1b[Hone\x1b[K\r\nthree\x1b[K\x1b[J\x1b[?2026l',
    '\x1b[?7h\x1b[?25h\x1b[?1049l',
  ])
})

for (const [env, hasColor] of [
  [{}, true],
  [{ NO_COLOR: '1' }, false],
] as const) {
  test(`events and a change of size are drawn, ${hasColor ? 'in' : 'without'} colour`, (t) => {
    t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
    const screen = new TestScreen()
    const agent = new Agent({ server, authtoken: new Secret('t'), version: '0.1.0' })
    const display = viewDisplay({ agent, config: { server }, version: '0.1.0', screen, env, now: () => 0 })
    assert.match(screen.shown, /Session {7}connecting/)
    const online = { type: 'online', session: 'ts_9', region: 'eu', serverVersion: '0.1.0', isResumed: false } as const
    display.event({ ...online, server: { host: 'node-2.example.com', port: 7443 } })
    t.mock.timers.tick(100)
    assert.match(screen.shown, /online ts_9/)
    assert.match(screen.shown, /Server {8}node-2\.example\.com:7443, region eu/)
    assert.equal(screen.written.at(-1)?.includes('\x1b[32monline'), hasColor)
    const frames = screen.written.length
    t.mock.timers.tick(1000)
    assert.equal(screen.written.length, frames, 'nothing changed')
    screen.rows = 3
    screen.resized?.()
    assert.equal(screen.shown.split('\n').length, 3)
    display.event({ type: 'offline', fault: new AgentFault('lost', 'the connection ended'), retryMs: 500 })
    t.mock.timers.tick(100)
    assert.match(screen.shown, /offline the connection ended; retrying in 1 s/)
    display.close()
    assert.equal(screen.written.at(-1), '\x1b[?7h\x1b[?25h\x1b[?1049l')
    assert.equal(screen.resized, undefined)
  })
}

test('a service is shown as down for as long as it is', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  const screen = new TestScreen()
  const agent = new Agent({ server, authtoken: new Secret('t'), version: '0.1.0' })
  const display = viewDisplay({ agent, config: { server }, version: '0.1.0', screen, env: {}, now: () => 0 })
  const [web, twin] = [tunnelOf('web', 'https://a.test', 'x'), tunnelOf('web', 'http://a.test', 'x')]
  const reason = 'nothing listens at http://localhost:3000'
  for (const tunnel of [web, twin]) display.event({ type: 'service-down', tunnel, reason })
  t.mock.timers.tick(100)
  assert.equal(screen.shown.split(reason).length, 2, 'once for one service')
  display.event({ type: 'service-up', tunnel: web })
  t.mock.timers.tick(100)
  assert.ok(screen.shown.includes(reason))
  display.event({ type: 'service-up', tunnel: twin })
  t.mock.timers.tick(100)
  assert.ok(!screen.shown.includes(reason))
  display.close()
})

test('keys are not echoed while the view is open, and those that end or suspend the program still do', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  const screen = new TestScreen()
  const { keys } = screen
  const agent = new Agent({ server, authtoken: new Secret('t'), version: '0.1.0' })
  const display = viewDisplay({ agent, config: { server }, version: '0.1.0', screen, env: {}, now: () => 0 })
  keys.heard?.('SIGINT')
  assert.deepEqual(keys.sent, ['SIGINT'])
  keys.heard?.('SIGTSTP')
  assert.deepEqual(keys.sent, ['SIGINT', 'SIGTSTP'])
  assert.equal(screen.written.at(-1), '\x1b[?7h\x1b[?25h\x1b[?1049l', 'the terminal is as it was while we are stopped')
  assert.equal(keys.heard, undefined)
  keys.continued?.()
  assert.ok(keys.heard)
  assert.match(screen.shown, /Session {7}connecting/, 'the whole view is drawn again')
  display.close()
  assert.equal(keys.heard, undefined)
  assert.equal(keys.continued, undefined)
})

test('a paused terminal gets no more frames, and the newest one once it continues', () => {
  const screen = new TestScreen()
  const canvas = new Canvas(screen)
  canvas.draw(['one'])
  screen.isBusy = true
  for (const frame of ['two', 'three']) canvas.draw([frame])
  assert.match(screen.shown, /one/)
  screen.isBusy = false
  canvas.draw(['three'])
  assert.match(screen.shown, /three/)
  assert.equal(screen.written.length, 3)
})
