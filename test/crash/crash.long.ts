/** `npm run crash`: kills servers many times over; `npm run crash -- SQLite` tests that store only. */
import { test } from 'node:test'
import { startPostgres } from '../support/postgres.ts'
import { crash, crashFirstStarts } from './crash.ts'

const ROUNDS = 200

const progress = (store: string) => (line: string) => process.stdout.write(`${store}: ${line}\n`)

test('SQLite keeps every acknowledged write', async () => {
  const report = await crash({ rounds: ROUNDS, progress: progress('SQLite') })
  progress('SQLite')(JSON.stringify(report))
})

test('PostgreSQL keeps every acknowledged write', async () => {
  const postgres = await startPostgres({ durable: true })
  try {
    const report = await crash({ rounds: ROUNDS, postgres, progress: progress('PostgreSQL') })
    progress('PostgreSQL')(JSON.stringify(report))
  } finally {
    await postgres.stop()
  }
})

test('a first start that is cut short leaves nothing half done on SQLite', async () => {
  await crashFirstStarts({ rounds: ROUNDS / 4, withinMs: 1000 })
})
