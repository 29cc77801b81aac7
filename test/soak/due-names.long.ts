/**
 * `npm run soak -- test/soak/due-names.long.ts`: ten thousand names need a first certificate at once. They get it at
 * the operator's pace; the run prints what visitors and API callers notice meanwhile. POSTERN_SOAK_NAMES shortens it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { metric } from '../support/metrics.ts'
import { until } from '../support/until.ts'
import { createEdges, dueFolder, dueNames, ORDERS_PER_HOUR, startDue } from './due-platform.ts'

/** How long the server is watched after the last permitted order, in milliseconds. */
const AFTER_MS = 30_000

test('ten thousand names that are due at once get certificates at the configured pace', async (t) => {
  const { acme, server, api, callers, begin } = await startDue(t, await dueFolder(t))
  // No order gets through before all names are due.
  await createEdges(api)
  console.log(`before: ${await callers.look()}`)
  begin()
  const most = Math.min(dueNames.length, ORDERS_PER_HOUR)
  await until('some have a certificate', () => acme.count('download') > 0)
  console.log(`while they are ordered: ${await callers.look()}`)
  const issued = () => metric(server.metricsUrl, 'postern_acme_issued_total')
  await until('as many as permitted have one', async () => (await issued()) >= most, { limitMs: 30 * 60_000 })
  await pause(AFTER_MS)
  console.log(`while the others wait: ${await callers.look()}`)
  assert.equal(acme.orders.length, most)
  assert.equal(await issued(), most)
  assert.equal(new Set(acme.orders.map(({ name }) => name)).size, most)
})
