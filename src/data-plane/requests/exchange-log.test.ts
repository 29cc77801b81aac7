import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { AccessRecord } from './access-record.ts'
import { ExchangeLog } from './exchange-log.ts'

const tags = { nodeTag: '00000001', planeTag: '00000002' }

const given: AccessRecord = {
  peer: { ip: '192.0.2.1', port: 5, serverIp: '192.0.2.2', serverPort: 443, startedAt: 1000 },
  startedAt: 1000,
  durationMs: 50,
  request: undefined,
  scheme: 'https',
  version: '2',
  method: 'GET',
  host: 'a.example.com',
  path: '/x',
  sentTarget: '/x?y=1',
  edge: 'edghts_1',
  ownerId: undefined,
  route: 'edghtsrt_1',
  target: 'tn_1',
  isReused: true,
  passedMs: 3,
  sentMs: 10,
  answeredMs: 30,
  status: 200,
  isFromUpstream: true,
  fault: undefined,
  isCut: false,
  bytesIn: 7,
  bytesOut: 5_000_000_000,
  found: undefined,
  kept: undefined,
  replay: undefined,
}

function logOf({ bytes = 64 * 1024 }: { bytes?: number } = {}): ExchangeLog {
  return new ExchangeLog({ bytes, tags, sessionOf: (id) => (id === 'tn_1' ? 'ts_1' : undefined) })
}

const everything = { filter: {}, limit: 1000 }

test('an exchange is read as it was noted', async () => {
  const log = logOf()
  const found = new Map([['ip_policy.decision', 'allow']])
  log.note({
    ...given,
    found,
    fault: 'UPSTREAM_TIMEOUT',
    isCut: true,
    ownerId: 'usr_1',
    replay: { of: 'ex_0', noted: () => {} },
  })
  const [exchange] = await log.page(everything)
  assert.deepEqual(exchange, {
    id: log.lastId,
    startedAt: 1000,
    durationMs: 50,
    timings: { modules: 3, dial: 7, wait: 20, receive: 20 },
    method: 'GET',
    host: 'a.example.com',
    path: '/x?y=1',
    isPathCut: false,
    status: 200,
    fault: 'UPSTREAM_TIMEOUT',
    bytesIn: 7,
    bytesOut: 5_000_000_000,
    version: '2',
    scheme: 'https',
    ip: '192.0.2.1',
    edgeId: 'edghts_1',
    routeId: 'edghtsrt_1',
    ownerId: 'usr_1',
    target: 'tn_1',
    sessionId: 'ts_1',
    decided: { 'ip_policy.decision': 'allow' },
    isCut: true,
    captureId: undefined,
    replayOf: 'ex_0',
  })
  assert.deepEqual(log.find(log.lastId), { exchange, lastPart: -1, hasBodies: false })
})

test('times of what did not happen are left out', async () => {
  const log = logOf()
  log.note({ ...given, passedMs: -1, sentMs: -1, answeredMs: 5, edge: undefined, target: undefined })
  const [exchange] = await log.page(everything)
  assert.deepEqual(exchange?.timings, { modules: undefined, dial: undefined, wait: undefined, receive: 45 })
  assert.deepEqual([exchange?.edgeId, exchange?.target, exchange?.sessionId], [undefined, undefined, undefined])
})

test('each exchange keeps its own destination, however often that changes', async () => {
  const log = logOf({ bytes: 4 * 1024 * 1024 })
  const ways = Array.from({ length: 2500 }, (_, i) => ({
    host: `h${i % 7}.example.com`,
    edge: i % 5 === 0 ? undefined : `edghts_${i % 3}`,
    route: `edghtsrt_${i % 2}`,
    target: i % 4 === 0 ? undefined : `tn_${i % 1300}`,
    ownerId: i % 6 === 0 ? 'usr_1' : undefined,
  }))
  for (const way of ways) log.note({ ...given, ...way })
  const found = await log.page({ filter: {}, limit: ways.length })
  assert.deepEqual(
    found.toReversed().map(({ host, edgeId, routeId, target, ownerId }) => ({
      ...{ host, edge: edgeId, route: routeId, target, ownerId },
    })),
    ways,
  )
})

test('hostile texts come back as text of the same meaning, or cut, and never as another field', async () => {
  const text = fc.string({ unit: 'binary', maxLength: 3000 })
  await fc.assert(
    fc.asyncProperty(text, text, text, text, async (method, host, path, decided) => {
      const log = logOf()
      log.note({ ...given, method, host, sentTarget: path, found: new Map([['a', decided]]) })
      const [exchange] = await log.page(everything)
      assert.ok(exchange)
      const whole = (given: string, length: number): string => Buffer.from(given.slice(0, length)).toString()
      assert.equal(exchange.method.length, Math.min(32, method.length))
      assert.equal(exchange.path.length, Math.min(1024, path.length))
      assert.equal(exchange.isPathCut, path.length > 1024)
      if (whole(method, 32) === method.slice(0, 32)) assert.equal(exchange.method, method.slice(0, 32))
      assert.equal(exchange.edgeId, 'edghts_1')
      assert.deepEqual(Object.keys(exchange.decided), ['a'])
      JSON.parse(JSON.stringify(exchange))
    }),
  )
})

test('a value that a module decided cannot pass for the decision of another', async () => {
  const log = logOf()
  log.note({ ...given, found: new Map([['a', 'b\0ip_policy.decision\0allow']]) })
  const [exchange] = await log.page(everything)
  assert.deepEqual(exchange?.decided, { a: 'b ip_policy.decision allow' })
})

test('ids ascend, even when the clock is set back, and lead only to their own exchange', async () => {
  const log = logOf()
  const ids: string[] = []
  for (const at of [5000, 5000, 4000, 6000]) {
    log.note({ ...given, startedAt: at, status: 200 + ids.length })
    ids.push(log.lastId)
  }
  assert.deepEqual(ids, ids.toSorted())
  assert.deepEqual(
    ids.map((id) => log.find(id)?.exchange.status),
    [200, 201, 202, 203],
  )
  const other = new ExchangeLog({
    bytes: 4096,
    tags: { ...tags, planeTag: '00000003' },
    sessionOf: () => undefined,
  })
  other.note(given)
  assert.equal(other.find(ids[0] ?? ''), undefined)
  assert.equal(log.find('ex_1'), undefined)
})

test('the memory keeps its size, whatever comes, and has the latest exchanges', async () => {
  const log = logOf({ bytes: 32 * 1024 })
  for (let i = 0; i < 10_000; i++)
    log.note({ ...given, sentTarget: `/${i}/${'x'.repeat(i % 900)}`, status: 100 + (i % 500) })
  const found = await log.page(everything)
  assert.ok(found.length > 20)
  assert.deepEqual(
    found.map(({ path }) => Number(path.split('/')[1])),
    found.map((_, i) => 9999 - i),
  )
})
