import assert from 'node:assert/strict'
import type { Readable } from 'node:stream'
import { test } from 'node:test'
import { createLog } from '../../lib/log/create-log.ts'
import type { ExchangeNews, SeenExchange } from '../../model/exchange.ts'
import { exchangeId } from '../../model/exchange-id.ts'
import { linksUnder } from '../resources/resource-links.ts'
import { ExchangeStreams } from '../traffic/exchange-streams.ts'
import { type ExchangeNode, Exchanges } from '../traffic/listed-exchanges.ts'
import { exchangeStream } from './exchange-events.ts'

const log = createLog({ level: 'silent' })
const principal = { id: 'usr_1', role: 'admin', keyId: 'ak_1' } as const

function seen(number: number, path: string): SeenExchange {
  return {
    id: exchangeId({ endedAt: 1000, number, nodeTag: '00000001', planeTag: '00000002' }),
    startedAt: 1000,
    durationMs: 5,
    timings: { modules: 1, dial: 1, wait: 1, receive: 2 },
    method: 'GET',
    host: 'a.test',
    path,
    isPathCut: false,
    status: 200,
    fault: undefined,
    bytesIn: 0,
    bytesOut: 0,
    version: '1.1',
    scheme: 'https',
    ip: '192.0.2.1',
    edgeId: 'edghts_1',
    routeId: undefined,
    ownerId: undefined,
    target: undefined,
    sessionId: undefined,
    decided: {},
    isCut: false,
    captureId: undefined,
    replayOf: undefined,
  }
}

/** A node whose news the test supplies; each poll takes all of it. */
function world() {
  let news: ExchangeNews = { next: 0, exchanges: [], missed: 0 }
  const polled: (() => void)[] = []
  const node = {
    id: 'nd_1',
    ask: async () => {
      const taken = news
      news = { next: taken.next, exchanges: [], missed: 0 }
      for (const each of polled.splice(0)) setImmediate(each)
      return { plane: taken }
    },
  } as unknown as ExchangeNode // only its news is used
  const streams = new ExchangeStreams({ nodes: () => [node], log, everyMs: 1 })
  const exchanges = new Exchanges({ nodes: () => [node], log })
  return {
    streams,
    open: () =>
      exchangeStream({
        ...{ streams, exchanges, principal },
        links: linksUnder('http://api.test'),
        filter: {},
        recognise: async () => principal,
      }),
    /** Resolves when the news was taken. */
    tell: async (given: readonly SeenExchange[], missed = 0): Promise<void> => {
      news = { next: news.next + given.length + missed, exchanges: given, missed }
      for (let polls = 0; polls < 2; polls++) await new Promise<void>((resolve) => polled.push(resolve))
    },
  }
}

function readAll(stream: Readable): string {
  let text = ''
  stream.setEncoding('utf8')
  for (let chunk: unknown = stream.read(); typeof chunk === 'string'; chunk = stream.read()) text += chunk
  return text
}

test('exchanges that a slow reader misses are counted and reported, not kept', async (t) => {
  const { streams, open, tell } = world()
  t.after(() => streams.close())
  const stream = open()
  const path = `/${'x'.repeat(1000)}`
  for (let i = 0; i < 10; i++) await tell(Array.from({ length: 100 }, (_, j) => seen(i * 100 + j, path)))
  assert.ok(stream.readableLength < 80 * 1024)
  const kept = readAll(stream).split('event: exchange').length - 1
  assert.ok(kept > 10 && kept < 100)
  await tell([seen(2000, '/last')])
  const later = readAll(stream)
  assert.match(later, new RegExp(`^event: missed\ndata: \\{"count":${1000 - kept}\\}\n\nid: ex_.*\nevent: exchange\n`))
  assert.match(later, /"path":"\/last"/)
})

test('a hundred stalled readers hold only a bounded amount each, and another reader gets everything', async (t) => {
  const { streams, open, tell } = world()
  t.after(() => streams.close())
  const stalled = Array.from({ length: 100 }, open)
  const reader = open()
  const path = `/${'x'.repeat(1000)}`
  let received = 0
  for (let i = 0; i < 50; i++) {
    await tell(Array.from({ length: 40 }, (_, j) => seen(i * 40 + j, path)))
    received += readAll(reader).split('event: exchange').length - 1
  }
  assert.equal(received, 2000)
  const kept = stalled.reduce((sum, { readableLength }) => sum + readableLength, 0)
  assert.ok(kept < 100 * 80 * 1024, `${kept} bytes`)
})

test('exchanges that a data plane could not report are counted too', async (t) => {
  const { streams, open, tell } = world()
  t.after(() => streams.close())
  const stream = open()
  await tell([seen(1, '/a')], 7)
  assert.match(readAll(stream), /event: missed\ndata: \{"count":7\}\n\nid: /)
  // The count is sent even when no exchange passes the filter.
  await tell([], 3)
  assert.match(readAll(stream), /^event: missed\ndata: \{"count":3\}\n\n$/)
})

test('a reader is told when nothing is left out from then on', async (t) => {
  const { streams, open, tell } = world()
  t.after(() => streams.close())
  const first = open()
  await tell([])
  const second = open()
  await tell([seen(1, '/a')])
  for (const stream of [first, second]) {
    assert.match(readAll(stream), /^: exchanges follow\n\nevent: following\ndata: \{\}\n\nid: /)
  }
})

test('nodes are not polled when there are no readers', async () => {
  const { streams, open, tell } = world()
  const stream = open()
  await tell([])
  stream.destroy()
  await new Promise((resolve) => stream.once('close', resolve))
  streams.close()
})

test('the number of streams at once is limited', (t) => {
  const { streams, open } = world()
  t.after(() => streams.close())
  for (let i = 0; i < 200; i++) open()
  assert.throws(open, /too many streams/)
})
