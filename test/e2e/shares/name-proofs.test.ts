/** Proofs of names: a caller whose names are served by a silent DNS keeps nobody else from proving one. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { openProvenNames } from '../../../src/control-plane/records/proven-names.ts'
import { openStore, type Store } from '../../../src/control-plane/store/store.ts'
import { createLog } from '../../../src/lib/log/create-log.ts'
import { shared } from '../../../src/model/shared.ts'
import { until } from '../../support/until.ts'

const { most } = shared.nameProofs
const MORE = 8

const log = createLog({ level: 'silent' })
let folder: string
let store: Store
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-proofs-'))
  store = await openStore(`sqlite:${join(folder, 'one.db')}`)
})
after(async () => {
  await store.close()
  await rm(folder, { recursive: true, force: true })
})

test('that take long leave the next turn to another', async () => {
  const texts = new Map<string, string>()
  const asked: string[] = []
  const silent: (() => void)[] = []
  const lookUp = {
    texts: async (name: string) => {
      asked.push(name)
      if (name.endsWith('.silent.test')) await new Promise<void>((resolve) => silent.push(resolve))
      return [texts.get(name) ?? '']
    },
    aliases: async () => [],
  }
  const names = await openProvenNames({ store, domain: 'tunnels.test', lookUp, now: Date.now, log })
  const attack = (i: number) => names.whyNot(`n${i}.silent.test`, { owner: 'attacker' })
  const attacks = Array.from({ length: most + MORE }, (_, i) => attack(i))
  await until('all turns are taken', () => silent.length === most)

  const { txtName, txtValue } = names.recordsFor('app.shop.test')
  texts.set(txtName, txtValue)
  let isProven = false
  const proof = names.whyNot('app.shop.test', { owner: 'other' }).then((why) => {
    isProven = why === undefined
  })
  // It waits by now: its question to the store was the one before this.
  await store.read((reader) => reader.meta('nothing'))
  await setImmediate()
  silent.shift()?.()
  await proof
  assert.equal(isProven, true)
  assert.equal(asked[most], txtName, 'before all those of the first that wait')

  // The rest come in turn.
  let left = attacks.length
  for (const each of attacks) void each.then(() => left--)
  await until('all are answered', () => {
    for (const answer of silent.splice(0)) answer()
    return left === 0
  })
  for (const why of await Promise.all(attacks)) assert.match(why ?? '', /is not proven to be yours/)
})
