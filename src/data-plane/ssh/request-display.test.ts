import assert from 'node:assert/strict'
import { afterEach, beforeEach, mock, test } from 'node:test'
import type { ServedRequest } from '../../model/served-request.ts'
import type { Tunnel } from '../tunnel/session-types.ts'
import { WatchedRequests } from '../tunnel/watched-requests.ts'
import { SshDisplay } from './request-display.ts'
import type { ScreenFigures } from './screen-lines.ts'

beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }))
afterEach(() => mock.timers.reset())

/** A display on a screen or without one, and what reaches the client. */
function setUp(window: { columns: number; rows: number } | undefined) {
  const frames: string[] = []
  const print = (text: string): void => void frames.push(text)
  const surface = { window, isBusy: false, print, complain: print }
  const requests = new WatchedRequests()
  const figures = { connections: 0, bytesIn: 0, bytesOut: 0, latencyMs: undefined as number | undefined }
  let measured = 0
  const measure = (): void => void measured++
  const display = new SshDisplay({ region: 'local', requests, figures: (): ScreenFigures => figures, measure })
  display.show(surface)
  const turn = (ms = 1000): void => mock.timers.tick(ms)
  const visit = (more: Partial<ServedRequest> = {}): void =>
    requests.saw({ edge: 'ep_1', method: 'GET', path: '/', status: 200, durationMs: 12, ...more })
  return { display, surface, frames, figures, turn, visit, measured: () => measured, last: () => frames.at(-1) ?? '' }
}

const screen = { columns: 80, rows: 24 }

/** The part of a tunnel that the display uses. */
function tunnel(url: string, { proto = 'https', id = 'ep_1' } = {}): Tunnel {
  return { endpoint: { id, proto, open: { url } } } as unknown as Tunnel
}

test('without a screen each address is printed as a line, and nothing else is', () => {
  const { display, frames, turn, visit, measured } = setUp(undefined)
  display.add(tunnel('https://a.example'))
  display.connected()
  visit()
  turn(60_000)
  display.add(tunnel('https://b.example'))
  assert.deepEqual(frames, [
    'Postern (via SSH) (Ctrl+C to quit)\nForwarding  https://a.example\n',
    'Forwarding  https://b.example\n',
  ])
  assert.equal(measured(), 0)
})

test('a screen shows addresses, latency, connections, traffic and the last requests, newest first', () => {
  const { display, figures, turn, visit, last } = setUp(screen)
  display.add(tunnel('https://a.example'))
  display.add(tunnel('tcp://b.example:20001', { proto: 'tcp', id: 'ep_2' }))
  Object.assign(figures, { connections: 1, bytesIn: 999, bytesOut: 1_234_567, latencyMs: 41.7 })
  display.connected()
  display.connected()
  visit({ path: '/first' })
  visit({ method: 'POST', path: '/second', status: 0, durationMs: 3.21 })
  turn(100)
  const lines = last()
    .replaceAll('\x1b[K', '')
    .split('\n')
    .map((line) => line.trimEnd())
  assert.deepEqual(lines.slice(2, -1), [
    'Region      local',
    'Latency     42 ms',
    'Forwarding  https://a.example',
    '            tcp://b.example:20001',
    'Connections 2 total, 1 open',
    'Traffic     1.2 MB to you, 999 B from you',
    '',
    'Requests',
    '...    3.2 ms  POST    /second',
    '200     12 ms  GET     /first',
  ])
})

test('it is drawn once a second at most, and only when something has changed', () => {
  const { display, frames, turn, visit } = setUp(screen)
  display.add(tunnel('https://a.example'))
  turn(100)
  const drawn = frames.length
  turn(30_000)
  assert.equal(frames.length, drawn)
  for (let i = 0; i < 100; i++) visit({ path: `/${i}` })
  assert.equal(frames.length, drawn)
  turn()
  assert.equal(frames.length, drawn + 1)
})

test('a visitor’s text cannot control the terminal', () => {
  const { display, turn, visit, last } = setUp(screen)
  display.add(tunnel('https://a.example'))
  visit({ method: 'G\x1bT', path: '/\x1b[2J\x07\u009b31m\u202e\r\nx\u200d漢' })
  turn(100)
  assert.match(last(), /G\?T {5}\/\?\[2J\?\?31m\?\?\?x\?\?/)
  const own = last()
    .replace('\x1b[2J', '')
    .replaceAll('\x1b[H', '')
    .replaceAll('\x1b[K', '')
    .replaceAll('\x1b[J', '')
    .replaceAll('\n', '')
  assert.match(own, /^[\x20-\x7e]*$/)
})

test('it stays within the window, however much there is to show', () => {
  const { display, turn, visit, last } = setUp({ columns: 30, rows: 12 })
  for (let i = 0; i < 200; i++) display.add(tunnel(`https://${i}.example`, { id: `ep_${i}` }))
  for (let i = 0; i < 200; i++) visit({ path: `/${'x'.repeat(5000)}` })
  turn(100)
  const lines = last().replace('\x1b[2J\x1b[H', '').replaceAll('\x1b[K', '').split('\n').slice(0, -1)
  assert.equal(lines.length, 11)
  assert.ok(lines.every((line) => line.length <= 30))
})

test('a client that does not read is sent the newest screen once it does', () => {
  const { display, surface, frames, turn, visit, last } = setUp(screen)
  display.add(tunnel('https://a.example'))
  turn(100)
  const drawn = frames.length
  surface.isBusy = true
  visit({ path: '/missed' })
  turn(5000)
  assert.equal(frames.length, drawn)
  surface.isBusy = false
  turn()
  assert.match(last(), /\/missed/)
})

test('requests are not watched for a removed tunnel or a closed display', () => {
  const { display, turn, visit, last } = setUp(screen)
  const one = tunnel('https://a.example')
  display.add(one)
  visit({ path: '/seen' })
  display.remove(one)
  visit({ path: '/unseen' })
  display.add(one)
  turn(100)
  assert.match(last(), /\/seen/)
  assert.doesNotMatch(last(), /\/unseen/)
  display.close()
  visit({ path: '/late' })
  turn(5000)
  assert.doesNotMatch(last(), /\/late/)
})

test('a refusal before the first drawing does not clear the terminal', () => {
  const { display, frames } = setUp(screen)
  display.close()
  assert.deepEqual(frames, [])
})

test('a note stays on the screen, and is printed as a line without a screen', () => {
  const { display, turn, last } = setUp(screen)
  display.note(`${'word '.repeat(20)}use -R`)
  display.add(tunnel('https://a.example'))
  turn(100)
  // Whole, on as many lines as it takes.
  assert.match(last(), /^(word ?){16}.*\n(word ){4}use -R/m)
  const lines = setUp(undefined)
  lines.display.note('use -R')
  assert.deepEqual(lines.frames, ['use -R\n'])
})

test('the latency is measured at first and then every ten seconds', () => {
  const { turn, measured } = setUp(screen)
  turn(100)
  assert.equal(measured(), 1)
  for (let i = 0; i < 20; i++) turn()
  assert.equal(measured(), 3)
})
