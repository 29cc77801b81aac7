/**
 * `npm run soak -- test/soak/due-names.long.ts`: ten thousand names need a certificate at once. They get it at the operator's
 * pace, and it prints what visitors and callers of the API notice meanwhile. POSTERN_SOAK_NAMES shortens it.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, constants, setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { startAcmeServer } from '../support/acme-server.ts'
import { ApiClient } from '../support/api-client.ts'
import { metric } from '../support/metrics.ts'
import { serve } from '../support/server-process.ts'
import { until } from '../support/until.ts'
import { startCallers } from './callers.ts'

const NAMES = Number(process.env.POSTERN_SOAK_NAMES ?? 10_000)

/** Names of one edge. */
const TOGETHER = 50

const ORDERS_PER_HOUR = 300

/** How long it is watched after the last order that may be, in milliseconds. */
const AFTER_MS = 30_000

const API_KEY = 'soak_test_api_key_of_the_first_admin_01'

const portOf = (address: string): number => Number(address.slice(address.lastIndexOf(':') + 1))

test('ten thousand names that are due at once get certificates at the pace that is set', async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-due-'))
  t.after(() => rm(dataDir, { recursive: true, force: true }))
  const acme = await startAcmeServer()
  t.after(() => acme.stop())
  const server = await serve({
    dataDir,
    flags: {
      'acme-directory': acme.directory,
      'acme-orders-per-hour': String(ORDERS_PER_HOUR),
      workers: String(availableParallelism()),
    },
    env: { POSTERN_BOOTSTRAP_API_KEY: API_KEY },
  })
  t.after(() => server.stop())
  acme.mood.nodes = [{ httpPort: portOf(server.http), httpsPort: portOf(server.https) }]
  const api = new ApiClient(server.url, API_KEY)
  const callers = await startCallers({
    apiUrl: server.url,
    apiKey: API_KEY,
    path: '/edges/https?limit=1',
    visited: `http://n0.example.com:${portOf(server.http)}`,
  })
  t.after(() => callers.stop())
  // An authority is elsewhere: it takes nothing from the server or from those who call it. Linux gives each thread a
  // priority of its own, and this is the authority's.
  setPriority(constants.priority.PRIORITY_LOW)
  // No order gets through until all names are due.
  let begin = () => {}
  const begun = new Promise<void>((resolve) => {
    begin = resolve
  })
  acme.mood.before = () => begun
  for (let first = 0; first < NAMES; first += TOGETHER) {
    const names = Array.from({ length: Math.min(TOGETHER, NAMES - first) }, (_, i) => `n${first + i}.example.com:443`)
    await api.create('/edges/https', { hostports: names })
  }
  console.log(`before: ${await callers.look()}`)
  begin()
  const most = Math.min(NAMES, ORDERS_PER_HOUR)
  await until('some have a certificate', () => acme.count('download') > 0)
  console.log(`while they are ordered: ${await callers.look()}`)
  const issued = () => metric(server.metricsUrl, 'postern_acme_issued_total')
  await until('as many as may be have theirs', async () => (await issued()) >= most, { limitMs: 30 * 60_000 })
  await pause(AFTER_MS)
  console.log(`while the others wait: ${await callers.look()}`)
  assert.equal(acme.orders.length, most)
  assert.equal(await issued(), most)
  assert.equal(new Set(acme.orders.map(({ name }) => name)).size, most)
})
