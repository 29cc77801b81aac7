import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { afterEach, beforeEach, test } from 'node:test'
import { readSshPublicKey } from '../../lib/ssh-keys/ssh-public-key.ts'
import { publicBlobOf } from '../../lib/ssh-keys/ssh-signature.ts'
import { WorkerPool } from '../../lib/threads/worker-pool.ts'
import { Refusal } from '../../model/errors.ts'
import { KeyMaker } from './key-maker.ts'

let pool: WorkerPool
let keys: KeyMaker
beforeEach(() => {
  pool = new WorkerPool(new URL('../../server/compose/control-thread.ts', import.meta.url))
  keys = new KeyMaker(pool)
})
afterEach(() => pool.close())

test('making an RSA key does not block the event loop, and its two halves match', async () => {
  let turns = 0
  const counting = setInterval(() => turns++, 1)
  const { publicLine, privatePem } = await keys.make('usr_1', { type: 'rsa', bits: 2048 })
  clearInterval(counting)
  assert.ok(turns > 0, 'the event loop was blocked')
  const { blob } = readSshPublicKey(publicLine)
  assert.deepEqual(publicBlobOf(createPrivateKey(privatePem)), blob)
})

test('a caller that asks for too many keys at once is told to wait, and others are served', async () => {
  const many = Array.from({ length: 40 }, () => keys.make('usr_1', { type: 'rsa', bits: 4096 }))
  const settled = Promise.allSettled(many)
  await assert.rejects(Promise.all(many), (error) => {
    assert.ok(error instanceof Refusal)
    assert.deepEqual([error.code, error.headers], ['CHECKS_BUSY', { 'retry-after': '5' }])
    return true
  })
  // Before those of the first caller, which wait for each other.
  assert.match((await keys.make('usr_2', { type: 'rsa', bits: 2048 })).publicLine, /^ssh-rsa /)
  assert.match((await keys.make('usr_1', { type: 'ed25519' })).publicLine, /^ssh-ed25519 /)
  await pool.close()
  await settled
})
