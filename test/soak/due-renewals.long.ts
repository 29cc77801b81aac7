/**
 * `npm run soak -- test/soak/due-renewals.long.ts`: ten thousand certificates are due for renewal at once. A few begin
 * now, the others in turn; it prints what visitors and API callers notice meanwhile. POSTERN_SOAK_NAMES shortens it.
 *
 * Edges, renewals and their orders are real. The certificates to renew were never ordered: they are written into the
 * database while no server runs (`stored-certificates.ts`), since ten thousand orders would take hours.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { queryDatabase } from '../support/change-database.ts'
import { metric } from '../support/metrics.ts'
import { until } from '../support/until.ts'
import { createEdges, dueFolder, dueNames, ORDERS_PER_HOUR, startDue, startServer } from './due-platform.ts'
import { storeCertificates } from './stored-certificates.ts'

/** Renewals that begin at once, and in each minute after that (D97). */
const AT_ONCE = ORDERS_PER_HOUR / 5
const EACH_MINUTE = ORDERS_PER_HOUR / 60

/** How many names a node works on at a time. */
const IN_WORK = 4

const MINUTE_MS = 60_000

test('ten thousand certificates that are due at once are renewed in turn', async (t) => {
  const dataDir = await dueFolder(t)
  const databaseUrl = `sqlite:${join(dataDir, 'postern.db')}`
  const before = await startServer(t, dataDir)
  await createEdges(before.api)
  await before.server.stop()
  await storeCertificates({ databaseUrl, keyFile: join(dataDir, 'secret.key'), names: dueNames })

  const { acme, server, callers, begin } = await startDue(t, dataDir)
  const issued = () => metric(server.metricsUrl, 'postern_acme_issued_total')
  const waiting = async () => {
    const [row] = await queryDatabase(databaseUrl, 'select count(*) as count from managed_names where stage = 3')
    return Number(row?.count)
  }
  console.log(`before: ${await callers.look()}`)
  const begunAt = performance.now()
  begin()
  await until('some certificates are renewed', () => acme.count('download') > 0)
  console.log(`while the first are renewed: ${await callers.look()}`)
  // Names that are being renewed count as neither.
  const isSeen = async () => (await waiting()) + (await issued()) >= dueNames.length - IN_WORK
  await until('all others wait for their turn', isSeen, { limitMs: 30 * MINUTE_MS })
  console.log(`all were scheduled after ${((performance.now() - begunAt) / 1000).toFixed(0)} s`)
  console.log(`while the others wait: ${await callers.look()}`)
  // Long enough to see some of the renewals in turn.
  await pause(2 * MINUTE_MS)
  const orders = (await queryDatabase(databaseUrl, 'select begun_at from acme_orders order by begun_at')).map((row) =>
    Number(row.begun_at),
  )
  console.log(`${orders.length} orders were begun, ${await issued()} certificates issued`)
  assert.ok(orders.length > AT_ONCE)
  const inTurn = orders.slice(AT_ONCE).map((at, i) => at - (orders[AT_ONCE + i - EACH_MINUTE] ?? at))
  assert.ok(inTurn.every((ms) => ms >= MINUTE_MS))
  assert.equal(new Set(acme.orders.map(({ name }) => name)).size, acme.orders.length)
})
