import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '../../lib/log/create-log.ts'
import { RefusedAddresses } from '../../lib/net/refused-addresses.ts'
import type { PartRestriction } from '../../link/planes/plane-calls.ts'
import { Restrictions } from './part-restrictions.ts'

function restricted() {
  const noted: string[] = []
  const log = createLog({ level: 'silent', format: 'json', destination: { write() {} } })
  const refused = new RefusedAddresses({ log })
  refused.note = (part, address, { isEnforced }) => void noted.push(`${part} ${address} ${isEnforced}`)
  return { restrictions: new Restrictions({ refused }), noted }
}

const only = (part: string, network: string, isEnforced = true): PartRestriction => ({
  part,
  isEnforced,
  rules: [{ action: 'allow', network }],
})

test('a part is open until it is restricted, and open again when it no longer is', () => {
  const { restrictions } = restricted()
  const peer = { ip: '198.51.100.1' }
  assert.ok(restrictions.admits('agent', peer))
  restrictions.use([only('agent', '192.0.2.0/24')])
  assert.equal(restrictions.admits('agent', peer), false)
  assert.equal(restrictions.admits('agent', { ip: '192.0.2.7' }), true)
  assert.equal(restrictions.admits('endpoints', peer), true)
  restrictions.use([only('endpoints', '192.0.2.0/24')])
  assert.equal(restrictions.admits('agent', peer), true)
  assert.equal(restrictions.admits('endpoints', peer), false)
  restrictions.use([])
  assert.equal(restrictions.admits('endpoints', peer), true)
})

test('a connection is judged and logged once per change; a restriction that is not enforced lets it in', () => {
  const { restrictions, noted } = restricted()
  const peer = { ip: '198.51.100.1' }
  for (const isEnforced of [false, true]) {
    restrictions.use([only('endpoints', '192.0.2.0/24', isEnforced)])
    for (let i = 0; i < 3; i++) assert.equal(restrictions.admits('endpoints', peer), !isEnforced)
  }
  restrictions.admits('endpoints', { ip: peer.ip })
  assert.deepEqual(noted, [
    'endpoints 198.51.100.1 false',
    'endpoints 198.51.100.1 true',
    'endpoints 198.51.100.1 true',
  ])
})

test('a restriction without rules admits nobody, and no restriction admits an invalid address', () => {
  const { restrictions } = restricted()
  restrictions.use([{ part: 'agent', isEnforced: true, rules: [] }])
  assert.equal(restrictions.admits('agent', { ip: '192.0.2.1' }), false)
  restrictions.use([only('agent', '0.0.0.0/0')])
  assert.equal(restrictions.admits('agent', { ip: '192.0.2.1' }), true)
  assert.equal(restrictions.admits('agent', { ip: '' }), false)
})

test('restrictions are known after the first change, and listeners hear of each change once it is in force', async () => {
  const { restrictions } = restricted()
  const heard: boolean[] = []
  let isKnown = false
  void restrictions.known.then(() => {
    isKnown = true
  })
  restrictions.whenChanged(() => heard.push(restrictions.admits('agent', { ip: '198.51.100.1' })))
  await new Promise(setImmediate)
  assert.equal(isKnown, false)
  restrictions.use([only('agent', '192.0.2.0/24')])
  restrictions.use([])
  await restrictions.known
  assert.deepEqual(heard, [false, true])
})
