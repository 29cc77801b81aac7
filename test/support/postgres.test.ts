/** The PostgreSQL of the tests leaves nothing behind, however the process that uses it ends. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'pg'
import { startPostgres } from './postgres.ts'

const GONE_LIMIT_MS = 15_000

test('serves UTF-8 databases sorted by bytes or by language, and is gone once stopped', async () => {
  const postgres = await startPostgres()
  const answers = await Promise.all(
    (['binary', 'language'] as const).map(async (collation) => ask(await postgres.createDatabase({ collation }))),
  )
  assert.deepEqual(answers, [
    { encoding: 'UTF8', fsync: 'off', a_before_b: false },
    { encoding: 'UTF8', fsync: 'off', a_before_b: true },
  ])
  await assert.rejects(ask(`${postgres.url}_absent`))
  assert.match(await postgres.log(), /"postgres_absent" does not exist$/)
  await postgres.stop()
  assert.equal(await answersAt(postgres.url), false)
})

test('keeps its data and its port over restarts, even immediate ones', async () => {
  const postgres = await startPostgres({ durable: true })
  const run = async (sql: string): Promise<unknown[]> => {
    const client = new Client({ connectionString: postgres.url })
    await client.connect()
    try {
      return (await client.query(sql)).rows
    } finally {
      await client.end()
    }
  }
  await run('create table kept (how text)')
  for (const how of ['fast', 'immediate'] as const) {
    await run(`insert into kept values ('${how}')`)
    await postgres.restart(how)
  }
  assert.deepEqual(await run('select how from kept order by how'), [{ how: 'fast' }, { how: 'immediate' }])
  await postgres.stop()
  assert.equal(await answersAt(postgres.url), false)
})

const ends: { how: string; code: string; signal?: NodeJS.Signals }[] = [
  { how: 'is killed', code: 'setInterval(() => {}, 1000)', signal: 'SIGKILL' },
  { how: 'is terminated', code: 'setInterval(() => {}, 1000)', signal: 'SIGTERM' },
  { how: 'exits without stopping it', code: '' },
  { how: 'throws', code: 'throw new Error("broken")' },
]
describe('ends, and its folder with it, when the process that started it', { concurrency: true }, () => {
  for (const { how, code, signal } of ends) test(how, () => checkEnd(code, signal))
})

async function checkEnd(code: string, signal?: NodeJS.Signals): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-test-'))
  try {
    // As root, the server runs under another account, which must be able to reach its folder.
    await chmod(folder, 0o755)
    const source = `
      import { startPostgres } from ${JSON.stringify(new URL('postgres.ts', import.meta.url).href)}
      console.log((await startPostgres()).url)
      ${code}`
    const user = spawn(process.execPath, ['--input-type=module', '--eval', source], {
      stdio: ['ignore', 'pipe', 'ignore'],
      env: { ...process.env, TMPDIR: folder },
    })
    const ended = once(user, 'exit')
    const [url] = await once(createInterface({ input: user.stdout }), 'line')
    if (signal) {
      assert.equal(await answersAt(url), true)
      user.kill(signal)
    }
    assert.deepEqual(await ended, signal ? [null, signal] : [code === '' ? 0 : 1, null])
    for (const limit = Date.now() + GONE_LIMIT_MS; (await readdir(folder)).length > 0 || (await answersAt(url)); ) {
      assert.ok(Date.now() < limit, 'the server outlived its user')
      await delay(20)
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function ask(connectionString: string): Promise<unknown> {
  const client = new Client({ connectionString })
  await client.connect()
  const { rows } = await client.query(
    `select current_setting('server_encoding') encoding, current_setting('fsync') fsync, 'a' < 'B' a_before_b`,
  )
  await client.end()
  return rows[0]
}

async function answersAt(url: string): Promise<boolean> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
